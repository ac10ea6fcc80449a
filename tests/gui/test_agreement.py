"""Numbers, lines and counters describe what is shown, and nothing else."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from core.events import Finished
from tests.helpers.fake_engine import FakeEngine, Gate, make_round
from tests.helpers.window import Bench


class LongReplies(FakeEngine):
    """Ends every reply at its longest length."""

    def generate(self, request: object, cancel: object) -> Iterator[object]:
        for event in super().generate(request, cancel):
            done = isinstance(event, Finished) and event.reason == "stop"
            yield replace(event, reason="length") if done else event


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(qtbot, tmp_path, LongReplies())
    yield bench
    bench.close()


def plotted_rounds(bench: Bench) -> int:
    return len(bench.window.metrics._series.tail())


def state(bench: Bench) -> str:
    return bench.window.status._state.text()


def above_the_plots(bench: Bench) -> str:
    return bench.window.metrics._in_force.text()


def change(bench: Bench, **choice: object) -> None:
    settings = replace(bench.window.settings.settings(), **choice)
    bench.window.settings.set_settings(settings)
    bench.window.settings.changed.emit(settings)


def test_the_plots_follow_the_version_that_is_shown(bench: Bench) -> None:
    first = bench.send_and_wait()
    bench.send_and_wait("And then?")
    bench.engine.rounds = (make_round(0, ["Another", " answer", "."]),)
    bench.until_replied(lambda: bench.app.chat.regenerate(first.id))
    assert plotted_rounds(bench) == 1
    bench.window.transcript.versionClicked.emit(bench.thread()[-1].id, -1)
    assert plotted_rounds(bench) == 3
    bench.window.transcript.versionClicked.emit(first.id, 1)
    assert plotted_rounds(bench) == 1


def test_the_state_is_that_of_the_reply_that_is_shown(bench: Bench) -> None:
    bench.send_and_wait()
    chat = bench.app.chat.current
    assert state(bench) == "Max tokens reached"
    bench.app.chat.open(None)
    assert state(bench) == "Ready"
    bench.engine.round_gate = Gate(open_=False)
    bench.send("Another")
    bench.until(lambda: bench.app.chat.reply.message and bench.app.chat.reply.message.text)
    bench.until_replied(bench.window.commands.stop.trigger)
    stopped = bench.app.chat.current
    assert state(bench) == "Stopped"
    bench.app.chat.open(chat)
    assert state(bench) == "Max tokens reached"
    bench.app.chat.open(stopped)
    assert state(bench) == "Stopped"


def test_the_line_above_the_plots_tells_how_the_plotted_reply_was_made(bench: Bench) -> None:
    change(bench, gamma=3)
    bench.send_and_wait()
    chat = bench.app.chat.current
    change(bench, gamma=6, drafter="ngram")
    assert "hybrid" in above_the_plots(bench)
    assert "gamma 3" in above_the_plots(bench)
    assert "gamma 6" in bench.window.header.text()
    bench.app.chat.open(None)
    assert "n-gram" in above_the_plots(bench)
    assert "gamma 6" in above_the_plots(bench)
    bench.send_and_wait("Another")
    assert "gamma 6" in above_the_plots(bench)
    bench.app.chat.open(chat)
    assert "gamma 3" in above_the_plots(bench)


def test_a_stored_plain_reply_is_called_so_while_the_settings_draft(bench: Bench) -> None:
    change(bench, drafter="off")
    bench.engine.rounds = tuple(make_round(i, [" word"], gamma=0) for i in range(3))
    bench.send_and_wait()
    change(bench, drafter="hybrid")
    assert "plain decoding" in above_the_plots(bench)
    assert "Speculation on" in bench.window.status._speculation.text()


def test_composer_and_status_show_the_same_growing_context(bench: Bench) -> None:
    bench.engine.round_gate = Gate(open_=False)
    bench.send("one two three")
    bench.until(lambda: bench.app.chat.reply.message and bench.app.chat.reply.message.text)
    bench.until(lambda: bench.window.composer.count == "24 / 2,048 tokens")
    assert bench.window.status._context.text() == "context 24 / 2,048"
    bench.app.chat.open(None)
    assert bench.window.composer.count in ("", "0 / 2,048 tokens")
    assert "24" not in bench.window.status._context.text()
    bench.engine.round_gate.open()
    bench.until(lambda: not bench.app.chat.reply.running)


def test_a_reply_that_ends_in_another_chat_leaves_the_numbers_of_the_one_that_is_open(
    bench: Bench,
) -> None:
    bench.engine.rounds = (make_round(0, ["Short", " answer"]),)
    bench.send_and_wait()
    chat = bench.app.chat.current
    bench.app.chat.open(None)
    bench.engine.rounds = FakeEngine().rounds
    bench.engine.round_gate = Gate(open_=False)
    bench.send("Another")
    bench.until(lambda: bench.app.chat.reply.message and bench.app.chat.reply.message.text)
    bench.app.chat.open(chat)
    bench.until_replied(bench.engine.round_gate.open)
    assert plotted_rounds(bench) == 1

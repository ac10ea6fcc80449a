"""Closing at any moment: in time, with the chat saved, and nothing left running."""

import sys
import threading
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.engine.worker import CLOSE_TIMEOUT_S
from app.records import MessageState
from app.settings import Settings
from tests.helpers.fake_engine import FakeEngine, Gate
from tests.helpers.window import Bench


def waits_of(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """How long the window agrees to wait for the engine's thread, in seconds, each time it does."""
    waits: list[float | None] = []
    thread = bench.app.engine._thread
    join = thread.join

    def recorded(timeout: float | None = None) -> None:
        waits.append(timeout)
        join(timeout)

    monkeypatch.setattr(thread, "join", recorded)
    return waits


def test_closing_while_idle_waits_for_a_bounded_time_and_needs_none(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(qtbot, tmp_path)
    waits = waits_of(bench, monkeypatch)
    bench.close()
    assert bench.app.stopped_in_time
    assert waits == [CLOSE_TIMEOUT_S]


def test_closing_during_a_load_ends_in_time(qtbot: QtBot, tmp_path: Path) -> None:
    engine = FakeEngine(load_gate=Gate(open_=False))
    bench = Bench(qtbot, tmp_path, engine, load=False)
    bench.until(engine.load_gate.reached.is_set)
    bench.close()
    assert bench.app.stopped_in_time


@pytest.mark.parametrize("where", ["prefill", "round"])
def test_closing_during_a_reply_saves_what_was_decided(
    qtbot: QtBot, tmp_path: Path, where: str
) -> None:
    engine = FakeEngine()
    gate = Gate(open_=False)
    setattr(engine, f"{where}_gate", gate)
    bench = Bench(qtbot, tmp_path, engine)
    bench.send()
    bench.until(gate.reached.is_set)
    bench.close()
    assert bench.app.stopped_in_time
    again = Bench(qtbot, tmp_path)
    reply = again.thread()[-1]
    assert reply.text == ("" if where == "prefill" else "A hash table is")
    assert reply.state == MessageState.STOPPED
    again.close()


def test_closing_during_a_fetch_ends_the_child(qtbot: QtBot, tmp_path: Path) -> None:
    bench = Bench(
        qtbot,
        tmp_path,
        settings=Settings(),
        fetch_command=lambda name: [sys.executable, "-c", "import time; time.sleep(600)"],
        load=False,
    )
    bench.window.model_bar.press("fetch-model")
    bench.until(lambda: bench.app.fetch.running)
    bench.close()
    assert not bench.app.fetch.running


def test_an_engine_that_does_not_stop_in_time_is_left_behind_with_the_chat_saved(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = FakeEngine()
    bench = Bench(qtbot, tmp_path, engine)
    engine.round_gate = Gate(open_=False)
    bench.send()
    bench.until(lambda: bench.app.chat.reply.message and bench.app.chat.reply.message.text)
    monkeypatch.setattr(bench.app.engine, "shutdown", lambda: False)
    bench.window.close()
    assert not bench.app.stopped_in_time
    reply = bench.thread()[-1]
    assert (reply.text, reply.state) == ("A hash table is", MessageState.INTERRUPTED)
    monkeypatch.undo()
    assert bench.app.engine.shutdown()
    bench.database.close()


def test_closing_twice_does_no_harm(qtbot: QtBot, tmp_path: Path) -> None:
    bench = Bench(qtbot, tmp_path)
    bench.close()
    bench.app.close()


def test_closing_while_the_engine_starts_waits_for_nothing(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting, imported = threading.Event(), threading.Event()

    def import_for_long() -> FakeEngine:
        starting.set()
        imported.wait(30)
        return FakeEngine()

    bench = Bench(qtbot, tmp_path, engine_factory=import_for_long, load=False)
    bench.until(starting.is_set)
    waits = waits_of(bench, monkeypatch)
    bench.close()
    assert waits == [0]
    assert not bench.app.stopped_in_time
    assert bench.app.engine.starting
    imported.set()
    bench.until(bench.app.engine.shutdown)

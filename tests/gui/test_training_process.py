"""The child that trains: its events, its one end, the words it gets, and how it may break."""

import signal
import sys
from collections.abc import Iterator, Sequence

import pytest
from pytestqt.qtbot import QtBot

from app.engine.training import TrainingProcess, train_command
from core.training import events
from tests.helpers import fake_training as fake
from tests.helpers.fake_training import FakeTraining, Step


class Ear:
    """A training with everything that it said."""

    def __init__(self, qtbot: QtBot, play: Sequence[Step]) -> None:
        self.qtbot = qtbot
        self.process = TrainingProcess(FakeTraining(play).command)
        self.events: list[events.TrainingEvent] = []
        self.ends: list[events.TrainingEvent] = []
        self.process.happened.connect(self.events.append)
        self.process.ended.connect(self.ends.append)
        self.process.start(["--pair", "fake"])

    def until_ended(self) -> events.TrainingEvent:
        self.qtbot.waitUntil(lambda: bool(self.ends), timeout=30_000)
        assert not self.process.running
        return self.ends[0]

    def until_heard(self, count: int) -> None:
        self.qtbot.waitUntil(lambda: len(self.events) >= count, timeout=30_000)


@pytest.fixture
def listen(qtbot: QtBot) -> Iterator[object]:
    ears: list[Ear] = []

    def start(*play: Step) -> Ear:
        ears.append(Ear(qtbot, play))
        return ears[-1]

    yield start
    for ear in ears:
        ear.process.close()


def test_events_arrive_in_order_and_the_end_once(listen) -> None:
    ear = listen(fake.LOAD, fake.trained(3, 1.5), fake.finished("head", 0.5, 0.25))
    end = ear.until_ended()
    assert isinstance(end, events.Finished)
    assert (end.path, end.acceptance) == ("head", (0.5, 0.25))
    assert [type(event) for event in ear.events] == [events.StageStarted, events.Progress]
    assert ear.events[1].losses[0] == 1.5
    assert len(ear.ends) == 1


def test_words_reach_the_child(listen) -> None:
    paused: Step = {"event": "paused", "paused": True}
    going: Step = {"event": "paused", "paused": False}
    ear = listen(
        fake.TRAIN, "pause", paused, "resume", going, "cancel", fake.STOPPED, {"exit": 130}
    )
    ear.until_heard(1)
    ear.process.pause()
    ear.until_heard(2)
    ear.process.resume()
    ear.until_heard(3)
    ear.process.cancel()
    assert ear.until_ended() == events.Stopped(stage="train")


def test_lines_that_are_no_events_are_passed_over(listen) -> None:
    raw = [{"raw": text} for text in ("nonsense", "[1]", '{"event": "new"}', "null", "")]
    ear = listen(*raw, fake.LOAD, fake.finished("head"))
    assert isinstance(ear.until_ended(), events.Finished)
    assert len(ear.events) == 1


@pytest.mark.parametrize(
    ("last", "hint"),
    [
        ({"die": int(signal.SIGKILL)}, "out of memory"),
        ({"die": int(signal.SIGSEGV)}, ""),
        ({"exit": 0}, ""),
        ({"exit": 70}, ""),
    ],
)
def test_a_child_that_ends_without_a_word_failed(listen, last: Step, hint: str) -> None:
    ear = listen(fake.LOAD, {"complain": "something native"}, last)
    end = ear.until_ended()
    assert isinstance(end, events.Failed)
    assert "broke off" in end.message
    assert hint in end.message
    assert ("memory" in end.message) == bool(hint)


def test_what_the_child_says_went_wrong_is_passed_on(listen) -> None:
    ear = listen(fake.failed("user", "Line 2 is wrong. Mend it."), {"exit": 1})
    end = ear.until_ended()
    assert isinstance(end, events.Failed)
    assert end.message == "Line 2 is wrong. Mend it."


def test_a_program_that_cannot_start_is_said_once(qtbot: QtBot) -> None:
    process = TrainingProcess(lambda arguments: ["/no/such/program"])
    ends: list[events.TrainingEvent] = []
    process.ended.connect(ends.append)
    process.start([])
    qtbot.waitUntil(lambda: bool(ends), timeout=30_000)
    assert isinstance(ends[0], events.Failed)
    assert not process.running


def test_closing_lets_the_child_keep_what_it_has_and_is_silent(listen) -> None:
    ear = listen(fake.TRAIN, "cancel", fake.STOPPED, {"exit": 130})
    ear.until_heard(1)
    assert ear.process.close() == events.Stopped(stage="train")
    assert not ear.process.running
    assert ear.ends == []


def test_closing_ends_a_child_that_does_not_listen(listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.training.STOP_TIMEOUT_MS", 100)
    ear = listen(fake.TRAIN, "never")
    ear.until_heard(1)
    ear.process.close()
    assert not ear.process.running
    assert ear.process.close() is None


def test_a_second_start_is_ignored_while_a_training_runs(qtbot: QtBot) -> None:
    asked = FakeTraining([fake.TRAIN, "cancel", fake.STOPPED])
    process = TrainingProcess(asked.command)
    process.start(["one"])
    process.start(["two"])
    assert asked.asked == [["one"]]
    process.close()


def test_the_command_is_that_of_the_program_frozen_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert train_command(["--anew"]) == [
        sys.executable,
        "-m",
        "paceline",
        "train-mtp",
        "--json",
        "--anew",
    ]
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert train_command([]) == [sys.executable, "train-mtp", "--json"]

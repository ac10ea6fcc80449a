"""Events reach the window in order, in bounded bites, and the timer rests with the engine."""

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from app.engine import pump as pump_module
from app.engine.pump import EventPump
from app.engine.work import CountTokens, Generate, Unload
from app.engine.worker import EngineThread
from core.events import Finished, Round
from core.requests import GenerateRequest
from tests.helpers.fake_engine import FakeEngine, make_round

HELLO = GenerateRequest(messages=(("user", "Hello"),))


class Heard:
    def __init__(self, pump: EventPump) -> None:
        self.batches: list[tuple[int, tuple[object, ...]]] = []
        pump.eventsArrived.connect(lambda job_id, events: self.batches.append((job_id, events)))

    def events(self, job_id: int) -> list[object]:
        return [event for id_, events in self.batches if id_ == job_id for event in events]


@pytest.fixture
def thread() -> EngineThread:
    return EngineThread(
        lambda: FakeEngine(rounds=tuple(make_round(i, [f"w{i} "]) for i in range(300)))
    )


def timer_of(pump: EventPump) -> QTimer:
    return pump.findChild(QTimer)


def test_every_event_arrives_once_in_order_and_in_bounded_batches(
    qtbot: QtBot, thread: EngineThread
) -> None:
    pump = EventPump(thread)
    heard = Heard(pump)
    thread.start()
    job = pump.submit(Generate(HELLO))
    qtbot.waitUntil(lambda: not pump.running)
    rounds = [event for event in heard.events(job.id) if isinstance(event, Round)]
    assert [round_.index for round_ in rounds] == list(range(300))
    assert isinstance(heard.events(job.id)[-1], Finished)
    assert max(len(events) for _, events in heard.batches) <= pump_module.BATCH
    assert thread.shutdown()


def test_the_timer_runs_only_while_a_job_is_unfinished(qtbot: QtBot, thread: EngineThread) -> None:
    pump = EventPump(thread)
    assert not timer_of(pump).isActive()
    thread.start()
    pump.submit(Unload())
    assert timer_of(pump).isActive()
    qtbot.waitUntil(lambda: not timer_of(pump).isActive())
    pump.submit(CountTokens(HELLO))
    assert timer_of(pump).isActive()
    qtbot.waitUntil(lambda: not pump.running)
    assert thread.shutdown()


def test_a_tick_over_its_budget_leaves_the_rest_for_the_next(
    qtbot: QtBot, thread: EngineThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump_module, "TICK_BUDGET_S", -1.0)
    pump = EventPump(thread)
    heard = Heard(pump)
    job = pump.submit(Generate(HELLO))
    thread.start()
    qtbot.waitUntil(lambda: not pump.running)
    assert len(heard.batches) >= 300 // pump_module.BATCH
    assert isinstance(heard.events(job.id)[-1], Finished)
    assert thread.shutdown()


def test_events_of_two_jobs_are_never_mixed_in_a_batch(qtbot: QtBot, thread: EngineThread) -> None:
    pump = EventPump(thread)
    heard = Heard(pump)
    first, second = pump.submit(Generate(HELLO)), pump.submit(Generate(HELLO))
    thread.start()
    qtbot.waitUntil(lambda: not pump.running)
    assert len(heard.events(first.id)) == len(heard.events(second.id)) == 303
    assert thread.shutdown()

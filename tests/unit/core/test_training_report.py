"""A pause of a training costs nothing of its time."""

import time

import pytest

from core.training.events import Progress
from core.training.meter import Meter
from core.training.report import Report


@pytest.fixture
def now(monkeypatch):
    """The time of the run's clocks, moved by hand."""
    moved = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: moved[0])
    return moved


def test_the_clock_of_a_run_stands_still_while_it_is_paused(now):
    def pause():
        now[0] += 3600
        return False

    waits = [False]
    report = Report(lambda _: None, lambda: pause() if waits[0] else False)
    now[0] += 5
    report.check()
    waits[0] = True
    assert not report.stopped()
    report.check()
    now[0] += 2
    assert report.seconds == 7


def test_a_pause_does_not_make_the_time_left_longer(now):
    class Steps:
        step, total_steps, epoch = 0, 100, 0

    steps = Steps()
    report = Report(lambda _: None, lambda: bool(now.__setitem__(0, now[0] + 1000)))
    meter = Meter(steps, report.clock)
    for _ in range(10):
        report.stopped()
        now[0] += 2
        steps.step += 1
        meter.after(1.0, (1.0,), 50)
    progress = meter.progress()
    assert isinstance(progress, Progress)
    assert progress.seconds_left == pytest.approx(180)
    assert progress.tokens_per_second == pytest.approx(25)

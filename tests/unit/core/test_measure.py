"""Times measured after a load, and the controller that starts from them."""

import pytest
import torch

from core.decoding.gamma import AutoGamma
from core.drafting.base import Draft
from core.models import measure as module
from core.models.measure import VERIFY_ROWS, measure_verify_ms
from core.models.runner import EagerRunner
from core.models.static.runner import StaticRunner
from core.requests import MAX_GAMMA
from tests.helpers.recording import RecordingGraphs
from tests.helpers.tiny import tiny_llama

FOREVER_MS = 1e9


class Clock:
    """Takes the place of the time module; passes of a runner move it."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


class TimedRunner(EagerRunner):
    """Takes 10 ms a pass and 1 ms a row; the first two passes of a size take 100 ms more."""

    def __init__(self, clock, **options):
        super().__init__(tiny_llama(), **options)
        self.clock = clock
        self.passes = {}

    def forward(self, ids, rows):
        count = len(ids)
        self.passes[count] = self.passes.get(count, 0) + 1
        self.clock.now += (10.0 + count + (100.0 if self.passes[count] <= 2 else 0.0)) / 1000.0
        return super().forward(ids, rows)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_the_time_of_every_size_is_measured_without_what_only_the_first_passes_take(clock):
    runner = TimedRunner(clock)
    measured = measure_verify_ms(runner, budget_ms=FOREVER_MS)
    assert sorted(measured) == list(range(1, MAX_GAMMA + 2))
    assert measured == {rows: pytest.approx(10.0 + rows) for rows in VERIFY_ROWS}
    assert runner.length == 0


def test_it_ends_with_its_budget_and_has_measured_the_first_in_any_case(clock):
    assert list(measure_verify_ms(TimedRunner(clock), budget_ms=0.0)) == [1]
    # 233 ms a size and 42 ms for the context
    assert list(measure_verify_ms(TimedRunner(clock), budget_ms=500.0)) == [1, 2]


def test_it_can_be_cancelled_between_sizes(clock):
    answers = iter([False, False, True])
    measured = measure_verify_ms(
        TimedRunner(clock), budget_ms=FOREVER_MS, cancelled=lambda: next(answers)
    )
    assert list(measured) == [1, 2]


def test_no_size_reaches_beyond_the_context(clock):
    measured = measure_verify_ms(TimedRunner(clock, context_limit=16), budget_ms=FOREVER_MS)
    assert max(measured) == 8


def test_an_error_leaves_the_cache_empty(clock):
    runner = TimedRunner(clock)
    forward = runner.forward

    def fail(ids, rows):
        if len(ids) == 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(ids, rows)

    runner.forward = fail
    with pytest.raises(torch.OutOfMemoryError):
        measure_verify_ms(runner, budget_ms=FOREVER_MS)
    assert runner.length == 0


def test_it_measures_replays_where_passes_are_captured():
    graphs = RecordingGraphs()
    runner = StaticRunner(tiny_llama(), graphs=graphs)
    measured = measure_verify_ms(runner, (1, 3), budget_ms=FOREVER_MS, repeats=3)
    assert list(measured) == [1, 3]
    assert all(time_ms > 0 for time_ms in measured.values())
    assert (graphs.captures, graphs.replays) == (2, 8)


FLAT = {rows: 10.0 + 0.1 * rows for rows in range(1, MAX_GAMMA + 2)}
STEEP = {rows: 10.0 * rows for rows in range(1, MAX_GAMMA + 2)}


def test_a_seeded_controller_believes_the_measured_times_from_the_first_round():
    controller = AutoGamma()
    controller.seed(FLAT, {"model": 0.5})
    # Unmeasured, the first draft of a source is but a probe.
    assert AutoGamma().limit("model") < controller.limit("model")
    controller.observe(Draft((1,), source="model", steps=1), 1, 0.5, FLAT[2])
    belief = controller.belief()
    assert belief.verify_ms == pytest.approx(tuple(FLAT.values()))
    assert belief.draft_ms == pytest.approx(0.5)


def test_where_every_row_costs_a_pass_a_seeded_controller_finds_no_row_worth_it():
    controller = AutoGamma()
    controller.seed(STEEP, {"model": 5.0})
    assert not controller.worth_judging("model", 0.99, 1)
    assert not controller.worth_drafting("model", 0.99, 1)
    controller.seed(FLAT, {"model": 0.5})
    assert controller.worth_judging("model", 0.99, 1)
    assert controller.worth_drafting("model", 0.99, 1)


def test_a_step_in_the_times_ends_the_draft_before_it():
    stairs = {rows: 10.0 if rows <= 5 else 40.0 for rows in range(1, MAX_GAMMA + 2)}
    controller = AutoGamma()
    controller.seed(stairs, {"model": 0.5})
    assert 2 <= controller.limit("model") <= 4


def test_sizes_that_were_not_measured_lie_between_those_that_were():
    controller = AutoGamma()
    controller.seed({1: 10.0, 5: 14.0, 17: 50.0}, {})
    controller.observe(Draft((1,), source="model", steps=1), 1, 0.5, 11.0)
    times = controller.belief().verify_ms
    assert times[2] == pytest.approx(12.0)
    assert times[10] == pytest.approx(14.0 + 36.0 * 6 / 12)


def test_rounds_correct_a_seed_that_was_wrong():
    controller = AutoGamma()
    controller.seed(FLAT, {"model": 0.5})
    for _ in range(100):
        controller.observe(Draft((1, 2), source="model", steps=2), 1, 8.0, 20.0)
    belief = controller.belief()
    assert belief.verify_ms[2] == pytest.approx(20.0, rel=0.01)
    assert belief.draft_ms == pytest.approx(4.0, rel=0.01)


def test_the_first_slow_pass_of_a_size_that_was_not_measured_is_no_verdict():
    controller = AutoGamma()
    controller.seed({1: 10.0, 17: 12.0}, {"model": 0.5})
    controller.observe(Draft((1, 2), source="model", steps=2), 2, 90.0, 120.0)
    belief = controller.belief()
    assert belief.verify_ms[2] < 1.3 * 10.0
    assert belief.draft_ms < 1.3 * 0.5


def test_a_seed_without_numbers_changes_nothing():
    controller = AutoGamma()
    controller.seed({}, {})
    assert controller.limit("model") == AutoGamma().limit("model")

"""The benchmark: what is run in which order, and what is made of the numbers."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from core.bench.cases import Case, Suite
from core.bench.configuration import (
    Configuration,
    parse_configuration,
)
from core.bench.machine import peak_resident_bytes, resident_bytes
from core.bench.records import BenchEnded, BenchEvent, Measured, WarmUp
from core.bench.report import headline
from core.bench.runner import Plan, run_bench, schedule
from core.cancel import CancelToken
from core.engine import Engine
from core.errors import UserError
from core.events import Event, Failed, PrefillProgress, Round
from core.requests import GenerateRequest
from tests.helpers.tiny import byte_tokenizer, noisy, tiny_llama

OFF, NGRAM, MODEL = (parse_configuration(text) for text in ("off", "ngram:3", "model:2"))
SHORT = Case(suite=Suite.CODE, id="short", text="abcabcabcabc", max_new_tokens=12)
LONG = Case(suite=Suite.EDIT, id="long", text="repeat this, repeat this, repeat", max_new_tokens=9)


def tiny_engine() -> Engine:
    target = tiny_llama()
    return Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=noisy(target))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return tiny_engine()


def events_of(engine: Engine, plan: Plan, cancel: CancelToken | None = None) -> list[BenchEvent]:
    assert engine.loaded is not None
    return list(run_bench(engine, engine.loaded, plan, cancel or CancelToken()))


def last_of(events: list[BenchEvent]) -> BenchEnded:
    last = events[-1]
    assert isinstance(last, BenchEnded)
    assert not any(isinstance(event, BenchEnded) for event in events[:-1])
    return last


def plan_of(
    *configurations: Configuration, cases: tuple[Case, ...] = (SHORT,), repeats: int = 1
) -> Plan:
    return Plan(cases=cases, configurations=configurations, repeats=repeats, seed=7)


def test_each_configuration_is_made_by_the_engine_with_its_head(engine: Engine) -> None:
    class Counted:
        def __init__(self) -> None:
            self.made: list[str] = []

        def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
            self.made.append(request.speculation.drafter)
            return engine.generate(request, cancel)

        def clear_caches(self) -> None:
            engine.clear_caches()

    own, other = Counted(), Counted()
    plan = plan_of(OFF, NGRAM, parse_configuration("hybrid/other:2"), repeats=2)
    loaded = engine.loaded
    assert loaded is not None
    there = replace(loaded, head="parallel on tiny", notices=("It is small.",))
    heads = {"other": (other, there)}
    ended = last_of(list(run_bench(own, loaded, plan, CancelToken(), heads=heads)))
    assert (len(own.made), other.made) == (6, ["hybrid"] * 3)
    assert ended.result.heads == {"other": "parallel on tiny"}
    assert "It is small." in ended.result.notices
    assert "heads: other: parallel on tiny" in headline(ended.result)


def test_the_order_is_shuffled_and_its_seed_repeats_it() -> None:
    plan = plan_of(OFF, NGRAM, MODEL, cases=(SHORT, LONG), repeats=5)
    steps = schedule(plan)
    assert steps == schedule(plan)
    assert steps != schedule(replace(plan, seed=8))
    assert set(Counter(steps).values()) == {1}
    assert len(steps) == 5 * 2 * 3
    blocks = [steps[start : start + 3] for start in range(0, len(steps), 3)]
    assert len({tuple(step.configuration for step in block) for block in blocks}) > 2


def test_all_configurations_answer_a_prompt_before_the_next_one() -> None:
    steps = schedule(plan_of(OFF, NGRAM, MODEL, cases=(SHORT, LONG), repeats=4))
    for start in range(0, len(steps), 3):
        block = steps[start : start + 3]
        assert len({(step.case, step.repeat) for step in block}) == 1
        assert len({step.configuration for step in block}) == 3


@pytest.mark.parametrize("change", [{"repeats": 0}, {"seed": -1}, {"cases": ()}], ids=str)
def test_a_plan_with_nothing_to_run_or_a_number_out_of_range_is_refused(
    change: dict[str, object],
) -> None:
    with pytest.raises(UserError):
        replace(plan_of(OFF), **change)


def test_a_run_warms_up_measures_every_reply_and_ends_once(engine: Engine) -> None:
    events = events_of(engine, plan_of(NGRAM, MODEL, cases=(SHORT, LONG), repeats=2))
    ended = last_of(events)
    assert [event.configuration for event in events if isinstance(event, WarmUp)] == [
        "off",
        "ngram:3",
        "model:2",
    ]
    measured = [event for event in events if isinstance(event, Measured)]
    assert [event.index for event in measured] == list(range(1, 13))
    assert {event.total for event in measured} == {12}
    assert ended.failure is None
    assert ended.result.complete
    assert ended.result.measurements == tuple(event.measurement for event in measured)
    assert [one.order for one in ended.result.measurements] == list(range(12))
    assert {one.tokens for one in ended.result.measurements} == {9, 12}


def test_a_run_counts_what_the_engine_counts(engine: Engine) -> None:
    result = last_of(events_of(engine, plan_of(MODEL))).result
    [one] = [one for one in result.measurements if one.configuration == "model:2"]
    assert sum(one.proposed_at) == one.proposed > 0
    assert sum(one.accepted_at) == one.accepted
    assert one.tokens == one.rounds + one.accepted
    assert one.decode_ms >= one.draft_ms + one.verify_ms > 0
    [summary] = [one for one in result.summaries if one.configuration == "model:2"]
    assert summary.mean_acceptance_length == pytest.approx(1 + one.accepted / one.rounds)
    assert summary.speed_up is not None
    assert summary.same_text_share == 1.0
    assert 0 < one.resident_bytes <= result.peak_bytes


def test_every_reply_reads_its_whole_prompt(engine: Engine) -> None:
    reused: list[int] = []

    class Watched:
        def clear_caches(self) -> None:
            engine.clear_caches()

        def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
            for event in engine.generate(request, cancel):
                if isinstance(event, PrefillProgress):
                    reused.append(event.reused)
                yield event

    assert engine.loaded is not None
    list(run_bench(Watched(), engine.loaded, plan_of(OFF, repeats=3), CancelToken()))
    assert len(reused) >= 4
    assert set(reused) == {0}


def test_above_temperature_zero_repeats_differ_and_the_seed_repeats_them(engine: Engine) -> None:
    plan = plan_of(parse_configuration("off@2"), repeats=3)
    first, again = (last_of(events_of(engine, plan)).result.measurements for _ in range(2))
    assert len({one.digest for one in first}) == 3
    assert [one.digest for one in first] == [one.digest for one in again]


def test_a_cancelled_run_keeps_what_was_measured(engine: Engine) -> None:
    assert engine.loaded is not None
    cancel, events = CancelToken(), []
    for event in run_bench(engine, engine.loaded, plan_of(NGRAM, repeats=5), cancel):
        events.append(event)
        if isinstance(event, Measured) and event.index == 3:
            cancel.cancel()
    ended = last_of(events)
    assert not ended.result.complete
    assert ended.failure is None
    assert len(ended.result.measurements) == 3
    assert ended.result.summaries


def test_a_run_cancelled_within_a_reply_leaves_that_reply_out(engine: Engine) -> None:
    cancel = CancelToken()

    class CancelsInside:
        def clear_caches(self) -> None:
            engine.clear_caches()

        def generate(self, request: GenerateRequest, token: CancelToken) -> Iterator[Event]:
            for event in engine.generate(request, token):
                if isinstance(event, Round):
                    cancel.cancel()
                yield event

    assert engine.loaded is not None
    [warm_up, ended] = run_bench(CancelsInside(), engine.loaded, plan_of(OFF), cancel)
    assert isinstance(warm_up, WarmUp)
    assert last_of([ended]).result.measurements == ()


def test_a_reply_that_fails_ends_the_run_with_what_was_measured(engine: Engine) -> None:
    failure = Failed(kind="user", message="Memory ran out.")

    class FailsLate:
        replies = 0

        def clear_caches(self) -> None:
            engine.clear_caches()

        def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
            self.replies += 1
            if self.replies == 4:
                yield failure
                return
            yield from engine.generate(request, cancel)

    assert engine.loaded is not None
    events = list(run_bench(FailsLate(), engine.loaded, plan_of(OFF, repeats=5), CancelToken()))
    ended = last_of(events)
    assert ended.failure == failure
    assert not ended.result.complete
    assert len(ended.result.measurements) == 2


def test_a_drafter_that_the_pair_lacks_is_refused_before_anything_runs() -> None:
    lonely = Engine.from_parts(target=tiny_llama(), tokenizer=byte_tokenizer())
    with pytest.raises(UserError, match=r"model:2 cannot be run: no draft model"):
        events_of(lonely, plan_of(MODEL))


def test_the_peak_of_memory_is_not_below_what_is_held_now() -> None:
    held = resident_bytes()
    # The system counts both by the page, and the peak now and then.
    assert 10_000_000 < held <= peak_resident_bytes() + 1_000_000


def test_the_record_is_plain_values_alone(engine: Engine, tmp_path: Path) -> None:
    result = last_of(events_of(engine, plan_of(NGRAM))).result
    path = tmp_path / "result.json"
    path.write_text(json.dumps(asdict(result)), encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8"))["measurements"][0]["case"] == "code/short"

"""The benchmark: what is run in which order, and what is made of the numbers."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from core.bench.cases import Case, Suite, load_cases, parse_suite, parse_suites
from core.bench.configuration import (
    Configuration,
    default_configurations,
    parse_configuration,
    parse_configurations,
    with_baselines,
)
from core.bench.machine import peak_resident_bytes, resident_bytes
from core.bench.records import BenchEnded, BenchEvent, Measured, Measurement, WarmUp
from core.bench.runner import Plan, run_bench, schedule
from core.bench.summary import same_text_share, speed_ups, spread, summarise
from core.cancel import CancelToken
from core.engine import Engine
from core.errors import BugError, UserError
from core.events import DrafterOption, Event, Failed, PrefillProgress, Round
from core.requests import DrafterKind, GenerateRequest
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


def measurement(
    configuration: Configuration,
    speed: float | None,
    *,
    case: str = "code/short",
    repeat: int = 0,
    digest: str = "same",
) -> Measurement:
    return Measurement(
        order=0,
        repeat=repeat,
        suite=case.partition("/")[0],
        case=case,
        configuration=configuration.name,
        reason="length",
        digest=digest,
        prompt_tokens=10,
        tokens=8,
        rounds=4,
        proposed=0 if configuration.plain else 8,
        accepted=0 if configuration.plain else 4,
        proposed_at=() if configuration.plain else (4, 4),
        accepted_at=() if configuration.plain else (3, 1),
        tokens_per_second=speed,
        time_to_first_token_ms=50.0,
        decode_ms=100.0,
        draft_ms=0.0 if configuration.plain else 20.0,
        verify_ms=70.0,
        resident_bytes=1000 + repeat,
    )


# The prompts


def test_every_suite_has_four_to_six_different_prompts() -> None:
    for suite in Suite:
        cases = load_cases([suite])
        assert 4 <= len(cases) <= 6
        assert len({case.text for case in cases}) == len(cases)
        assert {case.suite for case in cases} == {suite}


def test_texts_to_summarise_are_as_long_as_the_reference_and_may_get_512_tokens() -> None:
    for case in load_cases([Suite.SUMMARISE]):
        assert 150 < len(case.text.split()) < 260
        assert case.max_new_tokens == 512


def test_an_edit_gives_the_code_that_is_to_be_changed() -> None:
    assert all(case.text.count("```") == 2 for case in load_cases([Suite.EDIT]))


def test_fewer_prompts_and_shorter_replies_can_be_asked_for() -> None:
    cases = load_cases([Suite.CHAT, Suite.EDIT], per_suite=2, max_new_tokens=5)
    assert [case.suite for case in cases] == ["chat", "chat", "edit", "edit"]
    assert {case.max_new_tokens for case in cases} == {5}


def test_suites_are_named_with_commas_each_once_or_all_of_them() -> None:
    assert parse_suites("edit, code,edit") == (Suite.EDIT, Suite.CODE)
    assert parse_suites("all") == tuple(Suite)


@pytest.mark.parametrize("text", ["", "songs", "code,,edit", "code,all"])
def test_a_suite_that_does_not_exist_is_named_with_those_that_do(text: str) -> None:
    with pytest.raises(UserError, match="no suite called") as caught:
        parse_suites(text)
    assert "summarise" in caught.value.action


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "chat"},
        {"max_new_tokens": 0},
        {"prompts": []},
        {"prompts": [{"id": "a", "text": ["x"]}, {"id": "a", "text": ["y"]}]},
        {"prompts": [{"id": "a", "text": [" "]}]},
        {"prompts": [{"id": "a"}]},
        {"more": 1},
    ],
    ids=str,
)
def test_a_file_of_prompts_that_contradicts_itself_is_a_fault(change: dict[str, object]) -> None:
    good = {
        "suite": "code",
        "about": "",
        "max_new_tokens": 8,
        "prompts": [{"id": "a", "text": ["x", "y"]}],
    }
    assert parse_suite(good, Suite.CODE)[0].text == "x\ny"
    with pytest.raises(BugError, match="code"):
        parse_suite({**good, **change}, Suite.CODE)


# How a configuration is written


@pytest.mark.parametrize(
    ("text", "drafter", "gamma", "rule", "temperature"),
    [
        ("off", "off", "auto", "exact", 0.0),
        ("off@0.7", "off", "auto", "exact", 0.7),
        ("model:4", "model", 4, "exact", 0.0),
        ("hybrid:auto", "hybrid", "auto", "exact", 0.0),
        ("ngram:8:block", "ngram", 8, "block", 0.0),
        ("model:auto:typical@1", "model", "auto", "typical", 1.0),
    ],
)
def test_a_configuration_is_read_and_written_in_the_same_way(
    text: str, drafter: str, gamma: int | str, rule: str, temperature: float
) -> None:
    read = parse_configuration(text)
    assert (read.drafter, read.gamma, read.rule, read.temperature) == (
        drafter,
        gamma,
        rule,
        temperature,
    )
    assert read.name == text
    assert parse_configuration(read.name) == read


def test_what_is_left_out_is_automatic_exact_and_greedy() -> None:
    assert parse_configuration(" hybrid ") == parse_configuration("hybrid:auto:exact@0")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no drafter"),
        ("magic:4", "names no drafter"),
        ("off:4", "too many parts"),
        ("model:4:exact:more", "too many parts"),
        ("model:", "draft length ''"),
        ("model:0", "draft length '0'"),
        ("model:17", "draft length '17'"),
        ("model:²", "draft length '²'"),
        ("model:4:magic", "rule is 'magic'"),
        ("model:4@", "no number after the @"),
        ("model:4@warm", "no number after the @"),
        ("model:4@-1", "temperature is -1"),
        ("model:4@nan", "temperature is nan"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_quoted_with_what_is_wrong(
    text: str, said: str
) -> None:
    with pytest.raises(UserError) as caught:
        parse_configuration(text)
    assert repr(text) in caught.value.message
    assert said in caught.value.message
    assert caught.value.action
    assert "\n" not in str(caught.value)


def test_plain_decoding_is_measured_at_every_temperature_that_is_asked_for() -> None:
    asked = parse_configurations("model:2,ngram:3@0.5,model:2")
    assert [one.name for one in with_baselines(asked)] == [
        "off",
        "off@0.5",
        "model:2",
        "ngram:3@0.5",
    ]


def test_a_lossy_rule_is_lossy_above_temperature_zero_alone() -> None:
    assert parse_configuration("model:2:typical@1").lossy
    assert not parse_configuration("model:2:typical").lossy
    assert not parse_configuration("model:2:block@1").lossy


def test_by_default_every_drafter_of_the_pair_is_measured_and_no_n_gram_twice() -> None:
    def names(*kinds: str) -> list[str]:
        options = [DrafterOption(kind=kind, available=kind in kinds) for kind in DrafterKind]
        return [one.name for one in default_configurations(options)]

    assert names("off", "ngram", "hybrid") == ["off", "ngram:auto"]
    assert set(names("off", "model", "ngram", "hybrid")) == {
        "off",
        "model:auto",
        "ngram:auto",
        "hybrid:auto",
    }


# The order


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


# The run


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


# What is made of the numbers


def test_a_spread_is_the_median_between_its_quartiles() -> None:
    values = spread([5.0, 1.0, None, 4.0, 2.0, 3.0])
    assert values is not None
    assert (values.low, values.median, values.high, values.count) == (2.0, 3.0, 4.0, 5)


def test_one_value_is_its_own_spread_and_none_has_none() -> None:
    values = spread([2.5])
    assert values is not None
    assert (values.low, values.median, values.high, values.count) == (2.5, 2.5, 2.5, 1)
    assert spread([None]) is None


def test_a_speed_up_pairs_replies_to_one_prompt_in_one_repeat() -> None:
    measurements = [
        measurement(OFF, 10.0, case="code/a"),
        measurement(OFF, 40.0, case="code/b"),
        measurement(OFF, 20.0, case="code/a", repeat=1),
        measurement(NGRAM, 20.0, case="code/a"),
        measurement(NGRAM, 40.0, case="code/b"),
        measurement(NGRAM, 30.0, case="code/a", repeat=1),
        measurement(NGRAM, 99.0, case="code/b", repeat=1),
    ]
    assert sorted(speed_ups(measurements, NGRAM)) == [1.0, 1.5, 2.0]


def test_a_speed_up_is_over_plain_decoding_at_the_same_temperature() -> None:
    warm = parse_configuration("ngram:3@0.5")
    measurements = [
        measurement(OFF, 10.0),
        measurement(warm.baseline, 5.0),
        measurement(warm, 10.0),
    ]
    assert speed_ups(measurements, warm) == (2.0,)
    assert same_text_share(measurements, warm) is None


def test_a_reply_without_a_speed_has_no_speed_up() -> None:
    assert speed_ups([measurement(OFF, None), measurement(NGRAM, 3.0)], NGRAM) == ()


def test_texts_that_differ_from_plain_ones_are_counted() -> None:
    measurements = [measurement(one, 1.0, repeat=r) for one in (OFF, NGRAM) for r in range(4)]
    measurements[-1] = replace(measurements[-1], digest="other")
    assert same_text_share(measurements, NGRAM) == 0.75
    assert same_text_share(measurements, OFF) is None


def test_acceptance_is_counted_over_all_replies_position_by_position() -> None:
    first = measurement(MODEL, 1.0)
    second = replace(
        first,
        repeat=1,
        rounds=2,
        accepted=4,
        proposed=5,
        proposed_at=(2, 2, 1),
        accepted_at=(2, 2, 0),
        resident_bytes=1001,
    )
    [summary] = summarise([first, second], [MODEL])
    assert summary.mean_acceptance_length == pytest.approx(1 + 8 / 6)
    assert summary.acceptance_by_position == pytest.approx((5 / 6, 3 / 6, 0.0))
    assert summary.draft_share == pytest.approx(0.2)
    assert summary.verify_share == pytest.approx(0.7)
    assert summary.resident_bytes == 1001


def test_several_suites_are_summarised_one_by_one_and_together() -> None:
    measurements = [
        measurement(one, 1.0, case=case) for case in ("code/a", "edit/b") for one in (OFF, NGRAM)
    ]
    summaries = summarise(measurements, [OFF, NGRAM])
    assert [(one.suite, one.configuration, one.replies) for one in summaries] == [
        ("code", "off", 1),
        ("code", "ngram:3", 1),
        ("edit", "off", 1),
        ("edit", "ngram:3", 1),
        ("all", "off", 2),
        ("all", "ngram:3", 2),
    ]


def test_the_record_is_plain_values_alone(engine: Engine, tmp_path: Path) -> None:
    result = last_of(events_of(engine, plan_of(NGRAM))).result
    path = tmp_path / "result.json"
    path.write_text(json.dumps(asdict(result)), encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8"))["measurements"][0]["case"] == "code/short"

"""What the benchmark makes of its numbers: medians, spreads and pairs."""

from dataclasses import replace

import pytest

from core.bench.configuration import Configuration, parse_configuration
from core.bench.records import Measurement
from core.bench.summary import same_text_share, speed_ups, spread, summarise

OFF, NGRAM, MODEL = (parse_configuration(text) for text in ("off", "ngram:3", "model:2"))


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
    [summary] = summarise([first, second], [MODEL], ["code"])
    assert summary.mean_acceptance_length == pytest.approx(1 + 8 / 6)
    assert summary.acceptance_by_position == pytest.approx((5 / 6, 3 / 6, 0.0))
    assert summary.draft_share == pytest.approx(0.2)
    assert summary.verify_share == pytest.approx(0.7)
    assert summary.resident_bytes == 1001


def test_several_suites_are_summarised_one_by_one_and_together() -> None:
    measurements = [
        measurement(one, 1.0, case=case) for case in ("code/a", "edit/b") for one in (OFF, NGRAM)
    ]
    summaries = summarise(measurements, [OFF, NGRAM], ["edit", "code", "chat"])
    assert [(one.suite, one.configuration, one.replies) for one in summaries] == [
        ("edit", "off", 1),
        ("edit", "ngram:3", 1),
        ("code", "off", 1),
        ("code", "ngram:3", 1),
        ("all", "off", 2),
        ("all", "ngram:3", 2),
    ]

"""The numbers of a reply follow their definitions, and never divide by zero."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.events import Origin, Round, Token
from core.metrics import GenerationMetrics, MetricsAccumulator, summarise


def round_(proposed, accepted, *, gamma=4, tokens=None, round_ms=100.0, elapsed_ms=0.0, **times):
    count = accepted + 1 if tokens is None else tokens
    return Round(
        index=0,
        gamma=gamma,
        proposed=proposed,
        accepted=accepted,
        tokens=tuple(
            Token(id=1, text="x", origin=Origin.ACCEPTED, target_prob=1.0) for _ in range(count)
        ),
        round_ms=round_ms,
        elapsed_ms=elapsed_ms,
        **times,
    )


def test_case_17_four_rounds_of_gamma_four():
    metrics = summarise([round_(4, accepted) for accepted in (4, 0, 2, 4)])
    assert (metrics.accepted, metrics.proposed, metrics.rounds) == (10, 16, 4)
    assert metrics.acceptance_rate == 10 / 16
    assert metrics.mean_acceptance_length == 3.5
    assert metrics.position_rates == (3 / 4, 3 / 4, 2 / 4, 2 / 4)
    assert metrics.histogram == ((0, 1), (2, 1), (4, 2))
    assert metrics.tokens == 14


def test_case_16_speed_leaves_the_prefill_out_and_the_first_token_counts_it():
    rounds = [
        round_(4, 4, round_ms=100.0, elapsed_ms=1000.0 + 100.0 * (index + 1)) for index in range(10)
    ]
    metrics = summarise(rounds, prompt_tokens=300, reused_tokens=100, prefill_ms=1000.0)
    assert metrics.tokens == 50
    assert metrics.tokens_per_second == pytest.approx(50.0)
    assert metrics.time_to_first_token_ms == pytest.approx(1100.0)
    assert metrics.prefill_tokens_per_second == pytest.approx(200.0)
    assert metrics.decode_ms == pytest.approx(1000.0)


def test_rounds_without_a_draft_count_as_length_one():
    metrics = summarise([round_(0, 0, gamma=0) for _ in range(3)])
    assert metrics.mean_acceptance_length == 1.0
    assert metrics.acceptance_rate is None
    assert metrics.position_rates == ()
    assert metrics.histogram == ((0, 3),)


def test_rounds_with_and_without_a_draft_mix():
    metrics = summarise([round_(4, 3), round_(0, 0, gamma=0), round_(2, 1)])
    assert metrics.mean_acceptance_length == 1 + 4 / 3
    assert metrics.acceptance_rate == 4 / 6
    assert metrics.position_rates == (1.0, 1 / 2, 1.0, 0.0)
    assert metrics.histogram == ((0, 1), (1, 1), (3, 1))


def test_tokens_after_an_end_are_not_counted():
    # The end token was the second of four drafted ones: three were not used.
    metrics = summarise([round_(2, 2, tokens=2)])
    assert (metrics.tokens, metrics.accepted) == (2, 2)


def test_a_reply_without_rounds_has_no_rates():
    assert summarise([]) == GenerationMetrics()
    assert MetricsAccumulator(prompt_tokens=5).snapshot().tokens_per_second is None


def test_a_clock_that_did_not_move_gives_no_speed():
    assert summarise([round_(0, 0, round_ms=0.0)]).tokens_per_second is None


def test_a_prompt_read_wholly_from_the_cache_has_no_prefill_speed():
    metrics = summarise([], prompt_tokens=10, reused_tokens=10, prefill_ms=2.0)
    assert metrics.prefill_tokens_per_second is None


def test_draft_and_verify_times_add_up():
    metrics = summarise([round_(4, 1, draft_ms=10.0, verify_ms=30.0) for _ in range(3)])
    assert (metrics.draft_ms, metrics.verify_ms) == (30.0, 90.0)


def test_a_snapshot_in_mid_reply_equals_a_summary_so_far():
    accumulator = MetricsAccumulator()
    rounds = [round_(4, 4), round_(4, 0), round_(3, 2)]
    for count, one in enumerate(rounds, start=1):
        accumulator.add(one)
        assert accumulator.snapshot() == summarise(rounds[:count])


pairs = st.integers(0, 8).flatmap(
    lambda proposed: st.tuples(st.just(proposed), st.integers(0, proposed))
)


@given(st.lists(pairs, min_size=1, max_size=30))
def test_the_definitions_hold_for_any_rounds(outcomes):
    metrics = summarise([round_(proposed, accepted) for proposed, accepted in outcomes])
    lengths = [accepted + 1 for _, accepted in outcomes]
    assert metrics.mean_acceptance_length == pytest.approx(sum(lengths) / len(lengths))
    assert metrics.tokens == sum(lengths)
    assert sum(rounds for _, rounds in metrics.histogram) == metrics.rounds
    assert sum(accepted * rounds for accepted, rounds in metrics.histogram) == metrics.accepted
    assert len(metrics.position_rates) == max(proposed for proposed, _ in outcomes)
    assert all(0.0 <= rate <= 1.0 for rate in metrics.position_rates)

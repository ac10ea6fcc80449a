"""What speculation emits, summed up exactly: the target's own distribution, or a lossy rule's."""

import functools
import itertools

import pytest
import torch

from core.decoding.verify import (
    verify_block,
    verify_ensemble,
    verify_exact,
    verify_target_prob,
    verify_typical,
)
from tests.statistical import broken
from tests.statistical.laws import (
    Prefix,
    Tables,
    block_law,
    emitted_law,
    largest_error,
    total_variation,
)

TOLERANCE = 1e-9
SEEN = 0.01
"""Total variation from which on a fault counts as caught; the tolerance is far below it."""
SHAPES = [(4, 1), (3, 2), (4, 2), (3, 3)]  # vocabulary, gamma

lossless = pytest.mark.parametrize("rule", [verify_exact, verify_block])


def random_rows(seed, *, zeros=0.0, sharpness=1.5):
    generator = torch.Generator().manual_seed(seed)

    def row(prefix: Prefix) -> torch.Tensor:
        logits = sharpness * torch.randn(row.vocab, generator=generator, dtype=torch.float64)
        keep = torch.rand(row.vocab, generator=generator, dtype=torch.float64) >= zeros
        keep[int(torch.randint(row.vocab, (1,), generator=generator))] = True
        return torch.softmax(logits.masked_fill(~keep, -torch.inf), dim=-1)

    return row


def random_tables(vocab, depth, seed, **options):
    row = random_rows(seed, **options)
    row.vocab = vocab
    return Tables.build(vocab, depth, row)


def one_hot(tables):
    rows = {
        prefix: torch.nn.functional.one_hot(row.argmax(), tables.vocab).double()
        for prefix, row in tables.rows.items()
    }
    return Tables(rows)


def own_law(target, gamma):
    """The target's law of gamma + 1 tokens."""
    return {ids: target.prob(ids) for ids in target.rows if len(ids) == gamma + 1}


def pair(vocab, gamma, seed=0, **draft_options):
    target = random_tables(vocab, gamma + 1, seed)
    return target, random_tables(vocab, gamma + 1, seed + 100, **draft_options)


def error(rule, target, draft, gamma, **options):
    return largest_error(emitted_law(rule, target, draft, gamma, **options), own_law(target, gamma))


@lossless
@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_sampled_draft_leaves_the_targets_law(rule, vocab, gamma, seed):
    target, draft = pair(vocab, gamma, seed)
    assert error(rule, target, draft, gamma) < TOLERANCE


@lossless
@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_a_draft_that_cannot_draw_some_tokens_leaves_the_targets_law(rule, vocab, gamma):
    target, draft = pair(vocab, gamma, zeros=0.5)
    assert error(rule, target, draft, gamma) < TOLERANCE


@lossless
@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_tokens_that_the_target_filtered_out_are_never_emitted(rule, vocab, gamma):
    target = random_tables(vocab, gamma + 1, 3, zeros=0.5)
    draft = random_tables(vocab, gamma + 1, 4, zeros=0.3)
    law = emitted_law(rule, target, draft, gamma)
    assert largest_error(law, own_law(target, gamma)) < TOLERANCE
    assert all(target.prob(ids) > 0.0 for ids, share in law.items() if share > 0.0)


@lossless
@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_a_draft_equal_to_the_target_leaves_its_law(rule, vocab, gamma):
    target = random_tables(vocab, gamma + 1, 5)
    assert error(rule, target, target, gamma) < TOLERANCE


@lossless
@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_a_one_hot_draft_leaves_the_targets_law(rule, vocab, gamma):
    target, draft = pair(vocab, gamma, 6)
    assert error(rule, target, one_hot(draft), gamma) < TOLERANCE


@lossless
@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_a_deterministic_draft_leaves_the_targets_law(rule, vocab, gamma):
    target, draft = pair(vocab, gamma, 7)
    assert error(rule, target, draft, gamma, deterministic=True) < TOLERANCE


@lossless
def test_a_one_hot_target_leaves_nothing_to_chance(rule):
    target, draft = pair(3, 3, 8)
    target = one_hot(target)
    law = emitted_law(rule, target, draft, 3)
    assert largest_error(law, own_law(target, 3)) < TOLERANCE
    assert sum(share > 0.0 for share in law.values()) == 1


@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_judging_whole_blocks_accepts_at_least_as_much(vocab, gamma):
    target, draft = pair(vocab, gamma, 9)

    def mean_length(rule):
        return sum(
            draft.prob(ids) * share * len(block)
            for ids in itertools.product(range(vocab), repeat=gamma)
            for block, share in block_law(
                rule, ids, draft.along(ids, gamma), target.along(ids, gamma + 1)
            ).items()
        )

    gain = mean_length(verify_block) - mean_length(verify_exact)
    assert gain > -TOLERANCE
    assert gamma == 1 or gain > 1e-4


def first_token_law(rule, target, draft, **options):
    law = emitted_law(rule, target, draft, 1, **options)
    first = torch.zeros(target.vocab, dtype=torch.float64)
    for ids, share in law.items():
        first[ids[0]] += share
    return first


@pytest.mark.parametrize("seed", range(4))
def test_accepting_with_the_target_alone_follows_its_closed_form(seed):
    target, draft = pair(4, 1, seed)
    p, q = target.rows[()], draft.rows[()]
    expected = p * (1.0 + q - (q * p).sum())
    law = first_token_law(verify_target_prob, target, draft)
    assert torch.allclose(law, expected, rtol=0.0, atol=TOLERANCE)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("epsilon", "delta"), [(0.09, 0.3), (0.3, 1.0)])
def test_typical_acceptance_follows_its_closed_form(seed, epsilon, delta):
    target, draft = pair(4, 1, seed)
    p, q = target.rows[()], draft.rows[()]
    limit = min(epsilon, delta * float(torch.exp((p * p.log()).sum())))
    typical = p > limit
    expected = q * typical + (1.0 - q[typical].sum()) * p
    rule = functools.partial(verify_typical, epsilon=epsilon, delta=delta)
    law = first_token_law(rule, target, draft)
    assert torch.allclose(law, expected, rtol=0.0, atol=TOLERANCE)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weight", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("deterministic", [False, True])
def test_an_ensemble_emits_exactly_the_mixture(seed, weight, deterministic):
    target, draft = pair(4, 1, seed)
    proposal = one_hot(draft) if deterministic else draft
    expected = weight * target.rows[()] + (1.0 - weight) * proposal.rows[()]
    rule = functools.partial(verify_ensemble, weight=weight)
    law = first_token_law(rule, target, draft, deterministic=deterministic)
    assert torch.allclose(law, expected, rtol=0.0, atol=TOLERANCE)


@pytest.mark.parametrize("rule", broken.FOR_SAMPLED_DRAFTS, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_a_broken_rule_is_caught(rule, vocab, gamma):
    target, draft = pair(vocab, gamma, zeros=0.4)
    law = emitted_law(rule, target, draft, gamma)
    assert total_variation(law, own_law(target, gamma)) > SEEN


@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_a_greedy_draft_judged_as_a_sampled_one_is_caught(vocab, gamma):
    target, draft = pair(vocab, gamma, 7)
    rule = broken.takes_a_greedy_draft_for_a_sampled_one(lambda ids: draft.along(ids, gamma))
    law = emitted_law(rule, target, draft, gamma, deterministic=True)
    assert total_variation(law, own_law(target, gamma)) > SEEN

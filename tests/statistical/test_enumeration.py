"""What speculation emits is the target's own distribution, summed up exactly."""

import pytest
import torch

from core.decoding.verify import verify_exact
from tests.statistical import broken
from tests.statistical.laws import Prefix, Tables, emitted_law, largest_error, total_variation

TOLERANCE = 1e-9
SEEN = 0.01
"""Total variation from which on a fault counts as caught; the tolerance is far below it."""
SHAPES = [(4, 1), (3, 2), (4, 2), (3, 3)]  # vocabulary, gamma


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


@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_sampled_draft_leaves_the_targets_law(vocab, gamma, seed):
    target, draft = pair(vocab, gamma, seed)
    assert error(verify_exact, target, draft, gamma) < TOLERANCE


@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_a_draft_that_cannot_draw_some_tokens_leaves_the_targets_law(vocab, gamma):
    target, draft = pair(vocab, gamma, zeros=0.5)
    assert error(verify_exact, target, draft, gamma) < TOLERANCE


@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_tokens_that_the_target_filtered_out_are_never_emitted(vocab, gamma):
    target = random_tables(vocab, gamma + 1, 3, zeros=0.5)
    draft = random_tables(vocab, gamma + 1, 4, zeros=0.3)
    law = emitted_law(verify_exact, target, draft, gamma)
    assert largest_error(law, own_law(target, gamma)) < TOLERANCE
    assert all(target.prob(ids) > 0.0 for ids, share in law.items() if share > 0.0)


@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_a_draft_equal_to_the_target_leaves_its_law(vocab, gamma):
    target = random_tables(vocab, gamma + 1, 5)
    assert error(verify_exact, target, target, gamma) < TOLERANCE


@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_a_one_hot_draft_leaves_the_targets_law(vocab, gamma):
    target, draft = pair(vocab, gamma, 6)
    assert error(verify_exact, target, one_hot(draft), gamma) < TOLERANCE


@pytest.mark.parametrize(("vocab", "gamma"), SHAPES)
def test_a_deterministic_draft_leaves_the_targets_law(vocab, gamma):
    target, draft = pair(vocab, gamma, 7)
    assert error(verify_exact, target, draft, gamma, deterministic=True) < TOLERANCE


def test_a_one_hot_target_leaves_nothing_to_chance():
    target, draft = pair(3, 3, 8)
    target = one_hot(target)
    law = emitted_law(verify_exact, target, draft, 3)
    assert largest_error(law, own_law(target, 3)) < TOLERANCE
    assert sum(share > 0.0 for share in law.values()) == 1


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

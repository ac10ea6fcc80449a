"""Filters and penalties under the lossless rules: each token follows what it must, given the past.

Under a penalty every token has a distribution of its own. What is tested is the sum, over all
tokens that followed the same one, of what came less what was to be expected: its covariance is
known exactly, whatever the past was, so its square is a chi-square. False alarms are one in a
million at fixed seeds, and every fault below must be caught at the same rate.
"""

from collections.abc import Sequence

import pytest
import torch

from core.decoding.gamma import FixedGamma
from core.decoding.loop import AcceptanceRule, Limits, decode
from core.decoding.sampling import Sampler, draw
from core.decoding.verify import Verdict, residual, verify_block, verify_exact
from core.drafting.model import ModelDrafter
from core.models.cache import TokenCache
from core.requests import SamplingParams
from tests.statistical import broken
from tests.statistical.test_sampling import FALSE_ALARM_RATE, TableRunner

VOCAB = 6
REPLY = 10
REPLIES = 200
PROMPT = [0, 3]

SHAPES = {
    "top-k": {"top_k": 3},
    "top-p": {"top_p": 0.75},
    "min-p": {"min_p": 0.2},
    "repetition": {"repetition_penalty": 1.8},
    "strong-repetition": {"repetition_penalty": 2.5},
    "presence": {"presence_penalty": 2.0},
    "frequency": {"frequency_penalty": 1.0},
    "all": {
        "top_k": 5,
        "top_p": 0.95,
        "min_p": 0.02,
        "repetition_penalty": 1.3,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.3,
    },
}
RULES = {"exact": verify_exact, "block": verify_block}


def table(seed: int, scale: float) -> torch.Tensor:
    return scale * torch.randn(VOCAB, VOCAB, generator=torch.Generator().manual_seed(seed))


TARGET = table(1, 1.2)
DRAFT = 0.6 * TARGET + table(2, 1.0)


def params(shape: str) -> SamplingParams:
    return SamplingParams(temperature=0.8, **SHAPES[shape])


def replies(
    shape: str, rule: AcceptanceRule, *, gamma: int = 3, sampler: type[Sampler] = Sampler
) -> list[list[int]]:
    """Many short replies of a target and a draft model, prompts included."""
    generator = torch.Generator().manual_seed(17)
    made = []
    for _ in range(REPLIES):
        ids = list(PROMPT)
        rounds = decode(
            target=TokenCache(TableRunner(TARGET)),
            drafter=ModelDrafter(TableRunner(DRAFT)),
            gamma=FixedGamma(gamma),
            sampler=sampler(params(shape), vocab_size=VOCAB, prompt_ids=ids, generator=generator),
            ids=ids,
            limits=Limits(max_new_tokens=REPLY, context_limit=2**31, stop_ids=frozenset()),
            cancelled=lambda: False,
            rule=rule,
        )
        for _ in rounds:
            pass
        made.append(ids)
    return made


def expected_probs(ids: Sequence[int], shape: str) -> torch.Tensor:
    """What each token of a reply is drawn from, [tokens, vocab], by the definitions alone."""
    wanted = params(shape)
    rows = []
    for end in range(len(PROMPT), len(ids)):
        logits = TARGET[ids[end - 1]].double().clone()
        for token in range(VOCAB):
            if token in ids[:end]:
                factor = wanted.repetition_penalty
                logits[token] = (
                    logits[token] / factor if logits[token] > 0 else (logits[token] * factor)
                )
            count = ids[len(PROMPT) : end].count(token)
            logits[token] -= wanted.frequency_penalty * count
            logits[token] -= wanted.presence_penalty * (count > 0)
        rows.append(_filtered(torch.softmax(logits / wanted.temperature, dim=0), wanted))
    return torch.stack(rows)


def _filtered(probs: torch.Tensor, wanted: SamplingParams) -> torch.Tensor:
    order = probs.argsort(descending=True)
    if wanted.top_k:
        probs[order[wanted.top_k :]] = 0.0
        probs = probs / probs.sum()
    before = probs[order].cumsum(0) - probs[order]
    probs[order[before >= wanted.top_p]] = 0.0
    probs = probs / probs.sum()
    probs[probs < wanted.min_p * probs.max()] = 0.0
    return probs / probs.sum()


def p_value(made: list[list[int]], shape: str) -> float:
    """How likely what came is, if every token followed its own distribution."""
    surplus = torch.zeros(VOCAB, VOCAB, dtype=torch.float64)  # [token before, token]
    covariance = torch.zeros(VOCAB, VOCAB, VOCAB, dtype=torch.float64)
    for ids in made:
        probs = expected_probs(ids, shape)  # [tokens, vocab]
        before = torch.tensor(ids[len(PROMPT) - 1 : -1])
        came = torch.nn.functional.one_hot(torch.tensor(ids[len(PROMPT) :]), VOCAB).double()
        if bool((probs[came.bool()] == 0).any()):
            return 0.0  # a token came that could not
        spread = torch.diag_embed(probs) - probs[:, :, None] * probs[:, None, :]
        surplus.index_add_(0, before, came - probs)
        covariance.index_add_(0, before, spread)
    inverse = torch.linalg.pinv(covariance, rtol=1e-9, hermitian=True)
    statistic = torch.einsum("ai,aij,aj->", surplus, inverse, surplus)
    freedom = torch.linalg.matrix_rank(covariance, rtol=1e-9, hermitian=True).sum().double()
    return float(torch.special.gammaincc(freedom / 2, statistic / 2))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shape", SHAPES)
def test_shaped_tokens_follow_the_targets_distribution(shape, rule):
    assert p_value(replies(shape, RULES[rule]), shape) > FALSE_ALARM_RATE


@pytest.mark.parametrize("shape", ["top-k", "frequency", "all"])
def test_plain_tokens_follow_it_too(shape):
    assert p_value(replies(shape, verify_exact, gamma=0), shape) > FALSE_ALARM_RATE


def block_resampling_from_the_target(draft_ids, draft_probs, target_probs, uniforms) -> Verdict:
    """Block verification that draws from p after a rejection."""
    accepted = verify_block(draft_ids, draft_probs, target_probs, uniforms).accepted
    return Verdict(accepted, draw(target_probs[accepted], uniforms[-1]))


def block_that_stops_at_the_first_failure(
    draft_ids, draft_probs, target_probs, uniforms
) -> Verdict:
    """Block verification that takes the first failure for the end of the accepted prefix."""
    accepted = 0
    for position in range(len(draft_ids)):
        alone = [1.0] * len(uniforms)
        alone[position] = uniforms[position]
        if verify_block(draft_ids, draft_probs, target_probs, alone).accepted <= position:
            break
        accepted = position + 1
    if accepted == len(draft_ids):
        return Verdict(accepted, draw(target_probs[accepted], uniforms[-1]))
    joint = 1.0
    for position, token in enumerate(draft_ids[:accepted]):
        ratio = float(target_probs[position, token] / draft_probs[position, token])
        joint = min(1.0, joint * ratio)
    rest = residual(joint * target_probs[accepted], draft_probs[accepted])
    return Verdict(accepted, draw(rest, uniforms[-1]))


BROKEN = (
    *broken.FOR_SAMPLED_DRAFTS,
    block_resampling_from_the_target,
    block_that_stops_at_the_first_failure,
)


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("shape", ["min-p", "repetition"])
def test_a_broken_rule_is_caught_under_filters_and_penalties(rule, shape):
    assert p_value(replies(shape, rule), shape) < FALSE_ALARM_RATE


class Forgetful(Sampler):
    """Penalises what is committed alone, and not what was drafted before in the same round."""

    def shape(self, logits: torch.Tensor, drafted: Sequence[int] = ()) -> torch.Tensor:
        return super().shape(logits, ())


class LastSeen(Sampler):
    """Penalises the last token of each round alone."""

    def commit(self, ids: Sequence[int]) -> None:
        super().commit(ids[-1:])


@pytest.mark.parametrize(
    ("sampler", "shape"),
    [
        (Forgetful, "strong-repetition"),
        (Forgetful, "presence"),
        (Forgetful, "frequency"),
        (LastSeen, "presence"),
        (LastSeen, "all"),
    ],
)
@pytest.mark.parametrize("rule", RULES)
def test_penalties_that_forget_part_of_a_round_are_caught(sampler, shape, rule):
    assert p_value(replies(shape, RULES[rule], sampler=sampler), shape) < FALSE_ALARM_RATE

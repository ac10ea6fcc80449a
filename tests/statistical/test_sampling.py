"""Sampled replies follow the target's distribution: through the loop, and through the engine.

Every check is a chi-square test with a false-alarm rate of one in a million and fixed seeds, so it
never fails by chance; every fault below must be caught at the same rate.
"""

from collections.abc import Sequence

import pytest
import torch

from core.decoding.gamma import FixedGamma
from core.decoding.loop import Limits, decode
from core.decoding.sampling import Sampler, filtered_probs
from core.decoding.verify import verify_exact
from core.drafting.base import Draft
from core.drafting.model import ModelDrafter
from core.engine import Engine
from core.events import Origin
from core.models.cache import TokenCache
from core.requests import SamplingParams
from tests.helpers import tiny
from tests.statistical import broken
from tests.statistical.laws import chi_square_p_value

FALSE_ALARM_RATE = 1e-6
VOCAB = 8
SAMPLES = 8_000
PLAIN = SamplingParams(temperature=1.0, seed=11)
FILTERED = SamplingParams(temperature=0.7, top_k=5, top_p=0.8, seed=11)


class TableRunner:
    """A model whose next token depends on the last one alone, so that counts are soon complete."""

    croppable = True
    context_limit = 2**31

    def __init__(self, logits: torch.Tensor) -> None:
        self.width = self.vocab_size = len(logits)
        self.device = logits.device
        self.length = 0
        self._logits = logits

    def forward(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        self.length += len(ids)
        return self._logits[list(ids[-rows:])]

    def crop(self, length: int) -> int:
        self.length = min(length, self.length)
        return self.length


class GreedyTableDrafter:
    """Proposes the most likely token after each, drawn from ``claimed_probs`` as it says."""

    def __init__(self, logits: torch.Tensor, claimed_probs: torch.Tensor | None = None) -> None:
        self._next = logits.argmax(dim=-1).tolist()
        self._claimed_probs = claimed_probs

    def propose(self, context: Sequence[int], gamma: int) -> Draft:
        ids = [context[-1]]
        for _ in range(gamma):
            ids.append(self._next[ids[-1]])
        probs = None if self._claimed_probs is None else self._claimed_probs[ids[:-1]]
        return Draft(tuple(ids[1:]), probs)

    def commit(self, accepted: int, committed_ids: Sequence[int]) -> None:
        pass

    def reset(self) -> None:
        pass


@pytest.fixture(scope="module")
def target_logits():
    return 1.2 * torch.randn(VOCAB, VOCAB, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def draft_logits(target_logits):
    """A draft that is right now and then."""
    noise = torch.randn(VOCAB, VOCAB, generator=torch.Generator().manual_seed(2))
    return 0.5 * target_logits + noise


def sampled(target_logits, drafter, gamma, params, rule=verify_exact):
    """Decode one long reply."""
    ids = [0]
    target = TokenCache(TableRunner(target_logits))
    rounds = decode(
        target=target,
        drafter=drafter,
        gamma=FixedGamma(gamma),
        sampler=Sampler(params, vocab_size=VOCAB, prompt_ids=ids),
        ids=ids,
        limits=Limits(max_new_tokens=SAMPLES, context_limit=2**31, stop_ids=frozenset()),
        cancelled=lambda: False,
        rule=rule,
    )
    for _ in rounds:
        pass
    return ids


def transitions_p_value(ids, target_logits, params):
    """How likely the counts of each token after each other are under the target."""
    probs = filtered_probs(target_logits, params).double()
    pairs = torch.tensor(ids[:-1]) * VOCAB + torch.tensor(ids[1:])
    observed = torch.bincount(pairs, minlength=VOCAB * VOCAB).reshape(VOCAB, VOCAB).double()
    expected = observed.sum(dim=-1, keepdim=True) * probs
    visited = observed.sum(dim=-1) > 0
    df = int((probs[visited] > 0).sum() - visited.sum())
    return chi_square_p_value(observed.flatten(), expected.flatten(), df)


def model_drafter(logits):
    return ModelDrafter(TableRunner(logits))


@pytest.mark.parametrize("params", [PLAIN, FILTERED], ids=["plain", "filtered"])
@pytest.mark.parametrize("gamma", [0, 1, 4])
def test_a_sampled_draft_leaves_the_targets_distribution(
    target_logits, draft_logits, gamma, params
):
    ids = sampled(target_logits, model_drafter(draft_logits), gamma, params)
    assert transitions_p_value(ids, target_logits, params) > FALSE_ALARM_RATE


def test_an_opposite_draft_leaves_the_targets_distribution(target_logits):
    ids = sampled(target_logits, model_drafter(-target_logits), 3, PLAIN)
    assert transitions_p_value(ids, target_logits, PLAIN) > FALSE_ALARM_RATE


@pytest.mark.parametrize("params", [PLAIN, FILTERED], ids=["plain", "filtered"])
def test_a_greedy_draft_leaves_the_targets_distribution(target_logits, draft_logits, params):
    ids = sampled(target_logits, GreedyTableDrafter(draft_logits), 3, params)
    assert transitions_p_value(ids, target_logits, params) > FALSE_ALARM_RATE


@pytest.mark.parametrize("rule", broken.FOR_SAMPLED_DRAFTS, ids=lambda rule: rule.__name__)
def test_a_broken_rule_is_caught(target_logits, draft_logits, rule):
    ids = sampled(target_logits, model_drafter(draft_logits), 2, PLAIN, rule)
    assert transitions_p_value(ids, target_logits, PLAIN) < FALSE_ALARM_RATE


def test_draft_probs_from_before_the_filters_are_caught(target_logits, draft_logits):
    rule = broken.takes_draft_probs_before_filters
    ids = sampled(target_logits, model_drafter(draft_logits), 2, FILTERED, rule)
    assert transitions_p_value(ids, target_logits, FILTERED) < FALSE_ALARM_RATE


def test_a_greedy_draft_judged_as_a_sampled_one_is_caught(target_logits, draft_logits):
    drafter = GreedyTableDrafter(draft_logits, filtered_probs(draft_logits, PLAIN))
    ids = sampled(target_logits, drafter, 2, PLAIN)
    assert transitions_p_value(ids, target_logits, PLAIN) < FALSE_ALARM_RATE


REPLIES = 800
NARROW = 6
PROMPT = (1, 2, 3)


@pytest.fixture(scope="module")
def target():
    return tiny.tiny_llama(vocab=NARROW, hidden=16, context=64)


def two_tokens_p_value(engine, target, params):
    """How likely the first two tokens of many replies are under the target's own passes."""
    counts = torch.zeros(NARROW, NARROW, dtype=torch.float64)
    for seed in range(REPLIES):
        wanted = tiny.request(PROMPT, gamma=4, max_new_tokens=2, **params, seed=seed)
        first, second = tiny.ids(tiny.run(engine, wanted))
        counts[first, second] += 1
    shape = SamplingParams(**params)
    with torch.inference_mode():
        inputs = torch.tensor([[*PROMPT, token] for token in range(NARROW)])
        logits = target(inputs).logits
    first_probs = filtered_probs(logits[:1, -2], shape).double()  # [1, vocab]
    second_probs = filtered_probs(logits[:, -1], shape).double()  # [vocab, vocab]
    law = first_probs[0, :, None] * second_probs
    df = int((law > 0).sum()) - 1
    return chi_square_p_value(counts.flatten(), REPLIES * law.flatten(), df)


def engine_with(target, draft):
    return Engine.from_parts(target=target, tokenizer=tiny.byte_tokenizer(), draft=draft)


def test_case_4_the_engine_with_an_opposite_draft_matches_the_target(target):
    engine = engine_with(target, tiny.anti(target))
    assert two_tokens_p_value(engine, target, {"temperature": 1.0}) > FALSE_ALARM_RATE


def test_case_5_filters_shape_the_engines_tokens_as_the_targets(target):
    engine = engine_with(target, tiny.noisy(target, scale=0.6))
    params = {"temperature": 0.7, "top_k": 5, "top_p": 0.8}
    assert two_tokens_p_value(engine, target, params) > FALSE_ALARM_RATE


def test_an_engine_with_a_broken_rule_is_caught(target, monkeypatch):
    rule = broken.resamples_from_the_target
    monkeypatch.setattr("core.engine.acceptance_rule", lambda speculation: rule)
    engine = engine_with(target, tiny.anti(target))
    assert two_tokens_p_value(engine, target, {"temperature": 1.0}) < FALSE_ALARM_RATE


def test_case_6_the_bonus_token_is_sampled():
    target = tiny.tiny_llama(context=64)
    engine = engine_with(target, target)
    bonus = set()
    for seed in range(300):
        wanted = tiny.request(PROMPT, gamma=1, max_new_tokens=2, temperature=1.5, seed=seed)
        last = tiny.tokens(tiny.run(engine, wanted))[-1]
        assert last.origin == Origin.BONUS
        bonus.add(last.id)
    assert len(bonus) > 10


def test_the_same_seed_gives_the_same_reply(target):
    engine = engine_with(target, tiny.noisy(target, scale=0.6))
    wanted = tiny.request(PROMPT, temperature=1.0, seed=3)
    assert tiny.ids(tiny.run(engine, wanted)) == tiny.ids(tiny.run(engine, wanted))

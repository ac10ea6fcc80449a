"""Sampled replies that a head drafted for follow the target's distribution.

Chi-square tests with a false-alarm rate of one in a million and fixed seeds.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from core.decoding.gamma import FixedGamma
from core.decoding.loop import Limits, decode
from core.decoding.sampling import Sampler, filtered_probs
from core.decoding.verify import verify_block, verify_exact
from core.drafting.growing import GrowingDraft
from core.drafting.model import ModelDrafter
from core.drafting.mtp import MtpDrafter
from core.models.cache import TokenCache
from core.models.mtp.card import HeadKind
from core.models.mtp.inference import make_head_runner
from core.requests import SamplingParams
from tests.helpers.heads import random_head
from tests.statistical.laws import chi_square_p_value

FALSE_ALARM_RATE = 1e-6
VOCAB = 8
HIDDEN = 32
TOKENS = 1_500
REDUCED = (5, 0, 3, 1)
PLAIN = SamplingParams(temperature=1.0, seed=3)
FILTERED = SamplingParams(temperature=0.7, top_k=6, top_p=0.9, seed=3)


class TableHost:
    """A model of two layers whose states and next token depend on the last one alone."""

    croppable, context_limit, layers, hidden = True, 2**31, 2, HIDDEN

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.width = self.vocab_size = VOCAB
        self.device = torch.device("cpu")
        self.length = 0
        self.states: torch.Tensor | None = None
        self._kept = 0
        self._embedding = torch.randn(VOCAB, HIDDEN, generator=generator)
        self._head = 0.3 * torch.randn(VOCAB, HIDDEN, generator=generator)
        self.logits = self._embedding @ self._head.T

    def forward(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        self.length += len(ids)
        self.states = self.embed(ids).repeat(1, self._kept)
        return self.logits[list(ids[-rows:])]

    def crop(self, length: int) -> int:
        self.length = min(length, self.length)
        return self.length

    def keep_states(self, layers: Sequence[int]) -> None:
        self._kept = len(layers)

    def embed(self, ids: Sequence[int]) -> torch.Tensor:
        return self._embedding[list(ids)]

    def unembedding(self, ids: Sequence[int]) -> torch.Tensor:
        return self._head[list(ids)]


def transitions_p_value(rule, params, *, kind=HeadKind.SEQUENTIAL, on_draft=False, vocabulary=None):
    """How likely the counts of each token after each other in a reply are under the target."""
    target = TokenCache(TableHost(0))
    model = ModelDrafter(TableHost(1)) if on_draft else None
    host = target if model is None else model.cache
    head = random_head(host.runner, kind=kind, vocabulary=vocabulary)
    with torch.no_grad():
        for name in ("final_norm", "outer.0.weight"):
            head.state_dict().get(name, torch.empty(0)).mul_(0.5)
    runner = make_head_runner(head, host.runner, VOCAB)
    drafter = MtpDrafter(runner, host, vocab_size=VOCAB, model=model)
    ids = [0]
    rounds = decode(
        target=target,
        drafter=drafter,
        gamma=FixedGamma(3),
        sampler=Sampler(params, vocab_size=VOCAB, prompt_ids=ids),
        ids=ids,
        limits=Limits(max_new_tokens=TOKENS, context_limit=2**31, stop_ids=frozenset()),
        cancelled=lambda: False,
        rule=rule,
    )
    accepted = [round_ids.accepted for round_ids in rounds]
    assert 0 < sum(accepted) < 2 * len(accepted)  # so that both outcomes are seen
    probs = filtered_probs(target.runner.logits, params).double()
    pairs = torch.tensor(ids[:-1]) * VOCAB + torch.tensor(ids[1:])
    observed = torch.bincount(pairs, minlength=VOCAB * VOCAB).reshape(VOCAB, VOCAB).double()
    expected = observed.sum(dim=-1, keepdim=True) * probs
    visited = observed.sum(dim=-1) > 0
    df = int((probs[visited] > 0).sum() - visited.sum())
    return chi_square_p_value(observed.flatten(), expected.flatten(), df)


@pytest.mark.parametrize("rule", [verify_exact, verify_block])
@pytest.mark.parametrize("kind", HeadKind)
def test_a_head_that_knows_some_tokens_leaves_the_targets_distribution(rule, kind):
    value = transitions_p_value(rule, PLAIN, kind=kind, vocabulary=REDUCED)
    assert value > FALSE_ALARM_RATE


@pytest.mark.parametrize("rule", [verify_exact, verify_block])
def test_a_head_leaves_the_filtered_distribution(rule):
    assert transitions_p_value(rule, FILTERED) > FALSE_ALARM_RATE


@pytest.mark.parametrize("kind", HeadKind)
def test_a_head_on_a_draft_model_leaves_the_targets_distribution(kind):
    value = transitions_p_value(verify_block, PLAIN, kind=kind, on_draft=True, vocabulary=REDUCED)
    assert value > FALSE_ALARM_RATE


def test_a_head_that_claims_another_distribution_is_caught(monkeypatch):
    finished = GrowingDraft.finished

    def flattered(draft):
        made = finished(draft)
        if made.probs is None:
            return made
        return replace(made, probs=made.probs**2 / (made.probs**2).sum(-1, keepdim=True))

    monkeypatch.setattr(GrowingDraft, "finished", flattered)
    assert transitions_p_value(verify_exact, PLAIN, vocabulary=REDUCED) < FALSE_ALARM_RATE


def test_a_head_that_forgets_what_it_cannot_draft_is_caught(monkeypatch):
    finished = GrowingDraft.finished

    def uncut(draft):
        made = finished(draft)
        if made.probs is None:
            return made
        return replace(made, probs=0.5 * made.probs + 0.5 / VOCAB)

    monkeypatch.setattr(GrowingDraft, "finished", uncut)
    assert transitions_p_value(verify_exact, PLAIN, vocabulary=REDUCED) < FALSE_ALARM_RATE

"""Propose, verify, commit: the speculative decoding loop, on token ids alone."""

import operator
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

import torch

from core.decoding.gamma import GammaController
from core.decoding.sampling import Sampler, has_valid_numbers
from core.decoding.verify import Verdict, verify_exact, verify_greedy
from core.drafting.base import Draft, DraftContext, Drafter
from core.errors import BugError, UserError
from core.events import FinishReason, GammaBelief, Origin
from core.models.cache import TokenCache

AcceptanceRule = Callable[
    [Sequence[int], torch.Tensor | None, torch.Tensor, Sequence[float]], Verdict
]
"""Drafted ids, draft_probs, target_probs and uniforms to a verdict, as in verify.py."""

_EMPTY = Draft(())


@dataclass(frozen=True, slots=True)
class Decided:
    """One token of a round before it has text."""

    id: int
    origin: str
    target_prob: float
    draft_prob: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundIds:
    """The outcome of a round in ids; ``reason`` is set when the reply ends with it."""

    gamma: int
    proposed: int
    accepted: int
    tokens: tuple[Decided, ...]
    rejected: tuple[Decided, ...]
    draft_ms: float
    verify_ms: float
    round_ms: float
    context_length: int
    reason: str | None
    belief: GammaBelief | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a reply ends: new tokens, tokens of prompt and reply together, and end tokens."""

    max_new_tokens: int
    context_limit: int
    stop_ids: frozenset[int]


def decode(
    *,
    target: TokenCache,
    drafter: Drafter | None,
    gamma: GammaController,
    sampler: Sampler,
    ids: list[int],
    limits: Limits,
    cancelled: Callable[[], bool],
    rule: AcceptanceRule = verify_exact,
) -> Generator[RoundIds, None, None]:
    """Yield rounds until the reply ends; the last one carries the reason.

    ``ids`` is the prompt and grows by the reply. ``target`` holds all of it but the newest token,
    before, between and after rounds, however the loop is left. Cancelling ends the loop after the
    round that is running, without a reason. ``rule`` counts above temperature 0 only: at 0 every
    lossless rule is the greedy one.
    """
    prompt_length = len(ids)
    context = DraftContext(
        ids,
        prompt_length=prompt_length,
        sampler=sampler,
        gamma=gamma,
        stop_ids=limits.stop_ids,
    )
    gamma.begin()
    try:
        while not cancelled():
            started = time.perf_counter()
            room = min(
                limits.max_new_tokens - (len(ids) - prompt_length), limits.context_limit - len(ids)
            )
            if room <= 0:
                raise BugError("The loop was asked for a token past the end.")
            asked = gamma.next()
            draft = _proposal(drafter, context, min(asked, room - 1), target.runner.vocab_size)
            drafted_at = time.perf_counter()
            logits = target.feed([ids[-1], *draft.ids], len(draft.ids) + 1)
            if not has_valid_numbers(logits):
                raise UserError(
                    "The model gives no valid numbers: its weights may be damaged.",
                    "Load it in another precision, or fetch it again.",
                )
            verdict, shown_probs = _judge(draft, logits, sampler, rule)
            tokens, rejected = _decided(draft, verdict, shown_probs)
            verified_at = time.perf_counter()
            tokens, ended = _cut_after_stop(tokens, limits.stop_ids)
            accepted = min(verdict.accepted, len(tokens))
            committed = [token.id for token in tokens]
            ids.extend(committed)
            target.rewind(len(ids) - 1)
            sampler.commit(committed)
            # What an end token cut off was neither accepted nor rejected, so it does not count.
            proposed = len(draft.ids) if not ended or accepted < len(tokens) else accepted
            draft_ms = 1000.0 * (drafted_at - started)
            verify_ms = 1000.0 * (verified_at - drafted_at)
            gamma.observe(_cut(draft, proposed), accepted, draft_ms, verify_ms)
            reason = _reason(ended, len(ids) - prompt_length, len(ids), limits)
            yield RoundIds(
                gamma=proposed if gamma.is_automatic or drafter is None else asked,
                belief=gamma.belief(),
                proposed=proposed,
                accepted=accepted,
                tokens=tokens,
                rejected=rejected if proposed == len(draft.ids) else (),
                draft_ms=draft_ms,
                verify_ms=verify_ms,
                round_ms=1000.0 * (time.perf_counter() - started),
                context_length=len(ids),
                reason=reason,
            )
            # What was decided is out by now, so a drafter that fails here costs no text.
            if drafter is not None:
                drafter.commit(accepted, committed)
            if reason is not None:
                return
    finally:
        target.rewind(len(ids) - 1)


def _proposal(drafter: Drafter | None, context: DraftContext, gamma: int, vocab_size: int) -> Draft:
    """Ask for a draft and hold it to its promises: at most gamma tokens, all of the vocabulary."""
    draft = drafter.propose(context, gamma) if drafter is not None and gamma > 0 else None
    if draft is None:
        return _EMPTY
    ids = tuple(operator.index(token) for token in draft.ids)
    if draft.probs is not None and draft.probs.shape != (len(ids), vocab_size):
        raise BugError(
            f"A drafter gave {tuple(draft.probs.shape)} probabilities for {len(ids)} tokens."
        )
    allowed = ids[:gamma]
    unknown = (i for i, token in enumerate(allowed) if not 0 <= token < vocab_size)
    return _cut(replace(draft, ids=ids), next(unknown, len(allowed)))


def _cut(draft: Draft, count: int) -> Draft:
    if count == len(draft.ids):
        return draft
    return replace(
        draft,
        ids=draft.ids[:count],
        probs=None if draft.probs is None else draft.probs[:count],
        confidence=draft.confidence[:count],
    )


@torch.inference_mode()
def _judge(
    draft: Draft, logits: torch.Tensor, sampler: Sampler, rule: AcceptanceRule
) -> tuple[Verdict, torch.Tensor]:
    """Return the verdict and the probabilities [rows, vocab] to show beside the tokens."""
    if sampler.greedy:
        shaped = sampler.shape(logits, draft.ids)
        choices: list[int] = shaped.argmax(dim=-1).tolist()
        # The distribution is one-hot here; the model's own probabilities say more.
        return verify_greedy(draft.ids, choices), torch.softmax(shaped, dim=-1)
    target_probs = sampler.probs(logits, draft.ids)
    uniforms = sampler.uniforms(len(draft.ids) + 1)
    return rule(draft.ids, draft.probs, target_probs, uniforms), target_probs


@torch.inference_mode()
def _decided(
    draft: Draft, verdict: Verdict, shown_probs: torch.Tensor
) -> tuple[tuple[Decided, ...], tuple[Decided, ...]]:
    """Attach origins and probabilities: the round's tokens, and the drafted ones not used."""
    count = len(draft.ids)
    accepted = verdict.accepted
    drafted = list(draft.ids)
    target_probs: list[float] = shown_probs[range(count), drafted].tolist() if count else []
    draft_probs: list[float] = (
        [1.0] * count if draft.probs is None else draft.probs[range(count), drafted].tolist()
    )
    last = Origin.PLAIN if count == 0 else Origin.BONUS if accepted == count else Origin.RESAMPLED
    tokens = [
        Decided(draft.ids[i], Origin.ACCEPTED, target_probs[i], draft_probs[i])
        for i in range(accepted)
    ]
    next_prob = float(shown_probs[accepted, verdict.next_id])
    tokens.append(Decided(verdict.next_id, last, next_prob, None))
    rejected = [
        Decided(draft.ids[i], Origin.REJECTED, target_probs[i], draft_probs[i])
        for i in range(accepted, count)
    ]
    return tuple(tokens), tuple(rejected)


def _cut_after_stop(
    tokens: tuple[Decided, ...], stop_ids: frozenset[int]
) -> tuple[tuple[Decided, ...], bool]:
    for position, token in enumerate(tokens):
        if token.id in stop_ids:
            return tokens[: position + 1], True
    return tokens, False


def _reason(ended: bool, new_tokens: int, total: int, limits: Limits) -> str | None:
    if ended:
        return FinishReason.STOP
    if new_tokens >= limits.max_new_tokens:
        return FinishReason.LENGTH
    if total >= limits.context_limit:
        return FinishReason.CONTEXT
    return None

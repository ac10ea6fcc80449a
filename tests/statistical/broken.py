"""Verifiers with the faults that others shipped. A test that passes them proves nothing."""

from collections.abc import Callable, Sequence

import torch

from core.decoding.loop import AcceptanceRule
from core.decoding.sampling import draw
from core.decoding.verify import Verdict, residual, residual_one_hot, verify_exact

Rows = torch.Tensor | None


def resamples_from_the_target(
    draft_ids: Sequence[int], draft_probs: Rows, target_probs: torch.Tensor, uniforms: list[float]
) -> Verdict:
    """After a rejection draws from p and not from the residual."""
    accepted = verify_exact(draft_ids, draft_probs, target_probs, uniforms).accepted
    return Verdict(accepted, draw(target_probs[accepted], uniforms[-1]))


def accepts_with_the_target_alone(
    draft_ids: Sequence[int], draft_probs: Rows, target_probs: torch.Tensor, uniforms: list[float]
) -> Verdict:
    """Accepts with p and not with p / q."""
    for position, token in enumerate(draft_ids):
        if uniforms[position] >= float(target_probs[position, token]):
            rest = (
                residual_one_hot(target_probs[position], token)
                if draft_probs is None
                else residual(target_probs[position], draft_probs[position])
            )
            return Verdict(position, draw(rest, uniforms[-1]))
    return Verdict(len(draft_ids), draw(target_probs[len(draft_ids)], uniforms[-1]))


def takes_the_likeliest_bonus(
    draft_ids: Sequence[int], draft_probs: Rows, target_probs: torch.Tensor, uniforms: list[float]
) -> Verdict:
    """Takes the extra token past the sampler."""
    verdict = verify_exact(draft_ids, draft_probs, target_probs, uniforms)
    if verdict.accepted < len(draft_ids):
        return verdict
    return Verdict(verdict.accepted, int(target_probs[-1].argmax()))


def reuses_the_uniform(
    draft_ids: Sequence[int], draft_probs: Rows, target_probs: torch.Tensor, uniforms: list[float]
) -> Verdict:
    """Draws after a rejection with the uniform that rejected."""
    accepted = verify_exact(draft_ids, draft_probs, target_probs, uniforms).accepted
    return verify_exact(draft_ids, draft_probs, target_probs, [*uniforms[:-1], uniforms[accepted]])


def takes_draft_probs_before_filters(
    draft_ids: Sequence[int], draft_probs: Rows, target_probs: torch.Tensor, uniforms: list[float]
) -> Verdict:
    """Takes q from before the filters that the draft was drawn after."""
    if draft_probs is not None:
        draft_probs = draft_probs + 0.1
        draft_probs = draft_probs / draft_probs.sum(dim=-1, keepdim=True)
    return verify_exact(draft_ids, draft_probs, target_probs, uniforms)


def takes_a_greedy_draft_for_a_sampled_one(
    rows: Callable[[Sequence[int]], torch.Tensor],
) -> AcceptanceRule:
    """Judges a draft of most likely tokens as if it had been drawn from ``rows`` of its ids."""

    def rule(
        draft_ids: Sequence[int],
        draft_probs: Rows,
        target_probs: torch.Tensor,
        uniforms: Sequence[float],
    ) -> Verdict:
        return verify_exact(draft_ids, rows(draft_ids), target_probs, uniforms)

    return rule


FOR_SAMPLED_DRAFTS = (
    resamples_from_the_target,
    accepts_with_the_target_alone,
    takes_the_likeliest_bonus,
    reuses_the_uniform,
    takes_draft_probs_before_filters,
)

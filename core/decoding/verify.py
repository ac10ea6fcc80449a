"""Acceptance rules: pure functions from a draft and the target's view of it to a verdict.

Notation of the sources: p is ``target_probs``, q is ``draft_probs``. Rows 0..n-1 of p judge the
n drafted tokens; row n is the distribution after the whole draft. A deterministic proposal has
``draft_probs`` None and a one-hot q. All probabilities are float32, after temperature, filters
and penalties. A block always yields accepted + 1 tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from core.decoding.sampling import draw


@dataclass(frozen=True, slots=True)
class Verdict:
    """``accepted`` drafted tokens stand, and ``next_id`` follows them.

    ``next_id`` is the target's replacement after a rejection, its extra token otherwise.
    """

    accepted: int
    next_id: int


def verify_greedy(draft_ids: Sequence[int], target_ids: Sequence[int]) -> Verdict:
    """Accept drafted tokens while they are the target's own choice.

    ``target_ids`` [n + 1] are the target's choices at every row. This is the exact rule at
    temperature 0.
    """
    accepted = 0
    while accepted < len(draft_ids) and draft_ids[accepted] == target_ids[accepted]:
        accepted += 1
    return Verdict(accepted, target_ids[accepted])


@torch.inference_mode()
def verify_exact(
    draft_ids: Sequence[int],
    draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor,
    uniforms: Sequence[float],
) -> Verdict:
    """Accept token x with min(1, p(x) / q(x)); after a rejection draw from norm(max(0, p - q)).

    ``draft_probs`` [n, vocab] or None, ``target_probs`` [n + 1, vocab], ``uniforms`` [n + 1]
    independent in [0, 1): one a drafted position, the last for the token that follows.
    The emitted tokens are distributed as the target's own. Source: Leviathan et al. 2023
    (arXiv 2211.17192), algorithm 1; Chen et al. 2023 (arXiv 2302.01318), algorithm 2.
    """
    count = len(draft_ids)
    p, q = _chosen(draft_ids, draft_probs, target_probs)
    for position in range(count):
        # u < p / q without the division: a draft with q = 0 cannot have been drawn from q. Put
        # this way round, a q that is no number is rejected.
        if not uniforms[position] * q[position] < p[position]:
            if draft_probs is None:
                rest = residual_one_hot(target_probs[position], draft_ids[position])
            else:
                rest = residual(target_probs[position], draft_probs[position])
            return Verdict(position, draw(rest, uniforms[count]))
    return Verdict(count, draw(target_probs[count], uniforms[count]))


@torch.inference_mode()
def verify_block(
    draft_ids: Sequence[int],
    draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor,
    uniforms: Sequence[float],
) -> Verdict:
    """Judge the block as a whole, which accepts at least as many tokens as one by one.

    Shapes and guarantee as in :func:`verify_exact`, which judges deterministic proposals, where
    nothing is to be gained. Source: Sun et al. 2024 (arXiv 2403.10444), algorithm 2.
    """
    if draft_probs is None or not draft_ids:
        return verify_exact(draft_ids, draft_probs, target_probs, uniforms)
    count = len(draft_ids)
    p, q = _chosen(draft_ids, draft_probs, target_probs)
    accepted, kept_joint, joint = 0, 1.0, 1.0
    for position in range(1, count + 1):
        drafted = position - 1
        ratio = p[drafted] / q[drafted] if q[drafted] > 0 else float(q[drafted] == 0 < p[drafted])
        joint = min(1.0, joint * ratio)
        if position == count:
            chance = joint
        else:
            left = (joint * target_probs[position] - draft_probs[position]).clamp_(min=0.0)
            mass = float(left.sum())
            chance = mass / (mass + 1.0 - joint) if mass + 1.0 - joint > 0 else 1.0
        # The longest accepted prefix counts, so a failure does not end the search.
        if uniforms[drafted] < chance:
            accepted, kept_joint = position, joint
    if accepted == count:
        return Verdict(count, draw(target_probs[count], uniforms[count]))
    rest = residual(kept_joint * target_probs[accepted], draft_probs[accepted])
    return Verdict(accepted, draw(rest, uniforms[count]))


@torch.inference_mode()
def verify_target_prob(
    draft_ids: Sequence[int],
    draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor,
    uniforms: Sequence[float],
) -> Verdict:
    """Lossy: accept token x with p(x), whatever q is; after a rejection draw from all of p.

    Shapes as in :func:`verify_exact`. A drafted position emits y with
    p(y) (1 + q(y) - sum(q p)), which leans towards what both models like.
    """
    p, _ = _chosen(draft_ids, draft_probs, target_probs)
    return _accept_while(
        [uniforms[i] < p[i] for i in range(len(draft_ids))], target_probs, uniforms[-1]
    )


@torch.inference_mode()
def verify_typical(
    draft_ids: Sequence[int],
    draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor,
    uniforms: Sequence[float],
    *,
    epsilon: float,
    delta: float,
) -> Verdict:
    """Lossy: accept token x where p(x) > min(epsilon, delta exp(-entropy of p)).

    Shapes as in :func:`verify_exact`. What a peaked target does not contradict is accepted for
    certain; after a rejection the token is drawn from p. Source: Cai et al. 2024, Medusa
    (arXiv 2401.10774), section 2.3.1.
    """
    p, _ = _chosen(draft_ids, draft_probs, target_probs)
    rows = target_probs[: len(draft_ids)]
    entropy = -torch.special.xlogy(rows, rows).sum(dim=-1)
    limits = torch.clamp(delta * torch.exp(-entropy), max=epsilon).tolist()
    return _accept_while(
        [a > b for a, b in zip(p, limits, strict=True)], target_probs, uniforms[-1]
    )


@torch.inference_mode()
def verify_ensemble(
    draft_ids: Sequence[int],
    draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor,
    uniforms: Sequence[float],
    *,
    weight: float,
) -> Verdict:
    """Lossy: a drafted position emits exactly ``weight`` p + (1 - ``weight``) q.

    Shapes as in :func:`verify_exact`, whose rule this is with the mixture in place of p; the token
    after a whole draft is drawn from p. Source: Fu et al. 2025, speculative ensemble
    (arXiv 2502.01662).
    """
    count = len(draft_ids)
    if draft_probs is None:
        draft_probs = torch.zeros_like(target_probs[:count])
        draft_probs[range(count), list(draft_ids)] = 1.0
    mixed = target_probs.clone()
    mixed[:count] = weight * target_probs[:count] + (1.0 - weight) * draft_probs
    return verify_exact(draft_ids, draft_probs, mixed, uniforms)


def _accept_while(accepts: Sequence[bool], target_probs: torch.Tensor, uniform: float) -> Verdict:
    """Accept up to the first refusal and draw what follows from p."""
    accepted = next((i for i, accept in enumerate(accepts) if not accept), len(accepts))
    return Verdict(accepted, draw(target_probs[accepted], uniform))


def _chosen(
    draft_ids: Sequence[int], draft_probs: torch.Tensor | None, target_probs: torch.Tensor
) -> tuple[list[float], list[float]]:
    """Return p and q of the drafted tokens."""
    count = len(draft_ids)
    index = torch.tensor(draft_ids, dtype=torch.long, device=target_probs.device).unsqueeze(-1)
    p: list[float] = target_probs[:count].gather(-1, index).squeeze(-1).tolist()
    if draft_probs is None:
        return p, [1.0] * count
    q: list[float] = draft_probs[:count].gather(-1, index).squeeze(-1).tolist()
    return p, q


def residual(target_probs: torch.Tensor, draft_probs: torch.Tensor) -> torch.Tensor:
    """Return max(0, p - q) of [vocab] rows, not normalised; p itself where nothing is left.

    Nothing is left only when p and q are equal to rounding, where a rejection has no probability.
    """
    rest = (target_probs - draft_probs).clamp_(min=0.0)
    return rest if bool(rest.sum() > 0) else target_probs


def residual_one_hot(target_probs: torch.Tensor, token: int) -> torch.Tensor:
    """Return the residual of a [vocab] row against a one-hot proposal: p without ``token``."""
    rest = target_probs.clone()
    rest[token] = 0.0
    return rest if bool(rest.sum() > 0) else target_probs

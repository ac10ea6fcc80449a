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
    index = torch.tensor(draft_ids, dtype=torch.long, device=target_probs.device).unsqueeze(-1)
    p = target_probs[:count].gather(-1, index).squeeze(-1).tolist()
    q = (
        [1.0] * count
        if draft_probs is None
        else draft_probs[:count].gather(-1, index).squeeze(-1).tolist()
    )
    for position in range(count):
        # u < p / q without the division: a draft with q = 0 cannot have been drawn from q.
        if uniforms[position] * q[position] >= p[position]:
            if draft_probs is None:
                rest = residual_one_hot(target_probs[position], draft_ids[position])
            else:
                rest = residual(target_probs[position], draft_probs[position])
            return Verdict(position, draw(rest, uniforms[count]))
    return Verdict(count, draw(target_probs[count], uniforms[count]))


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

"""Drafting token by token from what a model says, shaped and drawn as the target does it."""

from collections.abc import Callable

import torch

from core.decoding.sampling import has_valid_numbers
from core.drafting.base import Draft, DraftContext
from core.drafting.growing import GrowingDraft


def draft_by_steps(
    context: DraftContext,
    gamma: int,
    source: str,
    logits: torch.Tensor,
    step: Callable[[int], torch.Tensor],
) -> tuple[Draft, bool]:
    """Draft up to ``gamma`` tokens (at least 1); return them and whether all numbers were valid.

    ``logits`` [1, vocab] are those after the context, and ``step`` returns those after one more
    token. The draft ends early at what ends a reply, and where its controller finds one more token
    not worth its time.
    """
    draft = GrowingDraft(context, source, gamma, logits.shape[-1])
    while True:
        draft.steps += 1
        valid = has_valid_numbers(logits)
        if not valid or not draft.add(logits):
            return draft.finished(), valid
        logits = step(draft.ids[-1])

"""Drafting token by token from what a model says, shaped and drawn as the target does it."""

from collections.abc import Callable

import torch

from core.decoding.sampling import draw, has_valid_numbers
from core.drafting.base import Draft, DraftContext
from core.errors import BugError


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
    sampler, controller = context.sampler, context.gamma
    if sampler is None:
        raise BugError("Drafting with a model needs a sampler.")
    drafted: list[int] = []
    rows: list[torch.Tensor] = []
    confidence: list[float] = []
    survival, steps, valid = 1.0, 1, True
    uniforms = [] if sampler.greedy else sampler.uniforms(gamma)
    while True:
        valid = has_valid_numbers(logits)
        if not valid:
            break
        probs = sampler.draft_probs(logits, drafted)  # [1, vocab]
        sure = float(probs.amax())
        if controller is not None:
            # Judged before the token is drawn: a token dropped for what it is would bias.
            survival *= controller.acceptance(source, sure)
            if not controller.worth_judging(survival, len(drafted)):
                break
        confidence.append(sure)
        if sampler.greedy:
            drafted.append(int(probs.argmax()))
        else:
            drafted.append(draw(probs[0], uniforms[len(drafted)]))
            rows.append(probs)
        if len(drafted) == gamma or drafted[-1] in context.stop_ids:
            break
        if controller is not None and not controller.worth_drafting(source, survival, len(drafted)):
            break
        logits = step(drafted[-1])
        steps += 1
    draft = Draft(
        tuple(drafted),
        torch.cat(rows) if rows else None,
        source=source,
        confidence=tuple(confidence),
        steps=steps,
    )
    return draft, valid

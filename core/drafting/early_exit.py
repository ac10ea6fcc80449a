"""The target's own first layers as drafter: no second model and no second cache."""

from collections.abc import Sequence

import torch

from core.drafting.base import Draft, DraftContext, limit_of
from core.drafting.steps import draft_by_steps
from core.errors import BugError
from core.models.cache import TokenCache
from core.requests import DrafterKind

_DEPTH = 0.25
"""The share of the layers that drafts where nothing says otherwise."""


class EarlyExitDrafter:
    """Drafts with the first ``layers`` of the target and its head.

    What these layers store ahead of the target's cache is what its next pass stores there, too.
    Source: LayerSkip (Elhoushi et al. 2024, arXiv 2404.16710).
    """

    def __init__(self, target: TokenCache, layers: int) -> None:
        self._target = target
        self._layers = layers

    def propose(self, context: Sequence[int], gamma: int) -> Draft | None:
        """Draft up to ``gamma`` tokens after what the target holds and the newest token."""
        if not isinstance(context, DraftContext):
            raise BugError("An early exit needs a DraftContext.")
        runner = self._target.runner
        held = len(self._target)
        gamma = min(
            limit_of(context, DrafterKind.EARLY_EXIT, gamma), runner.context_limit - len(context)
        )
        if gamma <= 0 or held >= len(context):
            return None
        position = len(context)
        logits = runner.forward_shallow(context[held:], held, self._layers)

        def step(token: int) -> torch.Tensor:
            nonlocal position
            position += 1
            return runner.forward_shallow([token], position - 1, self._layers)

        draft, _ = draft_by_steps(context, gamma, DrafterKind.EARLY_EXIT, logits, step)
        return draft

    def commit(self, accepted: int, committed_ids: Sequence[int]) -> None:
        """Nothing to learn: the target's next pass writes over what was drafted."""

    def reset(self) -> None:
        """Nothing to forget: the target's cache is all there is."""


def exit_depth(layers: int, chosen: int | None = None) -> int:
    """Return after how many of its layers a model exits to draft.

    ``chosen`` is what its generation configuration names, if anything.
    """
    if chosen is not None and 0 < chosen < layers:
        return chosen
    return max(1, round(_DEPTH * layers))

"""A draft as it grows, token by token, for as long as that is worth it."""

import torch

from core.decoding.sampling import draw
from core.drafting.base import Draft, DraftContext
from core.errors import BugError


class GrowingDraft:
    """Draws tokens from logits as the target would and asks the gamma controller when to stop.

    ``limit`` is the most tokens it takes, ``source`` the name the controller knows them by, and
    ``vocab_size`` how wide the distributions are that the target compares with its own.
    """

    def __init__(self, context: DraftContext, source: str, limit: int, vocab_size: int) -> None:
        if context.sampler is None:
            raise BugError("Drafting from logits needs a sampler.")
        self.ids: list[int] = []
        self.steps = 0
        self.fixed_ms = 0.0
        self._context = context
        self._sampler = context.sampler
        self._source = source
        self._limit = limit
        self._vocab_size = vocab_size
        self._confidence: list[float] = []
        self._rows: list[tuple[torch.Tensor, torch.Tensor | None]] = []
        self._uniforms = [] if self._sampler.greedy else self._sampler.uniforms(limit)
        self._survival = 1.0

    def add(self, logits: torch.Tensor, ids: torch.Tensor | None = None) -> bool:
        """Draw one more token from its logits [1, columns]; return whether another may follow.

        ``ids`` [columns] are the tokens that the columns stand for; None means all in their order.
        Nothing is drawn where verifying it would not pay. That is judged before the draw: a token
        that is dropped for what it is would bias the reply.
        """
        probs = self._sampler.draft_probs(logits, self.ids, ids)  # [1, columns]
        sure = float(probs.amax())
        controller = self._context.gamma
        if controller is not None:
            self._survival *= controller.acceptance(self._source, sure)
            if not controller.worth_judging(self._source, self._survival, len(self.ids)):
                return False
        if self._sampler.greedy:
            column = int(probs.argmax())
        else:
            column = draw(probs[0], self._uniforms[len(self.ids)])
            self._rows.append((probs, ids))
        self._confidence.append(sure)
        self.ids.append(column if ids is None else int(ids[column]))
        if len(self.ids) == self._limit or self.ids[-1] in self._context.stop_ids:
            return False
        return controller is None or controller.worth_drafting(
            self._source, self._survival, len(self.ids)
        )

    def finished(self) -> Draft:
        """Return the draft with what its tokens were drawn from, over the whole vocabulary."""
        probs: torch.Tensor | None = None
        if self._rows:
            device = self._rows[0][0].device
            probs = torch.zeros(len(self._rows), self._vocab_size, device=device)
            for place, (row, ids) in enumerate(self._rows):
                probs[place, slice(None) if ids is None else ids] = row[0]
        return Draft(
            tuple(self.ids),
            probs,
            source=self._source,
            confidence=tuple(self._confidence),
            steps=self.steps,
            fixed_ms=self.fixed_ms,
        )

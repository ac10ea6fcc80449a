"""What a head would have been worth on held-out text, from one pass over it.

Greedy text is the target's own choice at every place, so a chain is right for as long as the head
names the tokens that stand there. Rounds are walked as decoding would: each begins where the last
one ended, and makes what was right and one token of the target's.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from core.models.mtp.modules import Head
from core.training.data import Batch
from core.training.loss import CHUNK_ROWS, Teacher, rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """``by_step``: how often step j was right where those before were; ``length``: tokens a round.

    ``tokens`` is how many tokens of replies were walked over.
    """

    by_step: tuple[float, ...]
    length: float
    tokens: int


Steps = Callable[[Batch], Sequence[torch.Tensor]]
"""A head's outputs [rows, n, hidden] by step at the chain places of a batch."""


@torch.inference_mode()
def measure(
    head: Head, steps: Steps, batches: Iterable[Batch], teacher: Teacher, depth: int
) -> Acceptance:
    """Walk the greedy replies of the batches with a head that drafts ``depth`` tokens a round."""
    walk = Walk(depth)
    for read in batches:
        batch = read.to(teacher.index.device)
        walk.add(batch, _hits(head, steps(batch), batch, teacher))
    return walk.result()


class Walk:
    """Counts the rounds that decoding would make."""

    def __init__(self, depth: int) -> None:
        self._tried, self._right = [0] * depth, [0] * depth
        self._rounds = self._tokens = 0

    def add(self, batch: Batch, hits: torch.Tensor) -> None:
        """Walk the greedy replies of a batch.

        ``hits`` [depth, rows, length]: whether draft j of a round that begins at a place, with the
        token after it as the newest one, is the token that stands there.
        """
        depth = len(hits)
        ends = batch.mask.sum(1).tolist()
        table = hits.int().cumprod(0).sum(0).tolist()  # tokens that stand, by row and place
        for row, (start, end) in enumerate(zip(batch.starts.tolist(), ends, strict=True)):
            if not batch.greedy[row]:
                continue
            place = start - 1  # its state led to the reply's first token, the newest one
            while place + 2 < end:
                room = min(depth, end - 2 - place)
                stood = min(table[row][place], room)
                for step in range(min(stood + 1, room)):
                    self._tried[step] += 1
                    self._right[step] += step < stood
                self._rounds += 1
                self._tokens += min(stood + 1, end - 2 - place)
                place += stood + 1

    def result(self) -> Acceptance:
        """Return what was counted."""
        return Acceptance(
            by_step=tuple(
                hit / max(1, count) for hit, count in zip(self._right, self._tried, strict=True)
            ),
            length=self._tokens / max(1, self._rounds),
            tokens=self._tokens,
        )


def _hits(
    head: Head, outputs: Sequence[torch.Tensor], batch: Batch, teacher: Teacher
) -> torch.Tensor:
    """Return whether step j at each place names the token that follows: [depth, rows, length]."""
    rows = rows_of(batch, len(outputs), outputs[0].shape[1])
    hits = torch.zeros(len(outputs), batch.ids.numel(), dtype=torch.bool, device=batch.ids.device)
    found = teacher.index[rows.tokens]
    for step, output in enumerate(outputs, start=1):
        counts = rows.steps[step - 1]
        places, wanted = rows.goals[counts] - step, found[counts]
        flat = output.flatten(0, 1)[rows.chains[step - 1][counts]]
        for first in range(0, len(places), CHUNK_ROWS):
            part = slice(first, first + CHUNK_ROWS)
            normalised = head.normalised(flat[part]).to(teacher.unembedding.dtype)
            best = F.linear(normalised, teacher.unembedding).argmax(dim=1)
            hits[step - 1, places[part]] = best == wanted[part]
    return hits.view(len(outputs), *batch.ids.shape)

"""Prompt lookup: what followed the last time these words stood here may follow again."""

from collections.abc import Sequence

from core.drafting.base import Draft, limit_of
from core.requests import DrafterKind

_CHECKED_TAIL = 16
_MAX_CANDIDATES = 1024


class NgramDrafter:
    """Proposes what followed the most recent longest match of the last tokens.

    A match is ``min_ngram`` to ``max_ngram`` tokens long. Two tokens are the least that says
    something about the third; beyond eight a longer match predicts no better. Neither match nor
    proposal contains an id of ``boundary_ids`` (turn markers and the ids that end a reply). A
    proposal that reaches the end of the context goes on through its own tokens, so that periodic
    text is drafted in full.

    The index grows by what is new in each context; a context that does not continue the last
    one is indexed afresh. That is told by its length and the end of the part already indexed, so
    call :meth:`reset` before an unrelated context. Source: prompt lookup decoding (Saxena, 2023).

    Raises ValueError unless 1 <= min_ngram <= max_ngram.
    """

    def __init__(
        self,
        *,
        min_ngram: int = 2,
        max_ngram: int = 8,
        boundary_ids: frozenset[int] = frozenset(),
    ) -> None:
        if not 1 <= min_ngram <= max_ngram:
            raise ValueError(f"min_ngram {min_ngram} and max_ngram {max_ngram} are no range")
        self._min = min_ngram
        self._max = max_ngram
        self._boundary_ids = boundary_ids
        self._ids: list[int] = []
        # By shortest n-gram, where it last ended; by end, where the same n-gram ended before.
        # Ends are exclusive: the position of the token that followed. -1 ends the chain.
        self._latest: dict[tuple[int, ...], int] = {}
        self._earlier: list[int] = []

    def propose(self, context: Sequence[int], gamma: int) -> Draft | None:
        """Return at most ``gamma`` tokens, or None where nothing matches."""
        self._extend(context)
        if gamma < 1:
            return None
        start, length = self._longest_match()
        if start < 0:
            return None
        # The longer the match, the more of what followed it stands: each length has its own record.
        source = f"{DrafterKind.NGRAM}-{length}"
        gamma = limit_of(context, source, gamma)
        end = len(self._ids)
        proposal: list[int] = []
        for position in range(start, start + gamma):
            token = self._ids[position] if position < end else proposal[position - end]
            if token in self._boundary_ids:
                break
            proposal.append(token)
        return Draft(tuple(proposal), source=source) if proposal else None

    def commit(self, accepted: int, committed_ids: Sequence[int]) -> None:
        """Do nothing: the next context tells what stands."""

    def reset(self) -> None:
        """Forget the text; the next context may be unrelated."""
        self._ids.clear()
        self._latest.clear()
        self._earlier.clear()

    def _extend(self, context: Sequence[int]) -> None:
        """Bring the index up to all n-grams of the context but the last, which is looked up."""
        known = len(self._ids)
        tail = max(known - _CHECKED_TAIL, 0)
        if len(context) < known or list(context[tail:known]) != self._ids[tail:]:
            self.reset()
            known = 0
        self._ids.extend(context[known:])
        for end in range(len(self._earlier), len(self._ids)):
            gram = tuple(self._ids[max(end - self._min, 0) : end])
            if len(gram) < self._min or not self._boundary_ids.isdisjoint(gram):
                self._earlier.append(-1)
            else:
                self._earlier.append(self._latest.get(gram, -1))
                self._latest[gram] = end

    def _longest_match(self) -> tuple[int, int]:
        """Return the end of the most recent longest match, or -1, and its length."""
        ids = self._ids
        suffix = ids[-self._max :]
        best, best_length = -1, 0
        candidate = self._latest.get(tuple(suffix[-self._min :]), -1)
        # A frequent n-gram in a long context must not cost more than the rest of the round.
        for _ in range(_MAX_CANDIDATES):
            if candidate < 0 or best_length == len(suffix):
                break
            length = self._match_length(candidate, suffix)
            if length > best_length:
                best, best_length = candidate, length
            candidate = self._earlier[candidate]
        return best, best_length

    def _match_length(self, end: int, suffix: list[int]) -> int:
        """Return how many tokens before ``end`` equal the end of ``suffix``."""
        length = self._min
        while (
            length < min(len(suffix), end)
            and self._ids[end - 1 - length] == suffix[-1 - length]
            and suffix[-1 - length] not in self._boundary_ids
        ):
            length += 1
        return length

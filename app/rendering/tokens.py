"""Which token each character of a message came from."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.rendering.model import Run


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """What is known of one token; probabilities as in core.events.Token."""

    origin: str
    target_prob: float | None = None
    draft_prob: float | None = None


class TokenMap:
    """The tokens of one message in order, found by character offset.

    A token that only completes part of a character covers nothing; the token that completes
    the character covers it, so a character made by several tokens shows the completing one.
    """

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._tokens: list[TokenInfo] = []

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def covered(self) -> int:
        """How many characters the tokens cover."""
        return self._ends[-1] if self._ends else 0

    def append(self, length: int, info: TokenInfo) -> None:
        """Add a token that covers the next ``length`` characters."""
        self._ends.append(self.covered + length)
        self._tokens.append(info)

    def index_at(self, offset: int) -> int | None:
        """Return the index of the token that shows character ``offset``, None outside."""
        if offset < 0:
            return None
        index = bisect_right(self._ends, offset)
        return index if index < len(self._ends) else None

    def token(self, index: int) -> TokenInfo:
        """Return token ``index``."""
        return self._tokens[index]

    def span(self, index: int) -> tuple[int, int]:
        """Return the characters (start, end) that token ``index`` covers."""
        return (self._ends[index - 1] if index else 0), self._ends[index]

    def pieces(self, run: Run) -> Iterator[tuple[int, str]]:
        """Yield (length, origin) over the characters of a run; origin "" outside all tokens."""
        if run.single or len(run.text) == 1:
            index = self.index_at(run.source)
            yield len(run.text), "" if index is None else self._tokens[index].origin
            return
        position, end = run.source, run.source + len(run.text)
        index = bisect_right(self._ends, position)
        while position < end:
            if index >= len(self._ends):
                yield end - position, ""
                return
            stop = min(self._ends[index], end)
            if stop > position:
                yield stop - position, self._tokens[index].origin
                position = stop
            index += 1


def origin_ranges(runs: Iterable[Run], tokens: TokenMap) -> list[tuple[int, int, str]]:
    """Return (start, length, origin) over the rendered text of ``runs``, neighbours merged."""
    ranges: list[tuple[int, int, str]] = []
    position = 0
    for run in runs:
        for length, origin in tokens.pieces(run):
            if ranges and ranges[-1][2] == origin:
                start, before, _ = ranges[-1]
                ranges[-1] = (start, before + length, origin)
            else:
                ranges.append((position, length, origin))
            position += length
    return ranges

"""Stop strings, found across tokens and rounds."""

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scan:
    """What may be shown now.

    ``texts`` belong to the oldest tokens still held, one each and in order; with ``matched`` they
    are the last of the reply, cut where the stop string begins, and whatever else is held is
    dropped.
    """

    texts: tuple[str, ...]
    matched: bool = False


class StopScanner:
    """Watches the text of one reply for stop strings.

    Feed it the text of every token in turn. A token is held back while it may turn out to be
    part of a stop string, and released whole otherwise. Of several matches the one that starts
    earliest wins, then the shortest, so the outcome depends on the text alone and not on how it
    is cut into tokens. A token that stands wholly at or after the match, or that is left without
    text by it, is dropped.
    """

    __slots__ = ("_held", "_stops", "_text")

    def __init__(self, stop: tuple[str, ...]) -> None:
        self._stops = stop
        self._held: deque[str] = deque()
        self._text = ""

    def feed(self, text: str) -> Scan:
        """Take the next token's text and return what may be shown now."""
        if not self._stops:
            return Scan((text,))
        self._held.append(text)
        self._text += text
        match = self._match()
        pending = self._pending()
        if match is not None and match <= pending:
            return self._cut(match)
        return Scan(self._release(pending))

    def flush(self) -> Scan:
        """Return what is left at the end of the reply, when no more text can come."""
        match = self._match()
        if match is not None:
            return self._cut(match)
        texts = tuple(self._held)
        self._clear()
        return Scan(texts)

    def _match(self) -> int | None:
        """Return where the earliest complete stop string begins in the held text."""
        starts = [start for stop in self._stops if (start := self._text.find(stop)) >= 0]
        return min(starts, default=None)

    def _pending(self) -> int:
        """Return where the earliest unfinished stop string begins, or the end of the text."""
        longest = 0
        for stop in self._stops:
            for length in range(min(len(stop) - 1, len(self._text)), longest, -1):
                if self._text.endswith(stop[:length]):
                    longest = length
                    break
        return len(self._text) - longest

    def _release(self, end: int) -> tuple[str, ...]:
        """Let go of the tokens that lie before ``end``.

        A token without text is part of the character that follows it, so it waits for that.
        """
        texts: list[str] = []
        done = 0
        while self._held and done < end and done + len(self._held[0]) <= end:
            text = self._held.popleft()
            done += len(text)
            texts.append(text)
        self._text = self._text[done:]
        return tuple(texts)

    def _cut(self, start: int) -> Scan:
        texts: list[str] = []
        for text in self._held:
            if start <= 0:
                break
            texts.append(text[:start])
            start -= len(text)
        self._clear()
        return Scan(tuple(texts), matched=True)

    def _clear(self) -> None:
        self._held.clear()
        self._text = ""

"""Finds ``<think>`` sections, so that they can be folded and their tags never shown.

A tag counts where it opens a line outside code; the closing tag also inside a line. A tag that
has arrived in part is held back. Text before a closing tag that nothing opened was opened by
the prompt.
"""

import re
from dataclasses import dataclass

OPEN_TAG = "<think>"
CLOSE_TAG = "</think>"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Segment:
    """Characters ``start`` to ``end`` of a message, thought or said; tags lie outside."""

    thinking: bool
    start: int
    end: int
    closed: bool = True


@dataclass(slots=True)
class _State:
    thinking: bool
    start: int
    fence: str = ""
    in_fence_close: tuple[int, int] | None = None


class ThinkingScanner:
    """Cuts a growing text into segments; every complete line is read once."""

    def __init__(self, *, opened_by_prompt: bool = False) -> None:
        self._done: list[Segment] = []
        self._state = _State(thinking=opened_by_prompt, start=0)
        self._read = 0
        self._seen_tag = opened_by_prompt

    def feed(self, text: str, *, final: bool = False) -> list[Segment]:
        """Return the segments of ``text`` so far; it must begin with what was fed before."""
        while True:
            newline = text.find("\n", self._read)
            if newline < 0:
                break
            self._read_line(text, self._read, newline + 1)
            self._read = newline + 1
        return self._open_line(text, final=final)

    def _open_line(self, text: str, *, final: bool) -> list[Segment]:
        done, state = list(self._done), self._state
        saved = (self._done, self._state, self._seen_tag)
        self._done = list(done)
        self._state = _State(state.thinking, state.start, state.fence, state.in_fence_close)
        end = len(text)
        try:
            if self._read < end:
                self._read_line(text, self._read, end)
            if final and self._state.thinking and self._state.fence and self._state.in_fence_close:
                close_start, close_end = self._state.in_fence_close
                self._close(close_start, close_end)
            segments = list(self._done)
            last = self._state
        finally:
            self._done, self._state, self._seen_tag = saved
        if not last.fence:
            end -= _held_back(text[max(self._read, last.start) :], final=final)
        if end > last.start or last.thinking:
            segments.append(Segment(last.thinking, last.start, max(end, last.start), closed=False))
        return segments

    def _read_line(self, text: str, start: int, end: int) -> None:
        line = text[start:end]
        if fence := _FENCE.match(line):
            marks = fence.group(1)
            if not self._state.fence:
                self._state.fence = marks
                return
            same = marks[0] == self._state.fence[0] and len(marks) >= len(self._state.fence)
            if same and line.strip() == marks:
                self._state.fence, self._state.in_fence_close = "", None
                return
        if self._state.fence:
            found = line.find(CLOSE_TAG)
            if found >= 0 and self._state.thinking and self._state.in_fence_close is None:
                self._state.in_fence_close = (start + found, start + found + len(CLOSE_TAG))
            return
        position = max(start, self._state.start)
        while True:
            if self._state.thinking:
                found = _outside_code(text, CLOSE_TAG, position, end)
                if found < 0:
                    return
                position = found + len(CLOSE_TAG)
                self._close(found, position)
                continue
            opened = _outside_code(text, OPEN_TAG, position, end)
            if opened >= 0 and not text[start:opened].strip():
                self._say(opened)
                position = opened + len(OPEN_TAG)
                self._state.thinking, self._state.start = True, position
                self._seen_tag = True
                continue
            closed = _outside_code(text, CLOSE_TAG, position, end)
            if closed >= 0 and not self._seen_tag:
                self._done = [Segment(True, 0, closed)]
                self._seen_tag = True
                position = closed + len(CLOSE_TAG)
                self._state.start = position
                continue
            return

    def _say(self, end: int) -> None:
        if end > self._state.start:
            self._done.append(Segment(False, self._state.start, end))

    def _close(self, close_start: int, close_end: int) -> None:
        self._done.append(Segment(True, self._state.start, close_start))
        self._state.thinking, self._state.start = False, close_end
        self._state.fence, self._state.in_fence_close = "", None


def _outside_code(text: str, tag: str, start: int, end: int) -> int:
    """Return where ``tag`` stands outside `inline code`, or -1."""
    found = text.find(tag, start, end)
    while found >= 0:
        line_start = text.rfind("\n", 0, found) + 1
        line_end = text.find("\n", found)
        line_end = len(text) if line_end < 0 else line_end
        before = text.count("`", line_start, found)
        if before % 2 == 0 or "`" not in text[found:line_end]:
            return found
        found = text.find(tag, found + 1, end)
    return -1


def _held_back(line: str, *, final: bool) -> int:
    """Return how many characters at the end may be the first part of a tag."""
    for tag in (CLOSE_TAG, OPEN_TAG):
        for length in range(len(tag) - 1, 0, -1):
            if line.endswith(tag[:length]):
                return length if not final or length > 3 else 0
    return 0

"""Walks the source once, beside what was rendered from it.

Rendered Markdown is (nearly) a subsequence of its source. The walker keeps one position that
only moves forward; each rendered piece is looked for from there, inside its own block.
"""

import re

from app.rendering.model import Run, Style

_IMAGE_WORD = "image"
_SPACE = re.compile(r"\s")
_LONE_RETURN = re.compile(r"\r(?!\n)")


class Walker:
    """Turns rendered pieces into runs; positions are relative to ``text``, runs are absolute.

    ``base`` is added to every position to give the offset in the whole message.
    """

    def __init__(self, text: str, base: int = 0) -> None:
        # As Markdown reads it, every character in its place.
        self.text = _LONE_RETURN.sub("\n", text).replace("\0", "\ufffd")
        self.base = base
        self.pos = 0
        self.begin = 0
        self.end = len(text)

    def enter(self, begin: int, end: int) -> None:
        """Go on in the block from ``begin`` to ``end``; never back."""
        self.pos = min(max(self.pos, begin), len(self.text))
        self.begin, self.end = begin, end

    def skip(self, markup: str) -> None:
        """Go past the next ``markup``, if there is one."""
        found = self.text.find(markup, self.pos, self.end) if markup else -1
        if found >= 0:
            self.pos = found + len(markup)

    def take(self, content: str, style: Style = Style.NONE, href: str = "") -> list[Run]:
        """Return runs for ``content``, found from here on."""
        if not content:
            return []
        found = self.text.find(content, self.pos, self.end)
        if found >= 0:
            self.pos = found + len(content)
            return [Run(content, self.base + found, style, href)]
        return self._take_slowly(content, style, href)

    def take_here(self, content: str, style: Style, href: str) -> list[Run]:
        """Return runs for what begins right here; its line ends may be shown as spaces."""
        for start in (self.pos, self.pos + 1):  # a space after the mark is not shown
            if content and self.text.startswith(content, start, self.end):
                self.pos = start + len(content)
                return [Run(content, self.base + start, style, href)]
        return self._take_slowly(content, style, href)

    def _take_slowly(self, content: str, style: Style, href: str) -> list[Run]:
        """Match character by character; one that is not in the source leans on its neighbour."""
        runs: list[Run] = []
        start = 0
        sources: list[int] = []
        for char in content:
            if char == " ":
                space = _SPACE.search(self.text, self.pos, self.end)
                found = space.start() if space else -1
            else:
                found = self.text.find(char, self.pos, self.end)
            if found < 0:
                sources.append(self._before())
            else:
                sources.append(found)
                self.pos = found + 1
        for index in range(1, len(content) + 1):
            if index == len(content) or sources[index] != sources[index - 1] + 1:
                text = content[start:index]
                runs.append(Run(text, self.base + sources[start], style, href))
                start = index
        return runs

    def _before(self) -> int:
        """Return the last character that was passed, the first of the block at its start."""
        return max(self.pos - 1, self.begin)

    def take_special(self, shown: str, markup: str, style: Style, href: str) -> list[Run]:
        """Return a run for an escape or entity: ``markup`` in the source, ``shown`` on screen.

        It belongs to the token that completes it.
        """
        found = self.text.find(markup, self.pos, self.end)
        if found < 0:
            return self.take(shown, style, href)
        self.pos = found + len(markup)
        return [Run(shown, self.base + self.pos - 1, style, href, single=True)]

    def take_break(self, shown: str, style: Style) -> list[Run]:
        """Return a run for a line break, shown as ``shown``."""
        found = self.text.find("\n", self.pos, self.end)
        if found < 0:
            found = self._before()
        else:
            self.pos = found + 1
        return [Run(shown, self.base + found, style, single=True)]

    def take_image(self, alt: str, style: Style) -> list[Run]:
        """Return the alternative text of an image, which is never fetched."""
        self.skip("![")
        if alt:
            runs = self.take_here(alt, style | Style.ITALIC, "")
        else:
            source = self.base + self._before()
            runs = [Run(_IMAGE_WORD, source, style | Style.ITALIC, single=True)]
        self.skip_link_tail()
        return runs

    def skip_link_tail(self) -> None:
        """Go past ``](target "title")``, ``][label]`` or ``]``."""
        self.skip("]")
        following = self.text[self.pos : self.pos + 1]
        if following == "[":
            self.skip("]")
        elif following == "(":
            self._skip_parentheses()

    def _skip_parentheses(self) -> None:
        depth, position = 0, self.pos
        quote = ""
        while position < self.end:
            char = self.text[position]
            if char == "\\":
                position += 1
            elif quote:
                quote = "" if char == quote else quote
            elif char in "\"'" and self.text[position - 1].isspace():
                quote = char
            elif char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
                if depth == 0:
                    self.pos = position + 1
                    return
            position += 1

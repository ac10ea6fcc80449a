"""Walks the source once, beside what was rendered from it.

Rendered Markdown is (nearly) a subsequence of its source. The walker keeps one position that
only moves forward; each rendered piece is looked for from there.
"""

from app.rendering.model import Run, Style

_IMAGE_WORD = "image"


class Walker:
    """Turns rendered pieces into runs; positions are relative to ``text``, runs are absolute.

    ``base`` is added to every position to give the offset in the whole message.
    """

    def __init__(self, text: str, base: int = 0) -> None:
        self.text = text
        self.base = base
        self.pos = 0
        self.end = len(text)

    def move_to(self, position: int) -> None:
        """Go forward to ``position``; never back."""
        self.pos = min(max(self.pos, position), len(self.text))

    def skip(self, markup: str) -> None:
        """Go past the next ``markup``, if there is one."""
        found = self.text.find(markup, self.pos, self.end) if markup else -1
        if found >= 0:
            self.pos = found + len(markup)

    def take(
        self, content: str, style: Style = Style.NONE, href: str = "", syntax: str = ""
    ) -> list[Run]:
        """Return runs for ``content``, found from here on."""
        if not content:
            return []
        found = self.text.find(content, self.pos, self.end)
        if found >= 0:
            self.pos = found + len(content)
            return [Run(content, self.base + found, style, href, syntax)]
        return self._take_slowly(content, style, href, syntax)

    def _take_slowly(self, content: str, style: Style, href: str, syntax: str) -> list[Run]:
        """Match character by character; one that is not in the source leans on its neighbour."""
        runs: list[Run] = []
        start = 0
        sources: list[int] = []
        for char in content:
            found = self.text.find(char, self.pos, self.end)
            if found < 0 and char == " ":
                found = self.text.find("\n", self.pos, self.end)
            if found < 0:
                sources.append(max(self.pos - 1, 0))
            else:
                sources.append(found)
                self.pos = found + 1
        for index in range(1, len(content) + 1):
            if index == len(content) or sources[index] != sources[index - 1] + 1:
                text = content[start:index]
                runs.append(Run(text, self.base + sources[start], style, href, syntax))
                start = index
        return runs

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
            found = max(self.pos - 1, 0)
        else:
            self.pos = found + 1
        return [Run(shown, self.base + found, style, single=True)]

    def take_image(self, alt: str, style: Style) -> list[Run]:
        """Return the alternative text of an image, which is never fetched."""
        self.skip("![")
        if alt:
            runs = self.take(alt, style | Style.ITALIC)
        else:
            source = self.base + max(self.pos - 1, 0)
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

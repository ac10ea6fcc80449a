"""Inline Markdown: markdown-it tokens to runs, and the rule that keeps formulas as written."""

from collections.abc import Sequence

from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from app.rendering.model import Run, Style
from app.rendering.walk import Walker

LINE_SEPARATOR = "\u2028"
_FORMULAS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
_STYLES = {"strong": Style.BOLD, "em": Style.ITALIC, "s": Style.STRIKE}


def formula_rule(state: StateInline, silent: bool) -> bool:
    """Take ``$..$``, ``$$..$$``, ``\\(..\\)`` and ``\\[..\\]`` as one token, as written.

    A single dollar opens only before and closes only after something that is not a space, and
    not before a digit, so that prices stay prices.
    """
    source, start = state.src, state.pos
    for opening, closing in _FORMULAS:
        if not source.startswith(opening, start):
            continue
        first = start + len(opening)
        found = source.find(closing, first, state.posMax)
        if found <= first:
            return False
        content = source[first:found]
        if opening == "$":
            following = source[found + 1 : found + 2]
            if content[0].isspace() or content[-1].isspace() or following.isdigit():
                return False
            if "\n" in content:
                return False
        if not silent:
            token = state.push("formula", "", 0)
            token.markup, token.content = opening, content
            token.info = closing
        state.pos = found + len(closing)
        return True
    return False


def inline_runs(tokens: Sequence[Token], walker: Walker, style: Style = Style.NONE) -> list[Run]:
    """Return the runs of inline ``tokens``; ``walker`` stands at or before their source."""
    runs: list[Run] = []
    depth = {Style.BOLD: 0, Style.ITALIC: 0, Style.STRIKE: 0}
    href = ""
    for token in tokens:
        kind = token.type
        now = style
        for flag, count in depth.items():
            if count:
                now |= flag
        if kind == "text":
            runs += walker.take(token.content, now, href)
        elif kind == "text_special":
            runs += walker.take_special(token.content, token.markup, now, href)
        elif kind == "softbreak":
            runs += walker.take_break(" ", now)
        elif kind == "hardbreak":
            runs += walker.take_break(LINE_SEPARATOR, now)
        elif kind == "code_inline":
            walker.skip(token.markup)
            runs += walker.take_here(token.content, now | Style.CODE, href)
            walker.skip(token.markup)
        elif kind == "formula":
            walker.skip(token.markup)
            shown = " ".join(token.content.split())
            runs += walker.take_here(shown, now | Style.CODE, href)
            walker.skip(token.info)
        elif kind == "image":
            alt = "".join(
                " " if child.type == "softbreak" else child.content
                for child in token.children or ()
            )
            runs += walker.take_image(alt, now)
        elif kind == "link_open":
            walker.skip("<" if token.markup == "autolink" else "[")
            href = str(token.attrGet("href") or "")
        elif kind == "link_close":
            href = ""
            if token.markup == "autolink":
                walker.skip(">")
            else:
                walker.skip_link_tail()
        elif kind.endswith(("_open", "_close")):
            flag = _STYLES[kind.rpartition("_")[0]]
            depth[flag] += token.nesting
            walker.skip(token.markup)
        else:
            runs += walker.take(token.content, now, href)
    return runs

"""Names of conversations."""

import unicodedata

NEW_CHAT = "New chat"
"""The name of a conversation before its first message."""

MAX_DERIVED = 48
MAX_TITLE = 200
_MARKUP = "#>*-+`~_=| \t"
_JOINER = "\u200d"


def title_from(text: str) -> str:
    """Return a name for a conversation that begins with ``text``.

    The first line that says something, without Markdown's signs, cut at a word to at most 48
    characters.
    """
    for line in text.splitlines():
        words = one_line(line.lstrip(_MARKUP))
        # A line of signs or the opening of a code block says nothing.
        if any(c.isalnum() for c in words) and not line.lstrip().startswith(("```", "~~~")):
            return _shortened(words)
    return _shortened(one_line(text)) or NEW_CHAT


def one_line(text: str) -> str:
    """Return ``text`` on one line, without control characters, at most 200 characters long."""
    printable = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)
    return " ".join(printable.split())[:MAX_TITLE].rstrip()


def _shortened(text: str) -> str:
    if len(text) <= MAX_DERIVED:
        return text
    room = MAX_DERIVED - 1
    cut = text.rfind(" ", 0, room + 1)
    if cut < room // 2:
        # No space near: a script without spaces, or one long word. Do not split a character.
        cut = room
        while cut > 0 and _continues(text[cut - 1], text[cut]):
            cut -= 1
    return text[:cut].rstrip(" ,;:.-") + "…"


def _continues(previous: str, char: str) -> bool:
    return (
        _JOINER in (previous, char)
        or unicodedata.category(char) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= char <= "\U0001f3ff"
    )

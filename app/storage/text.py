"""Text as it is stored and as it is searched."""

import unicodedata


def folded(text: str) -> str:
    """Return ``text`` as it is compared in searches: without case, one form of accents."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def storable(text: str) -> str:
    """Return ``text`` with halves of broken characters replaced: they have no UTF-8 form."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

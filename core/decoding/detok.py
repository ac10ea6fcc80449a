"""Token ids to text, one id at a time, equal to decoding them all at once."""

from typing import Protocol

_REPLACEMENT = "\ufffd"
_WINDOW_TOKENS = 32


class Decoder(Protocol):
    """What is asked of a tokenizer here; any transformers tokenizer has it."""

    def decode(
        self, token_ids: list[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool
    ) -> str:
        """Return the text of ``token_ids``."""

    def convert_tokens_to_ids(self, tokens: str) -> int | None:
        """Return the id of a token's text, or that of the unknown token."""

    @property
    def unk_token_id(self) -> int | None:
        """The unknown token, if there is one."""


class Detokenizer:
    """Turns the ids of one reply into text as they come.

    The texts that :meth:`feed` and :meth:`flush` return concatenate to the one-shot decoding of
    all ids without special tokens, less a character left incomplete at the end. A token that
    only begins or continues a character adds "" for it; the completing token adds the character.
    Bytes that can form no character become U+FFFD as in one-shot decoding, one token later; with
    SentencePiece's byte tokens they do not spoil, as they would there, a character shown before.

    Each id costs one decoding of a window of at most 32 ids (more only where bytes form no
    character for that long), so the cost does not grow with the reply. The window keeps some
    context, because what a tokenizer gives for a token can depend on the one before
    (SentencePiece drops the first space of a text). Not for use by several threads.
    """

    __slots__ = ("_byte_tokens", "_limit", "_shown", "_tokenizer", "_window")

    def __init__(self, tokenizer: Decoder) -> None:
        self._tokenizer = tokenizer
        # SentencePiece spells an unknown character as byte tokens and decodes a run of them as
        # a whole: one incomplete character spoils the text of the complete ones before it.
        byte_token = tokenizer.convert_tokens_to_ids("<0xE2>")
        self._byte_tokens = byte_token not in (None, tokenizer.unk_token_id)
        self._window: list[int] = []
        self._shown = 0
        self._limit = _WINDOW_TOKENS

    def feed(self, token_id: int) -> str:
        """Return the text that this token adds to the reply."""
        self._window.append(token_id)
        text = self._decode(self._window)
        incomplete = text.endswith(_REPLACEMENT)
        if incomplete and self._byte_tokens:
            return ""
        added = text[self._shown : len(text) - int(incomplete)]
        self._shown += len(added)
        if len(self._window) >= self._limit:
            self._shrink(text)
        return added

    def flush(self) -> str:
        """Return the text still held back at the end, without an incomplete last character."""
        if not self._byte_tokens:
            return ""
        held = self._decode(self._window)[self._shown :]
        self._shown += len(held)
        return held.rstrip(_REPLACEMENT)

    def _shrink(self, text: str) -> None:
        """Drop the older half of the window where that leaves the text of the rest as it is."""
        unshown = len(text) - self._shown
        for start in range(len(self._window) // 2, len(self._window)):
            head = self._decode(self._window[:start])
            tail = self._decode(self._window[start:])
            ends_on_a_character = not head.endswith(_REPLACEMENT) or head + tail == text
            if ends_on_a_character and len(tail) > unshown:
                del self._window[:start]
                self._shown = len(tail) - unshown
                self._limit = _WINDOW_TOKENS
                return
        self._limit = 2 * len(self._window)

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

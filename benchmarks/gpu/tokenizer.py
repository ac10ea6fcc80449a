"""A tokenizer for models that know no language: it spells ids."""


class SpelledIds:
    """What the engine asks of a tokenizer; token 17 is " 17"."""

    chat_template = None
    eos_token_id = None
    unk_token_id = None

    def __init__(self, vocab: int) -> None:
        self._vocab = vocab
        self.added_tokens_decoder: dict[int, object] = {}

    def __len__(self) -> int:
        return self._vocab

    def get_vocab(self) -> dict[str, int]:
        """Return every text with its id."""
        return {f" {token}": token for token in range(self._vocab)}

    def convert_tokens_to_ids(self, tokens: str) -> int | None:
        """Return None: there are no special tokens."""
        return None

    def decode(
        self, token_ids: list[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool
    ) -> str:
        """Return the ids as text."""
        return "".join(f" {token}" for token in token_ids)

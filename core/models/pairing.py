"""Whether a draft speaks the target's language: judged by vocabulary, never by names."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """Whether two models can work as a pair.

    ``reason`` is one sentence, said in either case. ``shared_vocab`` is how many ids, from 0 on,
    mean the same to both; beyond them both must be masked.
    """

    compatible: bool
    reason: str
    shared_vocab: int


def check_pair(
    target_tokenizer: Any, draft_tokenizer: Any, target_width: int, draft_width: int
) -> PairVerdict:
    """Compare two vocabularies id by id, added tokens included.

    The widths are those of the models' logits. They may differ: the tail beyond the tokenizer is
    padding, which families cut to different sizes (151,936 and 152,064 for the same Qwen2.5).
    """
    return compare_vocabularies(
        target_tokenizer.get_vocab(), draft_tokenizer.get_vocab(), target_width, draft_width
    )


def compare_vocabularies(
    target: dict[str, int], draft: dict[str, int], target_width: int, draft_width: int
) -> PairVerdict:
    """Compare as :func:`check_pair` does, from texts to ids."""
    shared = min(real_size(target), real_size(draft), target_width, draft_width)
    if not target or not draft:
        return PairVerdict(
            compatible=False,
            reason="A model without a vocabulary cannot be paired.",
            shared_vocab=0,
        )
    first = None if target == draft else _first_difference(target, draft)
    if first is not None:
        return PairVerdict(
            compatible=False,
            reason=(
                f"The vocabularies differ: token {first} is {_text_of(first, target)} in the "
                f"target and {_text_of(first, draft)} in the draft."
            ),
            shared_vocab=min(first, shared),
        )
    reason = f"Both models use the same {shared:,} tokens."
    if target_width != draft_width:
        reason += f" Their outputs are padded differently ({target_width:,} and {draft_width:,})."
    return PairVerdict(compatible=True, reason=reason, shared_vocab=shared)


def real_size(vocab: dict[str, int]) -> int:
    """Return the number of ids up to the last that is not padding; ``vocab`` is texts to ids.

    GGUF files name the padding of the output layer "[PAD151665]" and so on, up to its width.
    """
    top = max(vocab.values(), default=-1)
    while vocab.get(f"[PAD{top}]") == top:
        top -= 1
    return top + 1


def _first_difference(target: dict[str, int], draft: dict[str, int]) -> int | None:
    sizes = (real_size(target), real_size(draft))
    differing = (
        token_id
        for vocab, other, size in ((target, draft, sizes[0]), (draft, target, sizes[1]))
        for text, token_id in vocab.items()
        if token_id < size and other.get(text) != token_id
    )
    return min(differing, default=None)


def _text_of(wanted: int, vocab: dict[str, int]) -> str:
    return next((repr(text) for text, token_id in vocab.items() if token_id == wanted), "missing")

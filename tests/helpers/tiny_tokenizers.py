"""Tokenizers built in memory, small enough for every test."""

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
from transformers import PreTrainedTokenizerFast

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

_CORPUS = (
    "the quick brown fox jumps over the lazy dog and runs away",
    "système élève café 日本語 日本 👩‍👩‍👧 😀 naïve €",
    "user assistant system hello there, what is it?\n\nA line.\n",
)


def byte_level(
    *,
    special: tuple[str, ...] = ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    chat_template: str | None = None,
    eos: str | None = None,
    bos: str | None = None,
    vocab_size: int = 400,
) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer (as of SmolLM2 and Qwen) that can spell any text."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(
        _CORPUS * 3,
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=list(special),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return _wrap(backend, chat_template=chat_template, eos=eos, bos=bos)


def sentencepiece_like(
    *, chat_template: str | None = None, eos: str | None = "</s>", bos: str | None = "<s>"
) -> PreTrainedTokenizerFast:
    """A BPE tokenizer with leading-space pieces and byte tokens (as of Llama 2)."""
    words = ["▁the", "▁quick", "▁fox", "▁a", "▁", "the", "quick", "fox", "a", "é", "|", "<", ">"]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    backend = Tokenizer(
        models.BPE(
            vocab={piece: index for index, piece in enumerate(pieces)},
            merges=[],
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    backend.add_special_tokens(
        [AddedToken(piece, special=True, normalized=False) for piece in ("<unk>", "<s>", "</s>")]
    )
    return _wrap(backend, chat_template=chat_template, eos=eos, bos=bos, unk="<unk>")


def _wrap(
    backend: Tokenizer,
    *,
    chat_template: str | None,
    eos: str | None,
    bos: str | None,
    unk: str | None = None,
) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        chat_template=chat_template,
        eos_token=eos,
        bos_token=bos,
        unk_token=unk,
    )

"""Tiny checkpoints on the disk: folders of safetensors and GGUF files."""

from pathlib import Path

import gguf
import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from tests.helpers.tiny import tiny_llama
from tests.helpers.tiny_tokenizers import byte_level

_UNMERGED = 259
"""The 256 bytes and three special tokens."""


def save_folder(
    folder: Path,
    model: PreTrainedModel | None = None,
    tokenizer: PreTrainedTokenizerFast | None = None,
) -> Path:
    """Save a tiny Llama (or what is given) with a tokenizer, as safetensors."""
    tokenizer = tokenizer or byte_level()
    model = model or tiny_llama(vocab=len(tokenizer))
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


def write_gguf(
    path: Path,
    *,
    architecture: str = "llama",
    seed: int = 0,
    layers: int = 2,
    context: int = 512,
    leave_out: tuple[str, ...] = (),
    vocabulary: bool = True,
    swapped: tuple[int, int] | None = None,
) -> Path:
    """Write a tiny random GGUF model in float32, without the tensors named in ``leave_out``.

    ``swapped`` are two ids whose tokens change places.
    """
    hidden, heads, kv_heads, inner = 32, 4, 2, 64
    tokens = _tokens()
    if swapped is not None:
        one, other = swapped
        tokens[one], tokens[other] = tokens[other], tokens[one]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("Tiny")
    writer.add_context_length(context)
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(tokens))
    if vocabulary:
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list(tokens)
        writer.add_token_types([3] * 3 + [1] * (len(tokens) - 3))
        writer.add_token_merges([f"{tokens[10]} {tokens[11]}"])  # a file without merges is refused
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(2)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(tokens), hidden),
        "output_norm.weight": (hidden,),
        "output.weight": (len(tokens), hidden),
    }
    for layer in range(layers):
        block = {
            "attn_q": (hidden, hidden),
            "attn_k": (hidden // heads * kv_heads, hidden),
            "attn_v": (hidden // heads * kv_heads, hidden),
            "attn_output": (hidden, hidden),
            "ffn_gate": (inner, hidden),
            "ffn_up": (inner, hidden),
            "ffn_down": (hidden, inner),
            "attn_norm": (hidden,),
            "ffn_norm": (hidden,),
        }
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in block.items()}
    random = np.random.default_rng(seed)
    for name, shape in shapes.items():
        if name not in leave_out:
            writer.add_tensor(name, random.normal(0, 0.4, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tokens() -> list[str]:
    vocab = byte_level(vocab_size=_UNMERGED).get_vocab()
    tokens = sorted(vocab, key=lambda text: vocab[text])
    return [*tokens, tokens[10] + tokens[11]]

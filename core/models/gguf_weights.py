"""A GGUF file's weights as safetensors, one tensor at a time.

transformers' own loader holds all of a model at once, some of it twice; here the largest tensor
is the most that is held. For the families whose names and layouts are known; the result is the
same bit for bit. Layout: github.com/huggingface/safetensors, "Format".
"""

import importlib
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from core.models.quiet import OnFraction

_FAMILIES = frozenset({"llama", "qwen2", "qwen3"})
_DTYPES = {torch.float32: "F32", torch.bfloat16: "BF16"}
_OUTSIDE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_INSIDE = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_UNUSED = frozenset({"rope_freqs.weight"})
"""Tensors that transformers does not take from the file either."""
_PIECE_ROWS = 8192


Rows = npt.NDArray[np.float32]


class UnknownLayout(Exception):
    """These weights are not of a layout that is known here."""


class GgufWeights:
    """The weights of a GGUF file under transformers' names.

    ``shapes`` are those of the model's own weights, by name. Raises UnknownLayout.
    """

    def __init__(self, path: Path, config: Any, shapes: Mapping[str, tuple[int, ...]]) -> None:
        gguf: Any = importlib.import_module("gguf")
        self._dequantize = gguf.dequantize
        self._config = config
        reader = gguf.GGUFReader(path)
        field = reader.get_field("general.architecture")
        self._permuted = field is not None and field.contents() == "llama"
        if config.model_type not in _FAMILIES or field is None or field.contents() not in _FAMILIES:
            raise UnknownLayout
        self._tensors: dict[str, Any] = {}
        for tensor in reader.tensors:
            if tensor.name in _UNUSED:
                continue
            name = _their_name(tensor.name)
            if tuple(int(size) for size in reversed(tensor.shape)) != shapes.get(name):
                raise UnknownLayout
            self._tensors[name] = tensor
        self.missing = sorted(set(shapes) - set(self._tensors))

    def save(self, path: Path, dtype: torch.dtype, on_fraction: OnFraction) -> None:
        """Write them all in ``dtype``. ``on_fraction`` may raise to stop. Raises OSError."""
        item_bytes = dtype.itemsize
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        end = 0
        for name, tensor in self._tensors.items():
            start, end = end, end + int(tensor.n_elements) * item_bytes
            shape = [int(size) for size in reversed(tensor.shape)]
            header[name] = {"dtype": _DTYPES[dtype], "shape": shape, "data_offsets": [start, end]}
        head = json.dumps(header, separators=(",", ":")).encode()
        head += b" " * (-len(head) % 8)
        with path.open("wb") as file:
            file.write(struct.pack("<Q", len(head)) + head)
            done = 0
            for name, tensor in self._tensors.items():
                for piece in self._pieces(name, tensor):
                    own = np.require(piece, requirements=["C", "W"])
                    weights = torch.from_numpy(own).to(dtype)
                    file.write(weights.view(torch.uint8).numpy().tobytes())
                done += int(tensor.n_elements) * item_bytes
                on_fraction(done / end)

    def _pieces(self, name: str, tensor: Any) -> Iterator[Rows]:
        """Yield a tensor's rows in float32, so many at a time."""
        heads = self._heads(name)
        if heads:
            yield _halves(self._dequantize(tensor.data, tensor.tensor_type), heads)
            return
        if tensor.data.ndim < 2:
            yield self._dequantize(tensor.data, tensor.tensor_type)
            return
        for first in range(0, len(tensor.data), _PIECE_ROWS):
            yield self._dequantize(tensor.data[first : first + _PIECE_ROWS], tensor.tensor_type)

    def _heads(self, name: str) -> int:
        """Return how many heads of this weight have their halves interleaved in the file."""
        if not self._permuted:
            return 0
        if ".q_proj." in name:
            return int(self._config.num_attention_heads)
        return int(self._config.num_key_value_heads) if ".k_proj." in name else 0


def _their_name(name: str) -> str:
    """Return transformers' name of a tensor. Raises UnknownLayout."""
    stem, _, kind = name.rpartition(".")
    outside = _OUTSIDE.get(stem)
    if outside is not None:
        return f"{outside}.{kind}"
    block, _, place = stem.partition(".")
    number, _, place = place.partition(".")
    if block != "blk" or not number.isdigit() or place not in _INSIDE:
        raise UnknownLayout
    return f"model.layers.{number}.{_INSIDE[place]}.{kind}"


def _halves(rows: Rows, heads: int) -> Rows:
    """Undo llama.cpp's order of the rows of each head, in which pairs that turn stand together."""
    half = len(rows) // heads // 2
    return rows.reshape(heads, half, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)

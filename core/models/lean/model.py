"""Reading a checkpoint into int8 weights, one layer at a time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from core.hub.files import parse_json
from core.models.lean.linear import WEIGHT_LEVELS, Int8Linear, activation_levels, quantize_rows
from core.models.lean.network import LeanLayer, LeanWeights
from core.models.lean.shape import LeanShape, lean_shape
from core.models.lean.smoothing import TOKENS, Smoother

_SMALL_HIDDEN = 1024
_INDEX = "model.safetensors.index.json"
_WEIGHTS = "model.safetensors"
_EMBEDDING = "model.embed_tokens.weight"

Get = Callable[[str], torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeanModel:
    """An int8 model on the CPU, with the configuration of the checkpoint it was made from."""

    weights: LeanWeights
    config: Any
    generation_config: Any
    dtype: torch.dtype = torch.int8

    def get_memory_footprint(self) -> int:
        """Return how many bytes the weights take; the embedding stays mapped from its file."""
        linears = [self.weights.head]
        for layer in self.weights.layers:
            linears += [layer.query_key_value, layer.output, layer.gate_up, layer.down]
        return sum(linear.weight_bytes for linear in linears)


def read_lean_model(
    folder: Path,
    config: Any,
    generation_config: Any,
    on_fraction: Callable[[float], None],
    *,
    text_ids: Sequence[int] = (),
) -> LeanModel:
    """Read a folder of safetensors in the names of transformers.

    The checkpoint may be in any floating-point format. ``text_ids`` are those of
    :data:`core.models.lean.smoothing.TEXT`; with them outliers are smoothed, and rows need one
    term in place of two where it has 8 bits. ``on_fraction`` may raise to stop.
    Raises KeyError where a weight is missing, ValueError for wrong shapes, OSError.
    """
    shape = lean_shape(config)
    files = _files(folder)
    rotations = _rotations(config, shape)
    smoother = None
    if text_ids and activation_levels() == WEIGHT_LEVELS:
        # No more than there are places for.
        ids = torch.tensor(text_ids[: min(TOKENS, len(rotations))])
        with _opened(files) as get:
            smoother = Smoother(shape, get(_EMBEDDING)[ids].float(), rotations)
    layers: list[LeanLayer] = []
    for number in range(shape.layers):
        # One opening a layer: what was read of the mapping is given back with it.
        with _opened(files) as get:
            layers.append(_layer(shape, f"model.layers.{number}", get, smoother))
        on_fraction((number + 1) / (shape.layers + 1))
    head_name = _EMBEDDING if shape.tied_head else "lm_head.weight"
    with _opened(files) as get:
        head = _linear(shape, get(head_name), smooth=smoother is not None)
        norm = get("model.norm.weight").float()
    with _opened(files) as get:
        # A mapping of its own, of which only the rows that are looked up come into memory.
        embedding, unembedding = get(_EMBEDDING), get(head_name)
    weights = LeanWeights(
        shape=shape,
        embedding=embedding,
        unembedding=unembedding,
        layers=tuple(layers),
        norm=norm,
        head=head,
        rotations=rotations,
    )
    on_fraction(1.0)
    return LeanModel(weights=weights, config=config, generation_config=generation_config)


def _layer(shape: LeanShape, prefix: str, get: Get, smoother: Smoother | None) -> LeanLayer:
    smooth = smoother is not None

    def fused(names: tuple[str, ...]) -> torch.Tensor:
        return torch.cat([get(f"{prefix}.{name}.weight") for name in names])

    def head_rows(kind: str) -> torch.Tensor:
        rows = [get(f"{prefix}.self_attn.{name}_proj.{kind}") for name in "qkv"]
        return torch.cat([*(_interleaved(part, shape.head_dim) for part in rows[:2]), rows[2]])

    def head_norm(name: str) -> torch.Tensor | None:
        if not shape.query_key_norm:
            return None
        return _interleaved(get(f"{prefix}.self_attn.{name}.weight").float(), shape.head_dim)

    input_norm = get(f"{prefix}.input_layernorm.weight").float()
    rows = head_rows("weight")
    if smoother is not None:
        input_norm, rows = smoother.fold(input_norm, rows)
    bias = head_rows("bias").float() if shape.query_key_value_bias else None
    query_key_value = _linear(shape, rows, bias, after_norm=True, smooth=smooth)
    query_norm, key_norm = head_norm("q_norm"), head_norm("k_norm")
    output = _linear(shape, fused(("self_attn.o_proj",)), smooth=smooth)
    if smoother is not None:
        smoother.attend(input_norm, query_key_value, (query_norm, key_norm), output)
    post_norm = get(f"{prefix}.post_attention_layernorm.weight").float()
    rows = fused(("mlp.gate_proj", "mlp.up_proj"))
    if smoother is not None:
        post_norm, rows = smoother.fold(post_norm, rows)
    layer = LeanLayer(
        input_norm=input_norm,
        query_key_value=query_key_value,
        query_norm=query_norm,
        key_norm=key_norm,
        output=output,
        post_norm=post_norm,
        gate_up=_linear(shape, rows, after_norm=True, smooth=smooth),
        down=_linear(shape, fused(("mlp.down_proj",)), smooth=smooth),
    )
    if smoother is not None:
        smoother.feed_forward(layer)
    return layer


def _linear(
    shape: LeanShape,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    after_norm: bool = False,
    smooth: bool,
) -> Int8Linear:
    """Quantize a linear layer; its input gets a second term where one costs quality.

    Unless they were smoothed, outliers stand where a norm comes before, and small models suffer
    from one term everywhere. So does any model where one term has only 7 bits.
    """
    small = shape.hidden < _SMALL_HIDDEN or activation_levels() < WEIGHT_LEVELS
    two_terms = not smooth and (after_norm or small)
    return Int8Linear(*quantize_rows(weight), bias, two_terms=two_terms)


def _interleaved(rows: torch.Tensor, size: int) -> torch.Tensor:
    """Reorder each head from (first half, second half) to pairs, so that a pair turns as one."""
    order = torch.arange(size).view(2, size // 2).t().reshape(-1)
    return rows.view(-1, size, *rows.shape[1:])[:, order].reshape(rows.shape)


def _rotations(config: Any, shape: LeanShape) -> torch.Tensor:
    """Return the rotary angles of every position as complex numbers [positions, size / 2].

    They come from the model's own module, so that every scaling that it knows is right.
    """
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    rotary = LlamaRotaryEmbedding(config=config)
    positions = torch.arange(config.max_position_embeddings)[None]
    cosine, sine = rotary(torch.zeros(1), positions)
    half = shape.head_dim // 2
    return torch.complex(cosine[0, :, :half].contiguous(), sine[0, :, :half].contiguous())


def _files(folder: Path) -> dict[str, Path]:
    """Return which file holds each weight."""
    index = folder / _INDEX
    if index.is_file():
        places = parse_json(index.read_text(encoding="utf-8"))["weight_map"]
        return {name: folder / file for name, file in places.items()}
    with safe_open(folder / _WEIGHTS, framework="pt") as file:
        return dict.fromkeys(file.keys(), folder / _WEIGHTS)


@contextmanager
def _opened(files: dict[str, Path]) -> Iterator[Get]:
    with ExitStack() as stack:
        opened: dict[Path, Any] = {}

        def get(name: str) -> torch.Tensor:
            path = files[name]
            if path not in opened:
                opened[path] = stack.enter_context(safe_open(path, framework="pt"))
            tensor: torch.Tensor = opened[path].get_tensor(name)
            return tensor

        yield get

"""Models from configurations with random weights, and pairs whose agreement can be chosen."""

import copy
import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from transformers import Qwen2Config, Qwen2ForCausalLM

from core.models.quant.bnb import quantize_linears
from core.requests import Precision

BF16, INT8, NF4 = Precision.BFLOAT16, Precision.INT8, Precision.NF4
_LOGIT_SPREAD = 4.5
"""The standard deviation of logits at which a random model is about as sure as a real one."""
_SEARCH_STEPS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The dimensions of a model of the Qwen2 family."""

    name: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    tied: bool
    context: int = 8192

    def config(self) -> Any:
        """Return the transformers configuration."""
        make: Any = Qwen2Config
        return make(
            vocab_size=self.vocab,
            hidden_size=self.hidden,
            intermediate_size=self.intermediate,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            max_position_embeddings=self.context,
            tie_word_embeddings=self.tied,
            eos_token_id=None,
            bos_token_id=None,
            pad_token_id=None,
        )

    def numbers(self) -> dict[str, int]:
        """Return what sizing a cache needs, under the names of core.models.memory."""
        return {
            "layers": self.layers,
            "hidden": self.hidden,
            "heads": self.heads,
            "kv_heads": self.kv_heads,
            "context": self.context,
        }


def build(shape: Shape, device: torch.device, dtype: torch.dtype, seed: int = 0) -> Any:
    """Return a model with random weights, made where it will run."""
    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with device:
            model: Any = Qwen2ForCausalLM(shape.config())
    finally:
        torch.set_default_dtype(before)
    model.generation_config.eos_token_id = model.generation_config.pad_token_id = None
    return model.eval().requires_grad_(False)


def free() -> None:
    """Give back what nothing holds any more."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def quantize(model: Any, precision: Precision) -> None:
    """Quantize the layers in place, as transformers does on loading. Raises ImportError."""
    quantize_linears(model.model.layers, precision)
    free()


def weights_read_bytes(model: Any) -> int:
    """Return how many bytes of weights a pass reads: all but the rows of an untied embedding."""
    total: int = model.get_memory_footprint()
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    if embedding.data_ptr() == head.data_ptr():
        return total
    return total - int(embedding.nbytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A target, and its own first layers as draft. ``agreement`` is 1 - total variation."""

    target: Any
    draft: Any
    agreement: float


def synthetic_pair(
    shape: Shape,
    draft_layers: int,
    wanted: float,
    device: torch.device,
    dtype: torch.dtype,
    precision: Precision = BF16,
) -> Pair:
    """Return a pair whose draft's tokens stand with about the probability ``wanted``.

    The draft is the target without its later layers. What those add to a token's state is scaled
    down until the expected acceptance min(p, q), summed over the vocabulary, is as wanted. The
    draft stays in ``dtype`` where the target is quantized.
    """
    target = build(shape, device, dtype)
    draft = _first_layers(target, replace(shape, layers=draft_layers))
    ids = torch.randint(shape.vocab, (1, 128), device=device)
    with torch.inference_mode():
        target.lm_head.weight.mul_(_LOGIT_SPREAD / draft(ids).logits.float().std())
    later = target.model.layers[draft_layers:]
    low, high, scale = 0.0, 1.0, 1.0
    for _ in range(_SEARCH_STEPS):
        # A quarter below, because the scale works over several orders of magnitude.
        middle = low + (high - low) / 4 if low else high / 4
        _scale(later, middle / scale)
        scale = middle
        if _agreement(target, draft, ids) > wanted:
            low = middle
        else:
            high = middle
    agreement = _agreement(target, draft, ids)
    if precision is not BF16:
        draft.model.layers = copy.deepcopy(draft.model.layers)
        quantize(target, precision)
    return Pair(target=target, draft=draft, agreement=agreement)


def _first_layers(target: Any, shape: Shape) -> Any:
    with torch.device("meta"):
        draft: Any = Qwen2ForCausalLM(shape.config())
    draft.model.embed_tokens = target.model.embed_tokens
    draft.model.layers = nn.ModuleList(target.model.layers[: shape.layers])
    draft.model.norm = target.model.norm
    draft.model.rotary_emb = target.model.rotary_emb
    draft.lm_head = target.lm_head
    draft.generation_config.eos_token_id = draft.generation_config.pad_token_id = None
    return draft.eval()


@torch.inference_mode()
def _scale(layers: Sequence[Any], factor: float) -> None:
    for layer in layers:
        layer.self_attn.o_proj.weight.mul_(factor)
        layer.mlp.down_proj.weight.mul_(factor)


@torch.inference_mode()
def _agreement(target: Any, draft: Any, ids: torch.Tensor) -> float:
    target_probs = target(ids).logits[0].float().softmax(-1)  # [positions, vocab]
    draft_probs = draft(ids).logits[0].float().softmax(-1)
    return float(torch.minimum(target_probs, draft_probs).sum(-1).mean())

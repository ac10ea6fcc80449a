"""Which models the lean forward pass can run, and their dimensions."""

from dataclasses import dataclass
from typing import Any

_FAMILIES = frozenset({"llama", "mistral", "qwen2", "qwen3"})
_STATIC_ROPE = frozenset({"default", "linear", "llama3", "yarn"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LeanShape:
    """The dimensions of a decoder of the Llama family.

    ``query_key_norm``: queries and keys are normalised per head (Qwen3);
    ``query_key_value_bias``: their projections have biases (Qwen2).
    """

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    vocab: int
    norm_eps: float
    query_key_norm: bool
    query_key_value_bias: bool
    tied_head: bool

    @property
    def group(self) -> int:
        """How many query heads share one key head."""
        return self.heads // self.kv_heads


def lean_obstacle(config: Any) -> str:
    """Return why the lean forward pass cannot run a model, as the end of a sentence, or "".

    ``config`` is the transformers configuration of a causal language model.
    """
    if config.model_type not in _FAMILIES:
        return f"is not made for models of the kind {config.model_type}"
    if config.hidden_act != "silu":
        return f"knows the activation silu, and this model has {config.hidden_act}"
    if getattr(config, "mlp_bias", False) or _output_bias(config):
        return "does not know biases in these places"
    kinds = set(getattr(config, "layer_types", None) or ())
    window = getattr(config, "sliding_window", None)
    if kinds - {"full_attention"} or (window and not kinds and config.model_type == "mistral"):
        return "does not know sliding windows"
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type", "default") not in _STATIC_ROPE:
        return f"does not know the position scaling {rope['rope_type']}"
    return ""


def lean_shape(config: Any) -> LeanShape:
    """Return the dimensions of a model without an obstacle."""
    heads: int = config.num_attention_heads
    return LeanShape(
        layers=config.num_hidden_layers,
        heads=heads,
        kv_heads=config.num_key_value_heads,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        hidden=config.hidden_size,
        vocab=config.vocab_size,
        norm_eps=config.rms_norm_eps,
        query_key_norm=config.model_type == "qwen3",
        query_key_value_bias=config.model_type == "qwen2",
        tied_head=bool(config.tie_word_embeddings),
    )


def _output_bias(config: Any) -> bool:
    # Llama's and Qwen3's attention_bias puts one on the output projection, too; Qwen2 has
    # biases on queries, keys and values alone and does not say so.
    return bool(getattr(config, "attention_bias", False))

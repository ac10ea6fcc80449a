"""Which models the static cache can serve, and which of them can be captured as CUDA graphs."""

import inspect
from typing import Any

from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

_MASKABLE = frozenset({"sdpa", "eager"})
_MOVING_ROPE = frozenset({"dynamic", "longrope"})
_INT8_LINEAR = "Linear8bitLt"


def static_obstacle(model: Any) -> str:
    """Return why a transformers model cannot use the static cache, as the end of a sentence, or "".

    What is refused stays on the eager runner: sliding windows, recurrent states, and whatever does
    not place its tokens by the positions and the mask that it is given.
    """
    config = model.config.get_text_config()
    if any(type(layer) is not DynamicLayer for layer in DynamicCache(config=model.config).layers):
        return "keeps more or less than the keys and values of every token"
    parameters = inspect.signature(model.forward).parameters
    if "position_ids" not in parameters or getattr(config, "alibi", False):
        return "does not take the positions of its tokens"
    if "cache" not in parameters and "past_key_values" not in parameters:
        return "does not take a cache"
    if config._attn_implementation not in _MASKABLE:
        return f"has the attention {config._attn_implementation}, which takes no mask"
    if _MOVING_ROPE & _rope_types(getattr(config, "rope_parameters", None) or {}):
        return "scales positions by the length of the text"
    # What transformers says of itself: a pass is one graph without decisions on the data.
    if not getattr(model, "_can_compile_fullgraph", False):
        return "does not run as one fixed graph"
    return ""


def capture_obstacle(model: Any) -> str:
    """Return why passes of a model cannot be captured, as the end of a sentence, or ""."""
    if any(type(module).__name__ == _INT8_LINEAR for module in model.modules()):
        # LLM.int8 takes outlying columns apart, as many as there happen to be.
        return "computes in LLM.int8, whose shapes depend on the data"
    if len(set((getattr(model, "hf_device_map", None) or {}).values())) > 1:
        return "is spread over several devices, so its weights may move"
    return ""


def _rope_types(parameters: dict[str, Any]) -> set[str]:
    """Return every kind of position scaling; some models name one for each kind of layer."""
    nested = [value for value in parameters.values() if isinstance(value, dict)]
    return {str(part.get("rope_type", "default")) for part in (parameters, *nested)}

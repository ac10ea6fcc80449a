"""Attention for few rows over a long cache, without a copy of the cache for every query head.

Where several query heads share one key head, transformers repeats keys and values for each as soon
as there is a mask and more than one row. Here the heads of a group stand as rows of one product
instead: the same numbers, and verifying several rows reads the cache once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

_NAME = "paceline-packed"
_PLAIN = "sdpa"


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **extra: Any,
) -> tuple[torch.Tensor, None]:
    """Return the mixed values [1, rows, heads, size] as transformers' own functions do.

    ``query`` [1, heads, rows, size], ``key`` and ``value`` [1, kv heads, visible, size], and
    ``attention_mask`` [1, 1, rows, visible].
    """
    _, heads, rows, size = query.shape
    kv_heads = key.shape[1]
    group = heads // kv_heads
    unusual = any(extra.get(name) is not None for name in ("position_bias", "s_aux", "softcap"))
    if attention_mask is None or group == 1 or unusual:
        plain: Any = ALL_ATTENTION_FUNCTIONS[_PLAIN]
        result: tuple[torch.Tensor, None] = plain(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **extra
        )
        return result
    mixed = F.scaled_dot_product_attention(
        query.reshape(1, kv_heads, group * rows, size),
        key,
        value,
        attn_mask=attention_mask.repeat(1, 1, group, 1),
        scale=scaling,
    )  # [1, kv heads, group * rows, size]
    return mixed.view(1, heads, rows, -1).transpose(1, 2).contiguous(), None


class PackedAttention:
    """Lends a model this attention for the time of a pass, and leaves it as it was."""

    def __init__(self, model: Any) -> None:
        ALL_ATTENTION_FUNCTIONS.register(_NAME, packed_attention)
        configs = {
            id(config): config
            for module in model.modules()
            if (config := getattr(module, "config", None)) is not None
        }
        # Modules may share a configuration, or come from another model and keep that one's.
        self._configs = [
            config
            for config in configs.values()
            if getattr(config, "_attn_implementation", None) == _PLAIN
        ]

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Use it within the block."""
        try:
            for config in self._configs:
                config._attn_implementation = _NAME
            yield
        finally:
            for config in self._configs:
                config._attn_implementation = _PLAIN

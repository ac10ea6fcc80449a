"""What a pair takes in memory, before anything of it is loaded."""

import logging
from dataclasses import dataclass

import psutil

from core.hub.files import format_bytes
from core.models.precision import draft_precision, weights_bytes
from core.models.source import ModelSource
from core.requests import Device, Precision

logger = logging.getLogger(__name__)

DEFAULT_CONTEXT = 4096
"""The context that a cache is sized for where none is asked for, in tokens."""
WORKSPACE_BYTES = 300_000_000
"""Activations, logits of a prefill chunk and the libraries themselves, roughly."""
CUDA_BYTES = 600_000_000
"""What the driver and the libraries take of a GPU's memory for a process, roughly."""
GRAPHS_BYTES = 200_000_000
"""The pool and the buffers of one model's captured passes on a GPU, roughly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """What one model takes: its weights, and its key/value cache at some context length."""

    weights_bytes: int
    cache_bytes: int

    @property
    def total_bytes(self) -> int:
        """Weights and cache together."""
        return self.weights_bytes + self.cache_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FitVerdict:
    """Whether a pair fits; ``free_bytes`` is None where it cannot be known, then all fits.

    ``reason`` is one sentence with the numbers.
    """

    fits: bool
    target_fits: bool
    needed_bytes: int
    free_bytes: int | None
    reason: str


def estimate(source: ModelSource, precision: Precision, context_tokens: int) -> MemoryEstimate:
    """Return about what a model takes; the cache counts as 0 where its shape is unknown.

    ``context_tokens`` is capped by the model's own limit.
    """
    numbers = source.numbers
    heads = numbers.get("heads", 0)
    head_dim = numbers.get("head_dim") or (numbers.get("hidden", 0) // heads if heads else 0)
    tokens = min(context_tokens, numbers.get("context", context_tokens))
    width = numbers.get("layers", 0) * numbers.get("kv_heads", heads) * head_dim
    number_bytes = 4 if precision is Precision.FLOAT32 else 2
    return MemoryEstimate(
        weights_bytes=weights_bytes(source.elements, precision),
        cache_bytes=2 * width * tokens * number_bytes,
    )


def judge_fit(
    target: ModelSource,
    draft: ModelSource | None,
    *,
    precision: Precision,
    device: Device,
    context_tokens: int | None,
    free_bytes: int | None,
) -> FitVerdict:
    """Return whether target and draft fit into ``free_bytes``.

    Counted are the weights and caches of both, their captured passes on a GPU, and a margin.
    """
    tokens = context_tokens or DEFAULT_CONTEXT
    alone = estimate(target, precision, tokens).total_bytes + _margin_bytes(device)
    needed = alone
    if draft is not None:
        needed += estimate(draft, draft_precision(precision, device), tokens).total_bytes
        needed += _graphs_bytes(device)
    if free_bytes is None:
        reason = f"About {format_bytes(needed)} of memory are needed."
    else:
        reason = (
            f"About {format_bytes(needed)} of memory are needed and "
            f"{format_bytes(free_bytes)} are free."
        )
    return FitVerdict(
        fits=free_bytes is None or needed <= free_bytes,
        target_fits=free_bytes is None or alone <= free_bytes,
        needed_bytes=needed,
        free_bytes=free_bytes,
        reason=reason,
    )


def weights_room_bytes(
    target: ModelSource, device: Device, context_tokens: int | None, free_bytes: int | None
) -> int | None:
    """Return what a target's weights may take of ``free_bytes`` beside all else that it needs."""
    if free_bytes is None:
        return None
    cache_bytes = estimate(
        target, Precision.BFLOAT16, context_tokens or DEFAULT_CONTEXT
    ).cache_bytes
    return max(free_bytes - cache_bytes - _margin_bytes(device), 0)


def _margin_bytes(device: Device) -> int:
    own_bytes = CUDA_BYTES if device is Device.CUDA else 0
    return WORKSPACE_BYTES + own_bytes + _graphs_bytes(device)


def _graphs_bytes(device: Device) -> int:
    return GRAPHS_BYTES if device is Device.CUDA else 0


def free_memory_bytes(device: Device) -> int | None:
    """Return how much memory a device has free, or None where that cannot be known."""
    if device is Device.CPU:
        return int(psutil.virtual_memory().available)
    import pynvml

    try:
        pynvml.nvmlInit()
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(0)
            return int(pynvml.nvmlDeviceGetMemoryInfo(handle).free)
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        logger.info("the GPU does not say how much memory is free", exc_info=True)
        return None

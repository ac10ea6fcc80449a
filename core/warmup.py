"""The first passes of a loaded pair: what they cost and, on a GPU, whether memory suffices."""

import logging
from collections.abc import Callable

import torch

from core.models.lean.runner import LeanRunner
from core.models.measure import VERIFY_ROWS, measure_verify_ms
from core.parts import Parts
from core.requests import MAX_GAMMA, DrafterKind

logger = logging.getLogger(__name__)


_LEAN_ROWS = (1, MAX_GAMMA + 1, 8)
"""Few, as a pass takes long. Rows after the eighth are dear: they are multiplied, no more read."""


def needs_warming(parts: Parts) -> bool:
    """Return whether costs are worth measuring before the first reply: where they are no line.

    On CUDA they are steps, and in int8 on the CPU they have a knee.
    """
    runner = parts.target.runner
    return runner.device.type == "cuda" or isinstance(runner, LeanRunner)


def warm_up(parts: Parts, cancelled: Callable[[], bool]) -> bool:
    """Run target and draft as replies will, and tell the automatic draft length what that costs.

    Takes little more than the budget of :func:`measure_verify_ms`. Allocates the caches of both
    models and the graphs that are measured; returns False where memory ran out over that, with what
    they had allocated given back.
    """
    try:
        runner = parts.target.runner
        rows = _LEAN_ROWS if isinstance(runner, LeanRunner) else VERIFY_ROWS
        verify_ms = measure_verify_ms(runner, rows, cancelled=cancelled)
        step_ms: dict[str, float] = {}
        if parts.draft is not None and not cancelled():
            measured = measure_verify_ms(parts.draft.runner, (1,), cancelled=cancelled)
            step_ms = {str(DrafterKind.MODEL): measured[1]} if measured else {}
    except (MemoryError, torch.OutOfMemoryError) as error:
        # As text: a log that keeps the error keeps its frames, and with them the models.
        logger.warning("memory ran out in the first passes: %s", str(error))
        parts.clear_caches()
        return False
    parts.auto_gamma.seed(verify_ms, step_ms)
    return True

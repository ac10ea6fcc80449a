"""What passes of a runner take, measured right after a load."""

import statistics
import time
from collections.abc import Callable, Sequence

import torch

from core.models.runner import Runner
from core.requests import MAX_GAMMA

VERIFY_ROWS = (1, 2, 4, 6, 8, 12, MAX_GAMMA + 1, 3, 5, 7, 9, 10, 11, 13, 14, 15, 16)
"""Every size of a verification, in an order that tells the shape of the curve first."""
DEFAULT_BUDGET_MS = 800.0
_CONTEXT_TOKENS = 32
_UNTIMED = 2
"""The first pass sets things up and the second is recorded, where passes are."""


def measure_verify_ms(
    runner: Runner,
    rows: Sequence[int] = VERIFY_ROWS,
    *,
    repeats: int = 3,
    budget_ms: float = DEFAULT_BUDGET_MS,
    cancelled: Callable[[], bool] = lambda: False,
) -> dict[int, float]:
    """Return the median milliseconds of a pass by its number of rows, judging included.

    Goes through ``rows`` in their order until the budget is spent or ``cancelled()``; what is
    missing then is for the caller to interpolate. The first number is measured in any case, unless
    cancelled. Forgets what the cache holds, before and after. Raises what a pass raises, such as
    torch.OutOfMemoryError.
    """
    deadline = time.perf_counter() + budget_ms / 1000.0
    measured: dict[int, float] = {}
    runner.crop(0)
    context = min(_CONTEXT_TOKENS, runner.context_limit // 2)
    runner.forward(_ids(runner, context), 1)
    try:
        for count in rows:
            if cancelled() or (measured and time.perf_counter() > deadline):
                break
            if context + count > runner.context_limit:
                continue
            times = [_pass_ms(runner, context, count) for _ in range(_UNTIMED + repeats)]
            measured[count] = statistics.median(times[_UNTIMED:])
    finally:
        runner.crop(0)
    return measured


@torch.inference_mode()
def _pass_ms(runner: Runner, context: int, count: int) -> float:
    started = time.perf_counter()
    logits = runner.forward(_ids(runner, count), count)
    # What a greedy round does with them; reading the choices waits for the device.
    torch.softmax(logits, dim=-1)
    logits.argmax(dim=-1).tolist()
    time_ms = 1000.0 * (time.perf_counter() - started)
    runner.crop(context)
    return time_ms


def _ids(runner: Runner, count: int) -> list[int]:
    return [(7 * index + 1) % runner.width for index in range(count)]

"""Questions 2 and 3: what verifying M rows costs at 7B shapes, and a draft step at 0.5B shapes."""

import math
import time

import torch

from benchmarks.gpu.models import BF16, INT8, NF4, build, free, quantize, weights_read_bytes
from benchmarks.gpu.replies import eager, static
from benchmarks.gpu.report import Part
from benchmarks.gpu.setting import Setting
from core.models.measure import VERIFY_ROWS, measure_verify_ms
from core.models.runner import Runner
from core.models.static.obstacle import capture_obstacle
from core.requests import Precision

_COPIES = 10


def run_verify(setting: Setting, part: Part) -> None:
    """Measure V(1..17) in nf4, int8 and bfloat16, eager and on the static runner."""
    bandwidth = _bytes_per_second(setting)
    part.row("Memory", {"GB/s": bandwidth / 1e9})
    for precision in (NF4, INT8, BF16):
        if not setting.budget.has(40 if setting.on_cuda else 0):
            part.leave_out(f"{precision}: no time was left")
            continue
        with part.attempt(str(precision)):
            _verify(setting, part, precision, bandwidth)
        free()


def run_draft(setting: Setting, part: Part) -> None:
    """Measure a draft step, eager and on the static runner, and what measuring at a load takes."""
    model = build(setting.draft, setting.device, torch.bfloat16)
    floor_ms = 1000.0 * weights_read_bytes(model) / _bytes_per_second(setting)
    for name, runner in (("eager", eager(model)), ("static", static(model))):
        times = _times(runner, (1, 2), setting)
        part.row(
            f"Draft step, {setting.draft.name}, ms",
            {"runner": name, "1 row": times.get(1), "2 rows": times.get(2), "floor": floor_ms},
        )
    started = time.perf_counter()
    measured = measure_verify_ms(static(model))
    part.row(
        "Measuring after a load",
        {"sizes": len(measured), "seconds": time.perf_counter() - started},
    )


def _verify(setting: Setting, part: Part, precision: Precision, bandwidth: float) -> None:
    model = build(setting.target, setting.device, torch.bfloat16)
    if precision is not BF16:
        quantize(model, precision)
    captured = not capture_obstacle(model)
    if not captured:
        part.leave_out(f"{precision} captured: it has shapes that depend on the data")
    floor_ms = 1000.0 * weights_read_bytes(model) / bandwidth
    slow = _times(eager(model), VERIFY_ROWS, setting)
    fast = _times(static(model), VERIFY_ROWS, setting)
    kind = "captured" if captured and setting.on_cuda else "static"
    for rows in sorted(fast):
        part.row(
            f"V(M), {setting.target.name}, {precision}, ms; the weights' floor is {floor_ms:.3g}",
            {
                "rows": rows,
                "eager": slow[rows],
                kind: fast[rows],
                "of 1 row": fast[rows] / fast[1],
                "over floor": fast[rows] / floor_ms,
            },
        )


def _times(runner: Runner, rows: tuple[int, ...], setting: Setting) -> dict[int, float]:
    return measure_verify_ms(runner, rows, repeats=setting.repeats, budget_ms=math.inf)


def _bytes_per_second(setting: Setting) -> float:
    """Return what a copy reads and writes in a second, at the best of several goes."""
    source = torch.ones(setting.bandwidth_bytes // 4, device=setting.device)
    goal = torch.empty_like(source)
    best = math.inf
    for _ in range(_COPIES):
        _wait(setting)
        started = time.perf_counter()
        goal.copy_(source)
        _wait(setting)
        best = min(best, time.perf_counter() - started)
    return 2.0 * source.nbytes / best


def _wait(setting: Setting) -> None:
    if setting.on_cuda:
        torch.cuda.synchronize()

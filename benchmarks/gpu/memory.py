"""Question 5: is the estimate a bound for what a pair takes, and does all of it come back?"""

import weakref
from pathlib import Path

import torch

from benchmarks.gpu.models import Shape, build, free
from benchmarks.gpu.report import Part
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.tokenizer import SpelledIds
from core.cancel import CancelToken
from core.engine import Engine
from core.events import Failed
from core.models.memory import DEFAULT_CONTEXT, judge_fit
from core.models.source import ModelSource, SourceKind
from core.requests import (
    Device,
    GenerateRequest,
    Precision,
    SpeculationParams,
)

_LEFT_BEHIND_BYTES = 64_000_000
"""What may stay after an unload: workspaces of libraries, taken once for a process."""


def run(setting: Setting, part: Part) -> None:
    """Compare peak and estimate for the large pair, then load and unload the small one again."""
    if setting.budget.has(25 if setting.on_cuda else 0):
        _peak(setting, part)
    else:
        part.leave_out("peak memory: no time was left")
    free()
    base: int | None = None
    for number in range(setting.loads):
        if not setting.budget.has(8 if setting.on_cuda else 0):
            part.leave_out(f"unloading: no time was left after {number} of {setting.loads}")
            return
        alive = _load_and_unload(setting, setting.draft, setting.draft)
        taken = _allocated(setting)
        # The first time takes what a process keeps, such as workspaces of cuBLAS.
        base = taken if base is None else base
        part.row("After unloading", {"time": number + 1, "MB": taken / 1e6, "reserved": _mb()})
        gone = all(reference() is None for reference in alive)
        part.check(f"unload {number + 1}: nothing keeps the models alive", gone)
        part.check(
            f"unload {number + 1}: memory is back", taken <= base + _LEFT_BEHIND_BYTES, f"{taken} B"
        )


def _peak(setting: Setting, part: Part) -> None:
    fit = judge_fit(
        _source(setting.target),
        _source(setting.draft),
        precision=Precision.BFLOAT16,
        device=Device.CUDA,
        context_tokens=None,
        free_bytes=None,
    )
    if setting.on_cuda:
        torch.cuda.reset_peak_memory_stats()
    before = _used(setting)
    _load_and_unload(setting, setting.target, setting.draft, long=True)
    peak = _peak_bytes(setting)
    part.row(
        f"Memory, {setting.target.name} with {setting.draft.name}, bfloat16, GB",
        {"estimate": fit.needed_bytes / 1e9, "peak": peak / 1e9, "before": before / 1e9},
    )
    if setting.on_cuda:
        part.check(
            "the estimate is a bound",
            peak <= fit.needed_bytes,
            f"peak {peak / 1e9:.2f} GB, estimate {fit.needed_bytes / 1e9:.2f} GB",
        )


def _load_and_unload(
    setting: Setting, target: Shape, draft: Shape, *, long: bool = False
) -> list["weakref.ref[object]"]:
    """Run a pair through the engine; return references that must be dead."""
    models = [
        build(shape, setting.device, torch.bfloat16, seed)
        for seed, shape in ((0, target), (1, draft))
    ]
    alive: list[weakref.ref[object]] = [weakref.ref(model) for model in models]
    engine = Engine.from_parts(
        target=models[0], tokenizer=SpelledIds(target.vocab), draft=models[1]
    )
    models.clear()
    room = min(DEFAULT_CONTEXT, target.context) - 1
    new_tokens = min(setting.reply_tokens, room // 2)
    count = room - new_tokens if long else room // 8
    request = GenerateRequest(
        prompt_ids=tuple(1 + i % (min(target.vocab, draft.vocab) - 1) for i in range(count)),
        speculation=SpeculationParams(gamma=4),
        max_new_tokens=new_tokens,
    )
    for event in engine.generate(request, CancelToken()):
        if isinstance(event, Failed):
            raise RuntimeError(event.message)
    engine.unload()
    return alive


def _source(shape: Shape) -> ModelSource:
    with torch.device("meta"):
        model = build(shape, torch.device("meta"), torch.bfloat16)
    return ModelSource(
        kind=SourceKind.SAFETENSORS,
        path=Path(shape.name),
        name=shape.name,
        elements=sum(parameter.numel() for parameter in model.parameters()),
        numbers=shape.numbers(),
    )


def _allocated(setting: Setting) -> int:
    return int(torch.cuda.memory_allocated()) if setting.on_cuda else 0


def _mb() -> float:
    return torch.cuda.memory_reserved() / 1e6 if torch.cuda.is_available() else 0.0


def _used(setting: Setting) -> int:
    """Return what is in use on the whole card, which the driver's own share belongs to."""
    if not setting.on_cuda:
        return 0
    free_bytes, total_bytes = torch.cuda.mem_get_info()
    return int(total_bytes - free_bytes)


def _peak_bytes(setting: Setting) -> int:
    """Return the most that torch reserved, and what the process has on the card besides."""
    if not setting.on_cuda:
        return 0
    besides = max(_used(setting) - int(torch.cuda.memory_reserved()), 0)
    return int(torch.cuda.max_memory_reserved()) + besides

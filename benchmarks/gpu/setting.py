"""What the GPU check is run with: the card, or tiny shapes on a CPU to test the script itself."""

from dataclasses import dataclass

import torch

from benchmarks.gpu.models import Shape
from benchmarks.gpu.report import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Device, shapes and sizes of a run.

    ``check`` is what correctness is looked at on, ``target`` has 7B-like and ``draft`` 0.5B-like
    dimensions; ``pair_layers`` of the target make the draft of a synthetic pair.
    """

    device: torch.device
    budget: Budget
    check: Shape
    target: Shape
    draft: Shape
    pair_layers: int
    agreements: tuple[float, ...]
    gammas: tuple[int, ...]
    check_gammas: tuple[int, ...]
    reply_tokens: int
    check_tokens: int
    repeats: int
    loads: int
    turns: int
    reserve_s: float
    """What question 4 leaves to those after it."""
    bandwidth_bytes: int

    @property
    def on_cuda(self) -> bool:
        """Whether the numbers mean anything."""
        return self.device.type == "cuda"


def full(device: torch.device, budget: Budget) -> Setting:
    """Return the setting for a card."""
    return Setting(
        device=device,
        budget=budget,
        check=Shape(
            name="check",
            hidden=1024,
            intermediate=2816,
            layers=6,
            heads=16,
            kv_heads=4,
            vocab=32000,
            tied=False,
        ),
        target=Shape(
            name="7B-like",
            hidden=3584,
            intermediate=18944,
            layers=28,
            heads=28,
            kv_heads=4,
            vocab=152064,
            tied=False,
        ),
        draft=Shape(
            name="0.5B-like",
            hidden=896,
            intermediate=4864,
            layers=24,
            heads=14,
            kv_heads=2,
            vocab=151936,
            tied=True,
        ),
        pair_layers=2,
        agreements=(0.7, 0.9),
        gammas=(2, 4, 7),
        check_gammas=tuple(range(9)),
        reply_tokens=96,
        check_tokens=48,
        repeats=7,
        loads=10,
        turns=3,
        reserve_s=60.0,
        bandwidth_bytes=4 << 30,
    )


def tiny(device: torch.device, budget: Budget) -> Setting:
    """Return a setting that runs every line in seconds and measures nothing of interest."""
    sizes = {"hidden": 64, "intermediate": 128, "heads": 4, "kv_heads": 2, "vocab": 256}
    return Setting(
        device=device,
        budget=budget,
        check=Shape(name="check", layers=2, tied=False, context=256, **sizes),
        target=Shape(name="target", layers=3, tied=False, context=256, **sizes),
        draft=Shape(name="draft", layers=2, tied=True, context=256, **sizes),
        pair_layers=1,
        agreements=(0.7,),
        gammas=(2,),
        check_gammas=(0, 4),
        reply_tokens=8,
        check_tokens=8,
        repeats=1,
        loads=1,
        turns=1,
        reserve_s=0.0,
        bandwidth_bytes=1 << 20,
    )

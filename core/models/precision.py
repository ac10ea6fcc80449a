"""Which number format the weights get, and why another one is not to be had."""

import importlib.metadata
import re
from functools import cache
from typing import Any, NamedTuple

from core.errors import UserError
from core.requests import Device, Precision

BITSANDBYTES_MIN = (0, 50)
"""Before this release a matmul of two rows or more first unpacked the whole weight."""

_ON_CPU = "needs an NVIDIA GPU; on this CPU choose auto, int8, bfloat16 or float32"
_INSTALL = "needs the package bitsandbytes: pip install 'bitsandbytes>=0.50'"
_WEIGHT_BYTES = {
    Precision.FLOAT32: 4.0,
    Precision.BFLOAT16: 2.0,
    # The embedding table and the head stay in bfloat16, hence more than 1 and 0.5.
    Precision.INT8: 1.2,
    Precision.NF4: 0.75,
}


class PrecisionOption(NamedTuple):
    """A precision, whether it can be chosen, and if not the reason as the end of a sentence."""

    precision: Precision
    available: bool
    reason: str = ""


def choose_device(device: str) -> Device:
    """Turn "auto" into the device that is there.

    Raises UserError when CUDA is asked for and cannot be used. Imports torch.
    """
    if device == Device.CPU:
        return Device.CPU
    import torch

    if torch.cuda.is_available():
        return Device.CUDA
    if device == Device.CUDA:
        raise UserError(
            "No NVIDIA GPU can be used by the installed PyTorch.",
            "Choose the device cpu, or see what `paceline doctor` says about the GPU.",
        )
    return Device.CPU


def precision_options(device: str = Device.AUTO) -> list[PrecisionOption]:
    """Return every precision with whether it can be chosen on a device, in the order offered.

    Imports torch unless the device is "cpu", so call it off the window's thread.
    Raises UserError like :func:`choose_device`.
    """
    if choose_device(device) is Device.CPU:
        reasons = {Precision.NF4: _ON_CPU}
    else:
        reasons = dict.fromkeys((Precision.INT8, Precision.NF4), _quantization_obstacle())
    return [
        PrecisionOption(precision, not (reason := reasons.get(precision, "")), reason)
        for precision in Precision
    ]


def choose_precision(
    precision: str, device: Device, elements: int, room_bytes: int | None
) -> Precision:
    """Turn "auto" into the precision for a target with that many weights.

    On a CPU that is int8, whose kernel judges eight rows in the time of one; the loader falls back
    to :func:`dense_cpu_precision` for models that it is not made for. On CUDA it is bfloat16 where
    the weights fit into ``room_bytes`` (None: unknown), else nf4. Raises UserError for one that is
    not to be had.
    """
    if precision == Precision.AUTO:
        if device is Device.CPU:
            return Precision.INT8
        needs_bytes = weights_bytes(elements, Precision.BFLOAT16)
        if room_bytes is None or needs_bytes <= room_bytes or _quantization_obstacle():
            return Precision.BFLOAT16
        return Precision.NF4
    for option in precision_options(device):
        if option.precision == precision and not option.available:
            raise UserError(f"The precision {precision} {option.reason}.")
    return Precision(precision)


def dense_cpu_precision() -> Precision:
    """Return the precision without quantization that suits this CPU.

    bfloat16 where it has instructions for it, else float32: without them several rows in bfloat16
    take longer than in float32.
    """
    return Precision.BFLOAT16 if cpu_has_bfloat16() else Precision.FLOAT32


def draft_precision(target: Precision, device: Device) -> Precision:
    """Return the precision of the draft: on a GPU small models gain nothing from quantization."""
    if device is Device.CPU or target not in (Precision.INT8, Precision.NF4):
        return target
    return Precision.BFLOAT16


def weights_bytes(elements: int, precision: Precision) -> int:
    """Return about how many bytes that many weights take."""
    return int(elements * _WEIGHT_BYTES[precision])


@cache
def cpu_has_bfloat16() -> bool:
    """Return whether this CPU multiplies bfloat16 in hardware (AVX512-BF16, AMX, or on ARM).

    By capability and not by timing, so that the answer is the same at every start and a model is
    not prepared twice. Imports torch.
    """
    import torch

    capabilities: Any = getattr(torch.cpu, "get_capabilities", dict)()
    if any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "arm_bf16", "bf16")):
        return True
    return any(
        getattr(torch.cpu, name, bool)()
        for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    )


def _quantization_obstacle() -> str:
    try:
        version = importlib.metadata.version("bitsandbytes")
    except importlib.metadata.PackageNotFoundError:
        return _INSTALL
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    return "" if numbers >= BITSANDBYTES_MIN else f"{_INSTALL} (here is {version})"

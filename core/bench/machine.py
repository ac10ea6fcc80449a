"""Where a benchmark ran, and how much memory its process takes."""

import os
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import psutil

from paceline import __version__

_PACKAGES = ("torch", "transformers", "bitsandbytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The computer and the versions that numbers depend on.

    ``load_average`` is the number of busy threads in the minute before, on a quiet machine near 0.
    """

    system: str
    processor: str
    cores: int
    threads: int
    torch_threads: int
    memory_bytes: int
    gpu: str
    python: str
    versions: tuple[tuple[str, str], ...]
    load_average: float


def describe_machine() -> Machine:
    """Return where this process runs; imports torch."""
    import torch

    threads = psutil.cpu_count() or 1
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=_processor(),
        cores=psutil.cpu_count(logical=False) or threads,
        threads=threads,
        torch_threads=torch.get_num_threads(),
        memory_bytes=psutil.virtual_memory().total,
        gpu=torch.cuda.get_device_name() if torch.cuda.is_available() else "",
        python=platform.python_version(),
        versions=(("paceline", __version__), *_versions()),
        load_average=round(psutil.getloadavg()[0], 2),
    )


def resident_bytes() -> int:
    """Return how much memory this process holds now, mapped files included."""
    return int(psutil.Process().memory_info().rss)


def peak_resident_bytes() -> int:
    """Return the most memory that this process ever held, loading included."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _versions() -> list[tuple[str, str]]:
    found = []
    for package in _PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    return value.strip()
    return platform.processor() or platform.machine()

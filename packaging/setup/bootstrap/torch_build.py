"""Whether the installed torch can use the machine's NVIDIA card, and the command that mends it."""

import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

_VERSION = re.compile(r"^__version__ = '(?P<version>[^']+)'", re.MULTILINE)
_WHEEL_WITH_CUDA = re.compile(r"^torch-[\d.]+(?:\+cu\d+)?-\S*linux_\S*x86_64\.whl$")
_CUDA = re.compile(r"^cuda: .* = '(?P<cuda>[^']+)'", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchBuild:
    """What torch says of itself; ``cuda`` is None for a build without CUDA."""

    version: str
    cuda: str | None


def read_torch_build(site_packages: Path) -> TorchBuild | None:
    """Read the build from its version file, which is quicker by seconds than importing torch."""
    try:
        text = (site_packages / "torch" / "version.py").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    version, cuda = _VERSION.search(text), _CUDA.search(text)
    if version is None:
        return None
    return TorchBuild(version=version["version"], cuda=cuda["cuda"] if cuda else None)


def brings_cuda(file: str) -> bool:
    """Return whether this file of torch brings CUDA along: on Linux, the plain release does."""
    return _WHEEL_WITH_CUDA.match(file) is not None


def has_nvidia_card(driver_folder: Path = Path("/proc/driver/nvidia")) -> bool:
    """Return whether a driver of NVIDIA's is present."""
    return driver_folder.exists() or shutil.which("nvidia-smi") is not None


def torch_advice(
    *, has_card: bool, build: TorchBuild | None, platform: str, python: str, constraints: str
) -> str | None:
    """Return what to do about a torch that cannot use the card, or None when all is well.

    ``platform`` is ``sys.platform``; ``python`` and ``constraints`` are paths for the command.
    """
    if not has_card or build is None or build.cuda is not None:
        return None
    if platform != "linux":
        return (
            f"This machine has an NVIDIA card, but torch {build.version} is built without CUDA. "
            "Choose pip and CUDA on pytorch.org/get-started and run the command it shows with "
            f"{python}."
        )
    # On Linux the plain release carries CUDA. Three equals signs compare the version as text, so
    # that neither the installed 2.x+cpu nor a local +cpu wheel passes for it.
    command = shlex.join(
        [
            python,
            "-m",
            "pip",
            "install",
            "-c",
            constraints,
            f"torch==={build.version.split('+')[0]}",
        ]
    )
    return (
        f"This machine has an NVIDIA card, but torch {build.version} is built without CUDA. "
        f"To use the card, run: {command}"
    )

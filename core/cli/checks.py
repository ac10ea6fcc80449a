"""The checks of ``paceline doctor``, each one line of its report."""

import importlib.metadata
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

import psutil

from core.cli.options import open_library
from core.cli.parser import DEFAULT_PAIR
from core.errors import UserError
from core.hub.files import explain_write_error, format_bytes
from core.hub.heads import local_heads
from core.hub.library import data_root
from paceline import __version__
from paceline.front import display_answers

OLDEST_PYTHON = (3, 11)
LOW_MEMORY_BYTES = 2_000_000_000
LOW_DISK_BYTES = 1_000_000_000
QT_TIMEOUT_S = 20
_QT_PROBE = "from PySide6.QtWidgets import QApplication; QApplication([])"
_REINSTALL = "Run `make run` in a checkout, or `pip install --force-reinstall paceline`."


class Verdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    """Something does without."""
    FAIL = "fail"
    """Something will not work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the report; ``action`` says what to do when the verdict is not ok."""

    name: str
    verdict: Verdict
    detail: str
    action: str = ""


def _python(name: str) -> Check:
    detail = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST_PYTHON:
        action = "Install Python 3.11 or newer."
        return Check(name=name, verdict=Verdict.FAIL, detail=detail, action=action)
    return Check(name=name, verdict=Verdict.OK, detail=detail)


def _paceline(name: str) -> Check:
    return Check(name=name, verdict=Verdict.OK, detail=__version__)


def _system(name: str) -> Check:
    detail = f"{platform.platform()}, {platform.machine()}"
    return Check(name=name, verdict=Verdict.OK, detail=detail)


def _processor(name: str) -> Check:
    cores, threads = psutil.cpu_count(logical=False), psutil.cpu_count()
    detail = f"{cores or threads} cores, {threads} threads"
    return Check(name=name, verdict=Verdict.OK, detail=detail)


def _memory(name: str) -> Check:
    memory = psutil.virtual_memory()
    detail = f"{format_bytes(memory.available)} of {format_bytes(memory.total)} free"
    if memory.available < LOW_MEMORY_BYTES:
        action = "Close other programs: the smallest model needs about 1 GB."
        return Check(name=name, verdict=Verdict.WARN, detail=detail, action=action)
    return Check(name=name, verdict=Verdict.OK, detail=detail)


def _torch(name: str) -> Check:
    try:
        import torch
    except (ImportError, OSError) as error:
        detail = f"cannot be imported: {error}"
        return Check(name=name, verdict=Verdict.FAIL, detail=detail, action=_REINSTALL)
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    kernels = torch.backends.cpu.get_cpu_capability()
    detail = f"{torch.__version__}, {build} build, {kernels} kernels"
    return Check(name=name, verdict=Verdict.OK, detail=detail)


def _gpu(name: str) -> Check:
    import torch

    return judge_gpu(
        name,
        has_card=_has_nvidia_card(),
        torch_version=torch.__version__,
        torch_cuda=torch.version.cuda,
        cards=[torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
    )


def _has_nvidia_card() -> bool:
    return Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None


def judge_gpu(
    name: str, *, has_card: bool, torch_version: str, torch_cuda: str | None, cards: list[str]
) -> Check:
    """Return whether the graphics card is used, and the command that mends a CPU build of torch.

    ``has_card`` is whether an NVIDIA driver is here; ``cards`` are those that torch sees.
    """
    if cards:
        return Check(name=name, verdict=Verdict.OK, detail=", ".join(cards))
    if not has_card:
        detail = "no NVIDIA card; models run on the processor"
        return Check(name=name, verdict=Verdict.OK, detail=detail)
    if torch_cuda is not None:
        return Check(
            name=name,
            verdict=Verdict.WARN,
            detail="there is an NVIDIA driver, but torch sees no card",
            action="Run `nvidia-smi`: its error says what the driver lacks.",
        )
    # On Linux the plain release carries CUDA. Three equals signs compare the version as text, so
    # that neither the installed +cpu build nor a local +cpu wheel passes for it.
    release = torch_version.split("+")[0]
    command = shlex.join([sys.executable, "-m", "pip", "install", f"torch==={release}"])
    action = f"To use the card, run: {command}"
    if sys.platform != "linux":
        action = (
            "Choose pip and CUDA on pytorch.org/get-started and run the command it shows with "
            f"{sys.executable}."
        )
    return Check(
        name=name,
        verdict=Verdict.WARN,
        detail=f"there is an NVIDIA card, but torch {torch_version} is built without CUDA",
        action=action,
    )


def _transformers(name: str) -> Check:
    version = _version_of("transformers")
    if version is None:
        detail = "is not installed"
        return Check(name=name, verdict=Verdict.FAIL, detail=detail, action=_REINSTALL)
    return Check(name=name, verdict=Verdict.OK, detail=version)


def _bitsandbytes(name: str) -> Check:
    version = _version_of("bitsandbytes")
    if version is None and not _has_nvidia_card():
        detail = "is not installed; only a graphics card would use it"
        return Check(name=name, verdict=Verdict.OK, detail=detail)
    if version is None:
        return Check(
            name=name,
            verdict=Verdict.WARN,
            detail="is not installed; nf4 and int8 on a graphics card need it",
            action=f"Run: {shlex.join([sys.executable, '-m', 'pip', 'install', 'bitsandbytes'])}",
        )
    return Check(name=name, verdict=Verdict.OK, detail=version)


def _version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _window(name: str) -> Check:
    if getattr(sys, "frozen", False):  # the executable is this program, not an interpreter
        return Check(name=name, verdict=Verdict.OK, detail="Qt is part of this program")
    display = sys.platform in ("win32", "darwin") or display_answers(os.environ)
    environment = dict(os.environ)
    if not display:
        environment["QT_QPA_PLATFORM"] = "offscreen"
    # Qt ends the process when it finds no platform plugin, so another process tries.
    probe = subprocess.run(
        [sys.executable, "-c", _QT_PROBE],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        timeout=QT_TIMEOUT_S,
    )
    if probe.returncode != 0:
        lines = [line for line in probe.stderr.splitlines() if line.strip()]
        return Check(
            name=name,
            verdict=Verdict.FAIL,
            detail=f"Qt does not start: {lines[-1] if lines else f'code {probe.returncode}'}",
            action="`make run` installs what Qt lacks; `paceline chat` works without it.",
        )
    if not display:
        return Check(
            name=name,
            verdict=Verdict.WARN,
            detail=f"PySide6 {_version_of('PySide6-Essentials')} works, but there is no display",
            action="Use `paceline chat`, or open the window where there is a screen.",
        )
    detail = f"PySide6 {_version_of('PySide6-Essentials')}, a display answers"
    return Check(name=name, verdict=Verdict.OK, detail=detail)


def _data_folder(name: str) -> Check:
    folder = data_root()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free_bytes = shutil.disk_usage(existing).free
    detail = f"{folder}, {format_bytes(free_bytes)} free"
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        trouble = explain_write_error(error, folder)
        return Check(name=name, verdict=Verdict.FAIL, detail=trouble.message, action=trouble.action)
    if free_bytes < LOW_DISK_BYTES:
        action = "Free some space, or set PACELINE_HOME to a folder on a larger disk."
        return Check(name=name, verdict=Verdict.WARN, detail=detail, action=action)
    return Check(name=name, verdict=Verdict.OK, detail=detail)


def _models(name: str) -> Check:
    try:
        library = open_library()
    except UserError as error:
        return Check(name=name, verdict=Verdict.FAIL, detail=error.message, action=error.action)
    ready = [model_id for model_id in library.catalog.models if library.status(model_id).is_whole]
    ready += [local.name for local in library.local_models()]
    if not ready:
        return Check(
            name=name,
            verdict=Verdict.FAIL,
            detail="none is ready",
            action=f"Run: paceline models get {DEFAULT_PAIR}",
        )
    return Check(name=name, verdict=Verdict.OK, detail=f"ready: {', '.join(ready)}")


def _heads(name: str) -> Check:
    heads = local_heads()
    whole = [head for head in heads if not head.damage]
    shipped = sum(head.shipped for head in whole)
    detail = f"{shipped} shipped, {len(whole) - shipped} of your own"
    if damaged := [head for head in heads if head.damage]:
        detail += f"; damaged: {', '.join(f'{head.name} ({head.damage})' for head in damaged)}"
        action = "Train what is damaged again, or delete its folder."
        return Check(name=name, verdict=Verdict.WARN, detail=detail, action=action)
    return Check(name=name, verdict=Verdict.OK, detail=detail)


CHECKS: Mapping[str, Callable[[str], Check]] = MappingProxyType(
    {
        "paceline": _paceline,
        "python": _python,
        "system": _system,
        "processor": _processor,
        "memory": _memory,
        "torch": _torch,
        "gpu": _gpu,
        "transformers": _transformers,
        "bitsandbytes": _bitsandbytes,
        "window": _window,
        "data folder": _data_folder,
        "models": _models,
        "heads": _heads,
    }
)
"""Every check by the name it reports under, in the order of the report."""

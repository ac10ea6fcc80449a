"""Prepared copies: a GGUF file unpacked once into safetensors that later loads map in a second.

A copy is a folder named after the fingerprint of its source, built beside its place and renamed
into it, so that it is whole or not there. A changed source has another fingerprint and therefore
gets a new copy; copies of what the source was before are removed.
"""

import hashlib
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from core.hub.files import check_disk, flush_folder, read_json, write_json
from core.models.precision import weights_bytes
from core.models.source import ModelSource
from core.requests import Precision

logger = logging.getLogger(__name__)

FORMAT = 1
"""Raised whenever what is written changes, so that older copies are made anew."""

_CARD = "paceline.json"
_BUILDING = ".building-"
_SAMPLE_BYTES = 1 << 20


def fingerprint(path: Path) -> str:
    """Return a hash over size, time and three samples of a file, in milliseconds.

    Raises OSError.
    """
    stat = path.stat()
    digest = hashlib.sha256(f"{stat.st_size}:{stat.st_mtime_ns}".encode())
    with path.open("rb") as file:
        for start in (0, stat.st_size // 2, max(0, stat.st_size - _SAMPLE_BYTES)):
            file.seek(start)
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


class PreparedCopy:
    """The prepared copy of one GGUF file in one number format, whether or not it exists yet."""

    def __init__(self, prepared_dir: Path, source: ModelSource, precision: Precision) -> None:
        # Quantization starts from bfloat16, so there are two formats to keep and not four.
        stored = Precision.FLOAT32 if precision is Precision.FLOAT32 else Precision.BFLOAT16
        self._dir = prepared_dir
        self._source = source
        self._fingerprint = fingerprint(source.path)
        self.precision = stored
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", source.name)[:60]
        key = hashlib.sha256(f"{FORMAT}:{self._fingerprint}".encode()).hexdigest()[:16]
        self.folder = prepared_dir / f"{name}-{stored}-{key}"

    @property
    def is_whole(self) -> bool:
        """Whether the copy is there, with every file at the size it was written with."""
        card = read_json(self.folder / _CARD)
        files = card.get("files") if card is not None else None
        if card is None or not isinstance(files, dict) or not files:
            return False
        try:
            return card.get("fingerprint") == self._fingerprint and all(
                (self.folder / name).stat().st_size == size for name, size in files.items()
            )
        except OSError:
            return False

    def check_disk(self) -> None:
        """Raise UserError when the disk has no room for the copy."""
        need_bytes = weights_bytes(self._source.elements, self.precision)
        check_disk(self._dir, need_bytes, f"keep a prepared copy of {self._source.name}")

    def write(self, save: Callable[[Path], bool | None]) -> bool:
        """Make the copy: ``save`` fills a folder, which then takes its place at once.

        Whatever ``save`` raises leaves nothing behind, nor does False, which is handed on: it says
        that the copy cannot be made in this way. Raises OSError.
        """
        self._dir.mkdir(parents=True, exist_ok=True)
        self._remove_leftovers()
        building = Path(tempfile.mkdtemp(prefix=f"{_BUILDING}{os.getpid()}-", dir=self._dir))
        try:
            if save(building) is False:
                return False
            write_json(building / _CARD, self._card(flush_folder(building)))
            if self.folder.exists():  # damaged, else it would have been used
                shutil.rmtree(self.folder)
            os.replace(building, self.folder)
        except OSError:
            if not self.is_whole:  # another process may have been faster
                raise
        finally:
            shutil.rmtree(building, ignore_errors=True)
        remove_copies_of(self._source.path, self._dir, keep_fingerprint=self._fingerprint)
        return True

    def _card(self, files: dict[str, int]) -> dict[str, Any]:
        stat = self._source.path.stat()
        return {
            "source": str(self._source.path.absolute()),
            "source_size_bytes": stat.st_size,
            "source_mtime_ns": stat.st_mtime_ns,
            "fingerprint": self._fingerprint,
            "precision": str(self.precision),
            "files": files,
        }

    def _remove_leftovers(self) -> None:
        """Remove what killed builds left, but not the build of a process that still runs."""
        for path in self._dir.glob(f"{_BUILDING}*"):
            owner = path.name.removeprefix(_BUILDING).split("-")[0]
            if not owner.isdigit() or not psutil.pid_exists(int(owner)):
                shutil.rmtree(path, ignore_errors=True)


def remove_copies_of(source: Path, prepared_dir: Path, keep_fingerprint: str = "") -> None:
    """Delete the copies made from the file at a path, but not those of the fingerprint to keep."""
    if not prepared_dir.is_dir():
        return
    for path in prepared_dir.iterdir():
        card = read_json(path / _CARD)
        if card is None or card.get("source") != str(source.absolute()):
            continue
        if card.get("fingerprint") != keep_fingerprint:
            logger.info("removing a prepared copy")
            shutil.rmtree(path, ignore_errors=True)

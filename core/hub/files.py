"""Small file helpers that the library, the downloader and the prepared copies share."""

import errno
import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.cancel import CancelToken
from core.errors import Cancelled, UserError

CHUNK_BYTES = 4 << 20
DISK_MARGIN_BYTES = 64 << 20
"""What is left free on the disk for everything else."""
_FULL_BYTES = 1 << 20


def format_bytes(size_bytes: float) -> str:
    """Return a size in decimal units as people read it: ``98 MB``, ``1.1 GB``."""
    if size_bytes < 1e6:
        return f"{size_bytes / 1e3:.0f} kB"
    if size_bytes < 1e9:
        return f"{size_bytes / 1e6:.0f} MB"
    return f"{size_bytes / 1e9:.1f} GB"


def check_disk(folder: Path, need_bytes: int, purpose: str) -> None:
    """Raise UserError unless ``folder``'s disk has room for ``need_bytes`` and a margin.

    ``purpose`` completes the sentence "... are needed to <purpose>".
    """
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free_bytes = shutil.disk_usage(existing).free
    if free_bytes < need_bytes + DISK_MARGIN_BYTES:
        raise UserError(
            f"The disk of {folder} has {format_bytes(free_bytes)} free, but "
            f"{format_bytes(need_bytes + DISK_MARGIN_BYTES)} are needed to {purpose}.",
            "Free some space, or set PACELINE_HOME to a folder on a larger disk.",
        )


def explain_write_error(error: OSError, folder: Path) -> UserError:
    """Return the sentence for a folder that could not be written."""
    if error.errno == errno.ENOSPC:
        return UserError(
            f"The disk of {folder} is full.",
            "Free some space, or set PACELINE_HOME to a folder on a larger disk.",
        )
    return UserError(
        f"The folder {folder} cannot be written ({error.strerror or type(error).__name__}).",
        "Make it writable, or set PACELINE_HOME to another folder.",
    )


def unwrapped_write_error(folder: Path) -> OSError:
    """Return what the system said where a writer of safetensors failed, which wraps it.

    A full disk shows by its free space.
    """
    full = shutil.disk_usage(folder).free < _FULL_BYTES
    number = errno.ENOSPC if full else errno.EIO
    return OSError(number, os.strerror(number))


def flush_folder(folder: Path) -> dict[str, int]:
    """See that every file of a folder, however deep, is on the disk; return their sizes by name.

    Names are relative to the folder, with slashes. Raises OSError.
    """
    sizes: dict[str, int] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
                sizes[path.relative_to(folder).as_posix()] = os.fstat(file.fileno()).st_size
    return sizes


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write ``data`` to ``path`` so that a reader sees the old file or the new one, whole."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(json.dumps(data, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def parse_json(text: str | bytes) -> Any:
    """Return what ``text`` holds as JSON.

    Raises ValueError for what is none, and for what json cannot read or nobody can count with:
    values nested too deep, and numbers that no float holds.
    """
    try:
        return json.loads(text, parse_int=_whole, parse_float=_real)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in ``path``; None where it is missing, unreadable or not an object.

    What is no regular file counts as missing: reading a pipe would wait for ever.
    """
    try:
        data = parse_json(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _whole(digits: str) -> int:
    _real(digits)
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def sha256_of(
    path: Path, on_bytes: Callable[[int], None] | None = None, cancel: CancelToken | None = None
) -> str:
    """Return the SHA-256 of a file in hexadecimal; ``on_bytes`` hears how many were read.

    Raises Cancelled and OSError.
    """
    digest = hashlib.sha256()
    done_bytes = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            if cancel is not None and cancel.cancelled:
                raise Cancelled
            digest.update(chunk)
            done_bytes += len(chunk)
            if on_bytes is not None:
                on_bytes(done_bytes)
    return digest.hexdigest()

"""Writing small files whole, and setting damaged ones aside."""

import contextlib
import os
import tempfile
import time
from pathlib import Path

from core.errors import UserError


def write_atomic(path: Path, text: str) -> None:
    """Replace the file by ``text`` (UTF-8), or leave it as it was.

    The file is readable by its owner only. A symbolic link is followed, not replaced.
    Raises UserError when the folder cannot be written.
    """
    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise UserError(
            f"{path} could not be written: {error.strerror or error}.",
            "Make the folder writable, free some disk space, or choose another place.",
        ) from error


def set_aside(path: Path, *companions: str) -> Path:
    """Rename a damaged file to ``name.damaged-DATE.suffix`` beside it and return its new path.

    ``companions`` are endings of files that belong to it (``-wal``); they move along.
    Raises UserError when the folder cannot be written.
    """
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    moved = path.with_name(f"{path.stem}.damaged-{stamp}{path.suffix}")
    count = 1
    while moved.exists():
        count += 1
        moved = path.with_name(f"{path.stem}.damaged-{stamp}-{count}{path.suffix}")
    try:
        os.rename(path, moved)
        for ending in companions:
            with contextlib.suppress(FileNotFoundError):
                os.rename(f"{path}{ending}", f"{moved}{ending}")
    except OSError as error:
        raise UserError(
            f"{path} is damaged and could not be set aside: {error.strerror or error}.",
            "Make the folder writable, or rename the file yourself.",
        ) from error
    return moved

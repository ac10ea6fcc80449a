"""Writing a report."""

import os
from pathlib import Path

from core.errors import UserError


def replace_file(path: Path, content: str | bytes) -> None:
    """Write the file so that a reader sees the old one or the new one, whole.

    Raises UserError where it cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UserError(
            f"{path} could not be written: {error.strerror or type(error).__name__}.",
            "Name another file.",
        ) from None

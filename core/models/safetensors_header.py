"""The head of a safetensors file: names, shapes and sizes, without the weights.

Layout: github.com/huggingface/safetensors, "Format": eight bytes of length, JSON, data.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path

from core.errors import UserError
from core.hub.files import parse_json

_MAX_HEADER_BYTES = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetensorsHeader:
    """The shape of every tensor by name, and the size of the data in bytes."""

    shapes: dict[str, tuple[int, ...]]
    data_bytes: int

    @property
    def elements(self) -> int:
        """How many weights the file holds."""
        return sum(math.prod(shape) for shape in self.shapes.values())


def read_safetensors_header(path: Path) -> SafetensorsHeader:
    """Read the head of a safetensors file and see that the file is as long as it says.

    Raises UserError when it is damaged or cut short, OSError when it cannot be read.
    """
    size_bytes = path.stat().st_size
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(_MAX_HEADER_BYTES, size_bytes):
                raise ValueError("the header is longer than the file")
            entries = parse_json(file.read(length))
        entries.pop("__metadata__", None)
        shapes = {name: tuple(entry["shape"]) for name, entry in entries.items()}
        data_bytes = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise UserError(
            f"{path.name} is damaged or is not a safetensors file.", "Fetch the file again."
        ) from error
    if 8 + length + data_bytes > size_bytes:
        raise UserError(
            f"{path.name} is cut short: it holds {size_bytes:,} of {8 + length + data_bytes:,} "
            "bytes.",
            "Fetch the file again.",
        )
    return SafetensorsHeader(shapes=shapes, data_bytes=data_bytes)

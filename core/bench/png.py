"""Pictures without a picture library: rectangles and plain letters, written as PNG."""

import struct
import zlib
from typing import Final

Colour = tuple[int, int, int]

GLYPH_HEIGHT: Final = 8
"""Rows of a letter at scale 1: seven above the line and one below it."""
GLYPH_ADVANCE: Final = 6
"""Columns from one letter to the next at scale 1."""

_FIRST = 0x20
# Printable ASCII from the space on, a letter in five columns of one byte; bit 0 is the top row.
_COLUMNS = bytes.fromhex(
    """
    0000000000 00005f0000 0007000700 147f147f14 242a7f2a12 2313086462 3649562050 0008070300
    001c224100 0041221c00 2a1c7f1c2a 08083e0808 0080703000 0808080808 0000606000 2010080402
    3e5149453e 00427f4000 7249494946 2141494d33 1814127f10 2745454539 3c4a494931 4121110907
    3649494936 464949291e 0000240000 0040340000 0008142241 1414141414 0041221408 0201590906
    3e415d594e 7c1211127c 7f49494936 3e41414122 7f4141413e 7f49494941 7f09090901 3e41415173
    7f0808087f 00417f4100 2040413f01 7f08142241 7f40404040 7f021c027f 7f0408107f 3e4141413e
    7f09090906 3e4151215e 7f09192946 2649494932 01017f0101 3f4040403f 1f2040201f 3f4038403f
    6314081463 0304780403 6159494d43 007f414141 0204081020 004141417f 0402010204 4040404040
    0003070800 2054547840 7f28444438 3844444428 384444287f 3854545418 00087e0902 18a4a49c78
    7f08040478 00447d4000 2040403d00 7f10284400 00417f4000 7c04780478 7c08040478 3844444438
    fc18242418 18242418fc 7c08040408 4854545424 04043f4424 3c4040207c 1c2040201c 3c4030403c
    4428102844 4c9090907c 4464544c44 0008364100 0000770000 0041360800 0201020402
    """
)
_UNKNOWN = "?"


class Canvas:
    """A picture of ``width`` by ``height`` pixels, at first all of one colour."""

    def __init__(self, width: int, height: int, background: Colour) -> None:
        self.width = width
        self.height = height
        self._rows = [bytearray(bytes(background) * width) for _ in range(height)]

    def rectangle(self, x: int, y: int, width: int, height: int, colour: Colour) -> None:
        """Fill a rectangle; what lies outside the picture is left out."""
        left, right = max(x, 0), min(x + width, self.width)
        if right <= left:
            return
        stripe = bytes(colour) * (right - left)
        for row in self._rows[max(y, 0) : max(y + height, 0)]:
            row[3 * left : 3 * right] = stripe

    def text(self, x: int, y: int, text: str, colour: Colour, scale: int = 2) -> None:
        """Write a line with its top left corner at (x, y); what is not ASCII becomes ``?``."""
        for offset, character in enumerate(text):
            glyph = _glyph(character)
            for column, bits in enumerate(glyph):
                for row in range(GLYPH_HEIGHT):
                    if bits >> row & 1:
                        left = x + scale * (offset * GLYPH_ADVANCE + column)
                        self.rectangle(left, y + scale * row, scale, scale, colour)

    def to_png(self) -> bytes:
        """Return the picture as a PNG file: 8 bits a channel, no transparency."""
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        lines = b"".join(b"\0" + bytes(row) for row in self._rows)  # each begins with filter 0
        return (
            b"\x89PNG\r\n\x1a\n"
            + _chunk(b"IHDR", header)
            + _chunk(b"IDAT", zlib.compress(lines, 9))
            + _chunk(b"IEND", b"")
        )


def text_width(text: str, scale: int = 2) -> int:
    """Return how many pixels a line of text is wide."""
    return scale * max(len(text) * GLYPH_ADVANCE - 1, 0)


def _glyph(character: str) -> bytes:
    index = ord(character) - _FIRST
    if not 0 <= index < len(_COLUMNS) // 5:
        index = ord(_UNKNOWN) - _FIRST
    return _COLUMNS[5 * index : 5 * index + 5]


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

"""The colours that lie over a paragraph: its tokens' origins, its code and its links."""

from PySide6.QtGui import QTextLayout

from app.rendering.look import Look, Paint
from app.rendering.model import Para, ParaKind, Run, Style
from app.rendering.tokens import TokenMap

_BARE = Paint()
_TAB = "\t"


def utf16(text: str) -> int:
    """Return the length of ``text`` as Qt counts it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def shown_runs(para: Para) -> tuple[Run, ...]:
    """Return the runs as they stand in the document: the marker's tab is one of them."""
    if para.marker is None:
        return para.runs
    marker = para.marker
    tab = Run(_TAB, marker.source_of(len(marker.text) - 1), single=True)
    return (marker, tab, *para.runs)


def overlay(
    runs: tuple[Run, ...], para: Para, tokens: TokenMap | None, look: Look
) -> list[QTextLayout.FormatRange]:
    """Return the colours of a block that shows ``runs``; without ``tokens`` no origins."""
    ranges: list[tuple[int, int, Paint]] = []
    position = 0
    for number, run in enumerate(runs):
        in_marker = number <= 1 and para.marker is not None
        code = Style.CODE in run.style and para.kind is not ParaKind.CODE
        muted = in_marker or Style.MUTED in run.style
        offset = 0
        for length, origin in tokens.pieces(run) if tokens else ((len(run.text), ""),):
            size = utf16(run.text[offset : offset + length])
            paint = Paint(origin, run.syntax, bool(run.href), code, muted)
            if in_marker and number == 1:
                paint = _BARE
            if ranges and ranges[-1][2] == paint:
                start, before, _ = ranges[-1]
                ranges[-1] = (start, before + size, paint)
            else:
                ranges.append((position, size, paint))
            offset += length
            position += size
    return [
        _format_range(start, size, paint, look) for start, size, paint in ranges if paint != _BARE
    ]


def _format_range(start: int, length: int, paint: Paint, look: Look) -> QTextLayout.FormatRange:
    result = QTextLayout.FormatRange()
    result.start, result.length = start, length
    result.format = look.colour_format(paint)
    return result

"""The colours that lie over a paragraph: its tokens' origins, its code and its links."""

from PySide6.QtGui import QTextLayout

from app.rendering.look import Look, Paint
from app.rendering.model import Para, ParaKind, Run, Style
from app.rendering.tokens import TokenMap

_BARE = Paint(None)
_TAB = "\t"
_LAST_SINGLE = 0xFFFF
"""Qt counts characters above this one as two."""
_INSERTABLE = {0x0D: "\u2028", 0x2029: "\u2028", 0xFDD0: "\ufffd", 0xFDD1: "\ufffd"}


def utf16(text: str) -> int:
    """Return the length of ``text`` as Qt counts it; half a character counts as one."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def characters(text: str, size: int) -> int:
    """Return how many whole characters of ``text`` the first ``size`` units of Qt hold."""
    if text.isascii():
        return size
    count = 0
    for char in text:
        size -= 2 if ord(char) > _LAST_SINGLE else 1
        if size < 0:
            break
        count += 1
    return count


def insertable(text: str) -> str:
    """Return ``text`` without what would begin a paragraph or a frame in a Qt document.

    Its length, as Qt counts it, stays.
    """
    return text if text.isascii() and "\r" not in text else text.translate(_INSERTABLE)


def shown_runs(para: Para) -> tuple[Run, ...]:
    """Return the runs as they stand in the document: the marker's tab is one of them."""
    if para.marker is None:
        return para.runs
    marker = para.marker
    tab = Run(_TAB, marker.source_of(len(marker.text) - 1), single=True)
    return (marker, tab, *para.runs)


def overlay(
    runs: tuple[Run, ...], para: Para, tokens: TokenMap | None, look: Look, start: int = 0
) -> list[QTextLayout.FormatRange]:
    """Return the colours of ``runs`` that stand at ``start`` of their block.

    Without ``tokens`` no origins are shown.
    """
    ranges: list[tuple[int, int, Paint]] = []
    position = start
    for number, run in enumerate(runs):
        in_marker = number <= 1 and para.marker is not None
        code = Style.CODE in run.style and para.kind is not ParaKind.CODE
        muted = in_marker or Style.MUTED in run.style
        link, syntax, bare = bool(run.href), run.syntax, in_marker and number == 1
        paints: dict[str, Paint] = {}
        ascii_only, offset = run.text.isascii(), 0
        for length, origin in tokens.pieces(run) if tokens else ((len(run.text), ""),):
            size = length if ascii_only else utf16(run.text[offset : offset + length])
            paint = paints.get(origin)
            if paint is None:
                paint = _BARE if bare else look.paint(origin, syntax, link, code, muted)
                paints[origin] = paint
            if ranges and ranges[-1][2] is paint:
                begin, before, _ = ranges[-1]
                ranges[-1] = (begin, before + size, paint)
            else:
                ranges.append((position, size, paint))
            offset += length
            position += size
    result = []
    for begin, size, paint in ranges:
        if paint.colours is not None:
            format_range = QTextLayout.FormatRange()
            format_range.start, format_range.length = begin, size
            format_range.format = paint.colours
            result.append(format_range)
    return result

"""How rendered text looks: fonts, spacing and the colours of code, links and origins."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QTextBlockFormat,
    QTextCharFormat,
    QTextFormat,
    QTextOption,
)

from app.rendering.model import Para, ParaKind, Run, Style
from app.theme import Theme

SYNTAX: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "light": MappingProxyType(
            {
                "keyword": "#8a1f7a",
                "string": "#0a5c2b",
                "number": "#9a2c00",
                "comment": "#505a66",
                "function": "#0a4fa3",
                "builtin": "#00566b",
                "link": "#0a55a8",
            }
        ),
        "dark": MappingProxyType(
            {
                "keyword": "#f0a8e6",
                "string": "#a5e0a0",
                "number": "#ffc48a",
                "comment": "#b4bdc9",
                "function": "#9fcbff",
                "builtin": "#8fdcea",
                "link": "#9fcbff",
            }
        ),
    }
)
"""Colours of code and links by theme; 4.5:1 on the surface, on code and on every tint."""

CODE_PAD = 12.0
HEADER_PAD = 5.0
FOOT_PAD = 9.0
QUOTE_STEP = 18.0
_HEADING_SCALE = (1.0, 1.45, 1.25, 1.12, 1.0, 1.0, 1.0)
_NO_UNDERLINE = QTextCharFormat.UnderlineStyle.NoUnderline
_SINGLE = QTextCharFormat.UnderlineStyle.SingleUnderline


@dataclass(frozen=True, slots=True, eq=False)
class Paint:
    """The colours of one kind of text; compared by identity. None leaves it as it is."""

    colours: QTextCharFormat | None


class Look:
    """Formats for one theme and font size. Window thread only."""

    def __init__(self, theme: Theme, font: QFont) -> None:
        self.theme = theme
        self.font = QFont(font)
        self.mono = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        self._points = font.pointSizeF() if font.pointSizeF() > 0 else 10.0
        self.indent = max(24.0, QFontMetricsF(font).horizontalAdvance("00.") + 8.0)
        self._fonts: dict[tuple[Style, int, bool], QTextCharFormat] = {}
        self._paints: dict[tuple[str, str, bool, bool, bool], Paint] = {}

    def char_format(self, style: Style, para: Para) -> QTextCharFormat:
        """Return the font of a run; never a colour."""
        level = para.level if para.kind is ParaKind.HEADING else 0
        small = para.kind is ParaKind.CODE_HEADER
        key = (style, level, small)
        if key not in self._fonts:
            self._fonts[key] = self._make_font(style, level, small)
        return self._fonts[key]

    def letters(self, run: Run, para: Para) -> QTextCharFormat:
        """Return the font of ``run`` with its link, if it has one."""
        plain = self.char_format(run.style, para)
        if not run.href:
            return plain
        result = QTextCharFormat(plain)
        result.setAnchor(True)
        result.setAnchorHref(run.href)
        return result

    def _make_font(self, style: Style, level: int, small: bool) -> QTextCharFormat:
        result = QTextCharFormat()
        scale = _HEADING_SCALE[level]
        if Style.CODE in style:
            result.setFontFamilies([self.mono.family()])
            result.setFontFixedPitch(True)
            scale *= 0.94
        result.setFontPointSize(self._points * (0.85 if small else scale))
        if level or Style.BOLD in style:
            result.setFontWeight(
                QFont.Weight.Bold if Style.BOLD in style else QFont.Weight.DemiBold
            )
        result.setFontItalic(Style.ITALIC in style)
        result.setFontStrikeOut(Style.STRIKE in style)
        return result

    def paint(self, origin: str, syntax: str, link: bool, code: bool, muted: bool) -> Paint:
        """Return the colours of one kind of text, the same object every time; never a font."""
        key = (origin, syntax, link, code, muted)
        if key not in self._paints:
            colours = self._make_colours(origin, syntax, link=link, code=code, muted=muted)
            self._paints[key] = Paint(colours if colours.propertyCount() else None)
        return self._paints[key]

    def _make_colours(
        self, origin: str, syntax: str, *, link: bool, code: bool, muted: bool
    ) -> QTextCharFormat:
        result = QTextCharFormat()
        colours = SYNTAX[self.theme.name]
        if link:
            result.setForeground(QBrush(QColor(colours["link"])))
            result.setUnderlineStyle(_SINGLE)
            result.setUnderlineColor(QColor(colours["link"]))
        elif syntax:
            result.setForeground(QBrush(QColor(colours[syntax])))
        elif muted:
            result.setForeground(QBrush(QColor(self.theme.muted)))
        if code:
            result.setBackground(QBrush(QColor(self.theme.code_background)))
        style = self.theme.origins.get(origin)
        if style is None:
            return result
        if style.background:
            result.setBackground(QBrush(QColor(style.background)))
        if style.underline is not _NO_UNDERLINE and not link:
            result.setUnderlineStyle(style.underline)
            result.setUnderlineColor(QColor(style.underline_colour))
        return result

    def block_format(self, para: Para, before: Para | None) -> QTextBlockFormat:
        """Return the spacing and indentation of a paragraph that follows ``before``."""
        result = QTextBlockFormat()
        left = para.quote * QUOTE_STEP + para.indent * self.indent
        if para.kind in (ParaKind.CODE, ParaKind.CODE_HEADER):
            left += CODE_PAD
            result.setRightMargin(CODE_PAD)
        percent = {ParaKind.CODE: 128.0, ParaKind.HEADING: 120.0, ParaKind.CODE_HEADER: 150.0}
        height = QTextBlockFormat.LineHeightTypes.ProportionalHeight.value
        result.setLineHeight(percent.get(para.kind, 142.0), height)
        result.setLeftMargin(left)
        result.setTopMargin(top_margin(para, before))
        if para.marker is not None:
            result.setTextIndent(-self.indent)
            tab = QTextOption.Tab(self.indent, QTextOption.TabType.LeftTab)
            result.setTabPositions([tab])
        if para.kind is ParaKind.HEADING:
            result.setHeadingLevel(para.level)
        if para.kind is ParaKind.RULE:
            fixed = QTextBlockFormat.LineHeightTypes.FixedHeight.value
            result.setLineHeight(9.0, fixed)
        return result

    def hair_format(self) -> QTextBlockFormat:
        """Return the format of the empty blocks Qt keeps around tables: no visible height."""
        result = QTextBlockFormat()
        fixed = QTextBlockFormat.LineHeightTypes.FixedHeight.value
        result.setLineHeight(1.0, fixed)
        result.setProperty(QTextFormat.Property.UserProperty, 1)
        return result


def top_margin(para: Para, before: Para | None) -> float:
    """Return the space above ``para``, in device-independent pixels."""
    if before is None:
        return 0.0
    foot = FOOT_PAD if before.group >= 0 and before.group != para.group else 0.0
    if para.kind is ParaKind.CODE and para.group == before.group:
        return 2.0 if before.kind is ParaKind.CODE_HEADER else 0.0
    if para.continues:
        return 0.0
    if para.kind is ParaKind.CODE_HEADER:
        return foot + 10.0 + HEADER_PAD
    if para.kind is ParaKind.HEADING:
        return foot + (20.0 if para.level <= 2 else 16.0)
    if before.kind is ParaKind.HEADING:
        return 6.0
    if para.tight and before.tight and not para.indent and not before.indent:
        return 0.0
    if para.tight and para.indent and before.indent:
        return foot + 3.0
    if para.indent and not before.indent:
        return foot + 6.0
    return foot + 10.0

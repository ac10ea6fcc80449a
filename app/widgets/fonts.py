"""Derived fonts of the window."""

from PySide6.QtGui import QFont

from app.theme import tabular


def derived(base: QFont, factor: float, *, bold: bool = False) -> QFont:
    """Return ``base`` scaled by ``factor`` with digits of one width."""
    font = tabular(base)
    if base.pointSizeF() > 0:
        font.setPointSizeF(base.pointSizeF() * factor)
    else:
        font.setPixelSize(max(1, round(base.pixelSize() * factor)))
    font.setBold(bold)
    return font

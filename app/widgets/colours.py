"""Small helpers to colour standard widgets from a theme."""

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QWidget


def colour_text(widget: QWidget, colour: str) -> None:
    """Give ``widget`` text in ``colour`` (#rrggbb)."""
    palette = widget.palette()
    for role in (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text):
        palette.setColor(role, QColor(colour))
    palette.setColor(QPalette.ColorRole.ButtonText, QColor(colour))
    widget.setPalette(palette)

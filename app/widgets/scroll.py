"""A quiet scroll area: no frame, no horizontal bar, on the ground of the text."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget


def scrolled(content: QWidget) -> QScrollArea:
    """Return an area that scrolls ``content`` up and down and takes no focus of its own."""
    scroll = QScrollArea()
    scroll.setWidget(content)
    scroll.setWidgetResizable(True)
    scroll.setFrameShape(QFrame.Shape.NoFrame)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    for widget in (content, scroll.viewport(), scroll):
        widget.setBackgroundRole(QPalette.ColorRole.Base)
        widget.setAutoFillBackground(True)
    return scroll

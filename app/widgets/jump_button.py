"""A small button over the chat that goes to its end."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from app.theme import Theme
from app.widgets.icons import icon


class JumpButton(QPushButton):
    """Shown while the reader is away from the end."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("Latest", parent)
        self.setAccessibleName("Jump to latest")
        self.setToolTip("Jump to latest (End)")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Change the colours."""
        self.setIcon(icon("arrow-down", theme.text))
        self.setStyleSheet(
            f"QPushButton {{ background: {theme.raised}; color: {theme.text};"
            f" border: 1px solid {theme.outline}; border-radius: 13px; padding: 3px 12px; }}"
            f"QPushButton:hover {{ background: {theme.border}; }}"
            f"QPushButton:focus {{ border: 1px solid {theme.accent}; }}"
        )

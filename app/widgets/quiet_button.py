"""A button that keeps its place but shows only while it is of use."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QFocusEvent, QPaintEvent
from PySide6.QtWidgets import QToolButton, QWidget

from app.theme import LIGHT
from app.widgets.icons import icon


class QuietButton(QToolButton):
    """An icon button, invisible until revealed or focused; always reachable by keyboard."""

    def __init__(self, name: str, words: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._name = name
        self._revealed = False
        self._colour = LIGHT.muted
        self._drawn = False
        self.setProperty("flat", True)
        self.setAutoRaise(True)
        self.setToolTip(words)
        self.setAccessibleName(words)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def set_colour(self, colour: str) -> None:
        """Draw the icon in ``colour``."""
        self._colour, self._drawn = colour, False
        if self._revealed or self.hasFocus():
            self._draw()

    def _draw(self) -> None:
        # Drawing takes a while, and a long chat has many buttons that are never seen.
        if not self._drawn:
            self._drawn = True
            self.setIcon(icon(self._name, self._colour))

    @property
    def revealed(self) -> bool:
        """Whether it is painted without the focus, too."""
        return self._revealed

    def reveal(self, shown: bool) -> None:
        """Show or hide what is painted."""
        if shown != self._revealed:
            self._revealed = shown
            if shown:
                self._draw()
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint only while revealed or focused."""
        if self._revealed or self.hasFocus():
            super().paintEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Appear."""
        super().focusInEvent(event)
        self._draw()
        self.update()

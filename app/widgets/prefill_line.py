"""How much of the prompt has been read, in the place of the coming reply."""

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.theme import LIGHT, Theme
from app.widgets.fonts import derived

_BAR = 3
_MAX_WIDTH = 260


class PrefillLine(QWidget):
    """Words and a thin bar; before anything is known only the words."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._base = parent
        self._theme = LIGHT
        self._done = self._total = 0
        self._update_words()

    @property
    def words(self) -> str:
        """What the line says."""
        return self.accessibleName()

    def set_progress(self, done: int, total: int) -> None:
        """Show ``done`` of ``total`` tokens read."""
        self._done, self._total = done, total
        self._update_words()
        self.update()

    def _update_words(self) -> None:
        if self._total <= 0:
            words = "Waiting for the model…"
        else:
            words = f"Reading the prompt  {self._done:,} / {self._total:,}"
        self.setAccessibleName(words)

    def set_theme(self, theme: Theme) -> None:
        """Change the colours and follow the parent's font."""
        self._theme = theme
        self.setFont(derived(self._base.font(), 0.95))
        self.update()

    def sizeHint(self) -> QSize:
        """A line of words and the bar."""
        return QSize(_MAX_WIDTH, self.fontMetrics().height() + 18)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint words and bar."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(self._theme.muted))
        metrics = self.fontMetrics()
        painter.drawText(0, 4 + metrics.ascent(), self.words)
        if self._total <= 0:
            return
        y = 4 + metrics.height() + 5
        width = min(self.width(), _MAX_WIDTH)
        painter.setPen(QColor(0, 0, 0, 0))
        painter.setBrush(QColor(self._theme.border))
        painter.drawRoundedRect(QRectF(0, y, width, _BAR), 1.5, 1.5)
        painter.setBrush(QColor(self._theme.accent))
        done = width * min(self._done / self._total, 1.0)
        painter.drawRoundedRect(QRectF(0, y, done, _BAR), 1.5, 1.5)

"""Small upright bars for rates and counts by position."""

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import Theme
from app.widgets.fonts import derived


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its label under it, its height in 0..1, and its value in words."""

    label: str
    height: float
    value: str


class MiniBars(QWidget):
    """A row of bars under a title; what fits of labels and values, the tooltip has all."""

    def __init__(self, title: str, explanation: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = title
        self._explanation = explanation
        self._bars: tuple[Bar, ...] = ()
        self._theme: Theme | None = None
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(title)
        self._describe()

    def bars(self) -> tuple[Bar, ...]:
        """What is shown."""
        return self._bars

    def set_bars(self, bars: tuple[Bar, ...]) -> None:
        """Show ``bars``."""
        if bars != self._bars:
            self._bars = bars
            self._describe()
            self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        """Title, values, bars and labels above each other."""
        return QSize(120, 3 * QFontMetrics(self._small()).height() + 40)

    def changeEvent(self, event: QEvent) -> None:
        """Follow a new font size."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.updateGeometry()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint title, bars, labels and values."""
        theme = self._theme
        if theme is None:
            return
        painter = QPainter(self)
        painter.setFont(self._small())
        metrics = painter.fontMetrics()
        line = metrics.height()
        painter.setPen(QColor(theme.muted))
        painter.drawText(
            QRectF(0, 0, self.width(), line), int(Qt.AlignmentFlag.AlignLeft), self._title
        )
        if not self._bars:
            return
        top, base = 2 * line + 2, self.height() - line - 1
        pitch = min(32.0, self.width() / len(self._bars))
        width = max(3.0, min(pitch - 3.0, 22.0))
        widest_value = max(metrics.horizontalAdvance(bar.value) for bar in self._bars)
        widest_label = max(metrics.horizontalAdvance(bar.label) for bar in self._bars)
        every = 1 + int((widest_label + 3) // pitch)
        every_value = 1 + int((widest_value + 3) // pitch)
        for place, bar in enumerate(self._bars):
            x = place * pitch
            painter.fillRect(QRectF(x, top, width, base - top), QColor(theme.raised))
            height = (base - top) * min(1.0, max(0.0, bar.height))
            fill = QColor(theme.origins["accepted"].underline_colour)
            painter.fillRect(QRectF(x, base - height, width, height), fill)
            middle = x + width / 2
            if place % every_value == 0:
                painter.setPen(QColor(theme.text))
                self._write(painter, bar.value, middle, line)
            if place % every == 0:
                painter.setPen(QColor(theme.muted))
                self._write(painter, bar.label, middle, base + 1)

    def _write(self, painter: QPainter, text: str, middle: float, top: float) -> None:
        """Write ``text`` around ``middle``, and inside the widget where that is at its edge."""
        metrics = painter.fontMetrics()
        taken = metrics.horizontalAdvance(text)
        left = max(0.0, min(middle - taken / 2, self.width() - taken))
        painter.drawText(QPointF(left, top + metrics.ascent()), text)

    def _small(self) -> QFont:
        return derived(self.font(), 0.88)

    def _describe(self) -> None:
        values = ", ".join(f"{bar.label}: {bar.value}" for bar in self._bars)
        self.setAccessibleDescription(values or "nothing yet")
        self.setToolTip(f"{self._explanation}\n{values}" if values else self._explanation)

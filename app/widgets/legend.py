"""One line that says what each mark of a picture means."""

from dataclasses import dataclass
from enum import Enum, auto

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.widgets.fonts import derived


class Mark(Enum):
    """What a legend entry shows before its words."""

    FAINT = auto()
    STRONG = auto()
    DASHED = auto()
    STEP = auto()
    FILLED = auto()
    HOLLOW = auto()


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A mark, its colour (#rrggbb) and its words."""

    mark: Mark
    colour: str
    text: str


_SAMPLE = 12
_GAP = 4
_SPACE = 8
_FONT = 0.88


class Legend(QWidget):
    """Paints entries from left to right in small muted text, wrapped where room is short."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries: tuple[LegendEntry, ...] = ()
        self._text_colour = QColor()
        # Layouts ask again and again, and measuring words is most of what that costs.
        self._widths: tuple[int, ...] | None = None
        self._height = 0
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def set_entries(self, entries: tuple[LegendEntry, ...], text_colour: str) -> None:
        """Show ``entries`` with words in ``text_colour``."""
        self._entries = entries
        self._widths = None
        self._text_colour = QColor(text_colour)
        self.setAccessibleName(", ".join(entry.text for entry in entries))
        self.updateGeometry()
        self.update()

    def changeEvent(self, event: QEvent) -> None:
        """Measure the words of a new font."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._widths = None

    def sizeHint(self) -> QSize:
        """One line, as wide as its words."""
        return QSize(self._positions(1 << 20)[1], self._line_height())

    def minimumSizeHint(self) -> QSize:
        """The height for the present width."""
        return QSize(60, self.heightForWidth(max(self.width(), 60)))

    def hasHeightForWidth(self) -> bool:
        """Lines wrap."""
        return True

    def heightForWidth(self, width: int) -> int:
        """The height of the lines that ``width`` makes."""
        places, _ = self._positions(width)
        lines = 1 + max((line for _, line in places), default=0)
        return lines * self._line_height()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint marks and words."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(derived(self.font(), _FONT))
        metrics = self._metrics()
        height = self._line_height()
        places, _ = self._positions(self.width())
        for entry, (x, line) in zip(self._entries, places, strict=True):
            middle = line * height + height / 2
            _paint_mark(painter, entry, x, middle)
            painter.setPen(self._text_colour)
            baseline = middle + (metrics.ascent() - metrics.descent()) / 2
            painter.drawText(QPointF(x + _SAMPLE + _GAP, baseline), entry.text)

    def _metrics(self) -> QFontMetrics:
        return QFontMetrics(derived(self.font(), _FONT))

    def _line_height(self) -> int:
        self._measure()
        return self._height

    def _measure(self) -> tuple[int, ...]:
        """Return how wide each entry's words are."""
        if self._widths is None:
            metrics = self._metrics()
            self._widths = tuple(metrics.horizontalAdvance(entry.text) for entry in self._entries)
            self._height = metrics.height() + 2
        return self._widths

    def _positions(self, width: int) -> tuple[list[tuple[int, int]], int]:
        """Where each entry begins as (x, line), and the widest line."""
        places: list[tuple[int, int]] = []
        x = line = widest = 0
        for words in self._measure():
            need = _SAMPLE + _GAP + words
            if x and x + need > width:
                x, line = 0, line + 1
            places.append((x, line))
            widest = max(widest, x + need)
            x += need + _SPACE
        return places, widest


def _paint_mark(painter: QPainter, entry: LegendEntry, x: float, middle: float) -> None:
    colour = QColor(entry.colour)
    if entry.mark in (Mark.FILLED, Mark.HOLLOW):
        box = QRectF(x + 2, middle - 4, 8, 8)
        painter.setPen(QPen(colour, 1))
        painter.setBrush(colour if entry.mark is Mark.FILLED else Qt.BrushStyle.NoBrush)
        painter.drawRect(box)
        return
    pen = QPen(colour, 2.2 if entry.mark is Mark.STRONG else 1.2)
    if entry.mark is Mark.DASHED:
        pen.setDashPattern([3, 2])
    painter.setPen(pen)
    if entry.mark is Mark.STEP:
        points = [
            QPointF(x, middle + 3),
            QPointF(x + 6, middle + 3),
            QPointF(x + 6, middle - 3),
            QPointF(x + _SAMPLE, middle - 3),
        ]
        painter.drawPolyline(points)
    else:
        painter.drawLine(QPointF(x, middle), QPointF(x + _SAMPLE, middle))

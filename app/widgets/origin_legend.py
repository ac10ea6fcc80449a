"""What the colours of the tokens mean; it is also their switch."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QResizeEvent, QTextCharFormat
from PySide6.QtWidgets import QBoxLayout, QCheckBox, QFrame, QHBoxLayout, QSizePolicy, QWidget

from app.theme import LIGHT, Theme
from app.widgets.fonts import derived
from app.widgets.margins import MARGIN, side_margin

_ENTRIES = (
    ("accepted", "accepted", "Drafted, and the target agreed"),
    ("resampled", "resampled", "The target's word at the first rejected draft"),
    ("bonus", "bonus", "The target's extra token after a wholly accepted draft"),
    ("plain", "plain", "Decoded without a draft"),
)
_PAD = 5
_GAP = 12
_LINES = {
    QTextCharFormat.UnderlineStyle.SingleUnderline: Qt.PenStyle.SolidLine,
    QTextCharFormat.UnderlineStyle.DashUnderline: Qt.PenStyle.DashLine,
    QTextCharFormat.UnderlineStyle.DotLine: Qt.PenStyle.DotLine,
}


class _Swatch(QWidget):
    """One word painted as the tokens of its origin are."""

    def __init__(self, origin: str, word: str, tip: str) -> None:
        super().__init__()
        self._origin = origin
        self._word = word
        self._theme = LIGHT
        self._coloured = True
        self.setToolTip(tip)
        self.setAccessibleName(f"{word}: {tip}")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFont(derived(self.font(), 0.92))

    def show_as(self, theme: Theme, coloured: bool) -> None:
        self._theme = theme
        self._coloured = coloured
        self.update()

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self._word) + 2 * _PAD, metrics.height() + 4)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        style = self._theme.origins[self._origin]
        area = QRectF(self.rect()).adjusted(0, 1, 0, -1)
        if self._coloured and style.background:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(style.background))
            painter.drawRoundedRect(area, 3, 3)
        painter.setPen(QColor(self._theme.text if self._coloured else self._theme.muted))
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, self._word)
        line = _LINES.get(style.underline)
        if self._coloured and line is not None:
            painter.setPen(QPen(QColor(style.underline_colour), 1.2, line))
            y = area.center().y() + self.fontMetrics().ascent() / 2 + 2
            painter.drawLine(int(area.left()) + _PAD, int(y), int(area.right()) - _PAD, int(y))


class OriginLegend(QFrame):
    """The four origins as they are painted in the chat, and a check box that switches them.

    Where they do not fit beside each other, the origins go under the check box.
    """

    toggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._switch = QCheckBox("Colour tokens", self)
        self._switch.setChecked(True)
        self._switch.setFont(derived(self.font(), 0.92))
        self._switch.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._swatches = [_Swatch(*entry) for entry in _ENTRIES]
        self._rows = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._rows.setContentsMargins(MARGIN, 6, MARGIN, 0)
        self._rows.setSpacing(_GAP)
        self._origins = QHBoxLayout()
        self._origins.setSpacing(6)
        for swatch in self._swatches:
            self._origins.addWidget(swatch)
        self._origins.addStretch(1)
        self._rows.addWidget(self._switch)
        self._rows.addLayout(self._origins, 1)
        self._switch.toggled.connect(self._toggled)

    def set_on(self, on: bool) -> None:
        """Show whether the colours are on."""
        self._switch.setChecked(on)

    def is_on(self) -> bool:
        """Whether the colours are on."""
        return self._switch.isChecked()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self._theme = theme
        self._paint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep to the column of the chat, in one line or two."""
        super().resizeEvent(event)
        width = event.size().width()
        side = side_margin(width)
        together = self._switch.sizeHint().width() + _GAP + self._origins.sizeHint().width()
        narrow = together > width - 2 * side
        direction = QBoxLayout.Direction
        self._rows.setDirection(direction.TopToBottom if narrow else direction.LeftToRight)
        self._rows.setSpacing(2 if narrow else _GAP)
        self._rows.setContentsMargins(side, 6, side, 0)

    def minimumSizeHint(self) -> QSize:
        """Two lines fit where one does not."""
        widest = max(self._switch.sizeHint().width(), self._origins.sizeHint().width())
        return QSize(widest + 2 * MARGIN, super().minimumSizeHint().height())

    def _toggled(self, on: bool) -> None:
        self._paint()
        self.toggled.emit(on)

    def _paint(self) -> None:
        for swatch in self._swatches:
            swatch.show_as(self._theme, self._switch.isChecked())

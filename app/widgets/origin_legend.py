"""What the colours of the tokens mean; it is also their switch."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QTextCharFormat
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QSizePolicy, QWidget

from app.theme import LIGHT, Theme
from app.widgets.fonts import derived

_ENTRIES = (
    ("accepted", "accepted", "Drafted, and the target agreed"),
    ("resampled", "resampled", "The target's word at the first rejected draft"),
    ("bonus", "bonus", "The target's extra token after a wholly accepted draft"),
    ("plain", "plain", "Decoded without a draft"),
)
_PAD = 5
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
    """The four origins as they are painted in the chat, and a check box that switches them."""

    toggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._switch = QCheckBox("Colour tokens", self)
        self._switch.setChecked(True)
        self._switch.setFont(derived(self.font(), 0.92))
        self._switch.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._swatches = [_Swatch(*entry) for entry in _ENTRIES]
        row = QHBoxLayout(self)
        row.setContentsMargins(24, 6, 24, 0)
        row.setSpacing(6)
        row.addWidget(self._switch)
        row.addSpacing(6)
        for swatch in self._swatches:
            row.addWidget(swatch)
        row.addStretch(1)
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

    def _toggled(self, on: bool) -> None:
        self._paint()
        self.toggled.emit(on)

    def _paint(self) -> None:
        for swatch in self._swatches:
            swatch.show_as(self._theme, self._switch.isChecked())

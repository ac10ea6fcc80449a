"""What the live plots share: a title, a large number, a legend, and a quiet plot area."""

import math

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QWheelEvent
from PySide6.QtWidgets import QGraphicsItem, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.qtmodels.series import Series
from app.theme import Theme
from app.widgets.elided_label import ElidedLabel
from app.widgets.fonts import derived
from app.widgets.legend import Legend
from app.widgets.plot_line import PlotLine
from app.widgets.steady_label import SteadyLabel

LEFT_AXIS_PX = 46
"""Width of the vertical axis, the same in every plot so that rounds stand above each other."""

PLOT_PX = 76
"""Height of the plot area without its horizontal axis."""

POINT_LIMIT = 480
"""Most points of a line of single rounds; more than the plot has pixels is lost work."""

SMOOTH_LIMIT = 200
"""Most points of a smoothed line, whose broad antialiased pen costs most of a repaint."""

LEAST_ROUNDS = 20
"""The horizontal axis never shows fewer rounds, so that a beginning reply does not leap."""


class QuietPlot(pg.PlotWidget):  # type: ignore[misc]
    """A plot that only shows: no menu, no dragging, no zoom, and the wheel scrolls the panel."""

    def __init__(self, left: str, bottom: str) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFrameShape(self.Shape.NoFrame)
        self.setMinimumWidth(0)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._titles = {"left": left, "bottom": bottom}
        item = self.getPlotItem()
        item.setMenuEnabled(False)
        item.hideButtons()
        item.setContentsMargins(0, 4, 6, 0)
        view = item.getViewBox()
        view.setMouseEnabled(x=False, y=False)
        view.disableAutoRange()
        view.setDefaultPadding(0.0)
        self.setRange(xRange=(1, LEAST_ROUNDS), yRange=(0, 1), padding=0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the scroll area."""
        event.ignore()

    def set_theme(self, theme: Theme) -> None:
        """Colour the ground and the axes."""
        self.setBackground(QColor(theme.surface))
        font = derived(self.font(), 0.82)
        for side, title in self._titles.items():
            axis = self.getPlotItem().getAxis(side)
            axis.enableAutoSIPrefix(False)
            axis.setLabel(title, color=theme.muted, **{"font-size": f"{font.pointSizeF():.1f}pt"})
            axis.setStyle(tickFont=font, tickLength=-3, maxTickLevel=1, hideOverlappingLabels=True)
            axis.setPen(QColor(theme.border))
            axis.setTextPen(QColor(theme.muted))
            axis.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
        self.getPlotItem().getAxis("left").setWidth(LEFT_AXIS_PX)
        line = QFontMetrics(font).height()
        self.getPlotItem().getAxis("bottom").setHeight(2 * line + 4)
        self.setFixedHeight(PLOT_PX + 2 * line + 8)


class PlotCard(QWidget):
    """Title and large number over a legend and a plot."""

    def __init__(
        self,
        title: str,
        *,
        left: str,
        explanation: str,
        widest: str,
        bottom: str = "round",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.theme: Theme | None = None
        self._lines: list[PlotLine] = []
        self._picture = QRectF()
        self._title = ElidedLabel(title)
        self._title.set_more(explanation)
        self._value = SteadyLabel(widest)
        self._value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.legend = Legend()
        self.plot = QuietPlot(left, bottom)
        for widget in (self._value, self.legend, self.plot):
            widget.setToolTip(explanation)
        self._value.setAccessibleDescription(explanation)
        head = QHBoxLayout()
        head.addWidget(self._title)
        head.addStretch(1)
        head.addWidget(self._value)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(head)
        layout.addWidget(self.legend)
        layout.addWidget(self.plot)
        self._apply_fonts()

    def value(self) -> str:
        """The large number as it stands."""
        return self._value.text()

    def set_value(self, text: str) -> None:
        """Show the large number; its place keeps its width."""
        if text != self._value.text():
            self._value.setText(text)
            self._value.setAccessibleName(f"{self._title.text()}: {text}")

    def add_curve(self) -> pg.PlotCurveItem:
        """Add a curve that is filled anew at every repaint."""
        curve = pg.PlotCurveItem()
        self.plot.addItem(curve)
        return curve

    def add_line(self) -> PlotLine:
        """Add a line that is cheaper than a curve, in a plot that :meth:`show_rounds` sets."""
        line = PlotLine()
        self.plot.addItem(line, ignoreBounds=True)
        self._lines.append(line)
        return line

    def show_rounds(self, series: Series, top: float, *, growing: bool) -> None:
        """Set the ranges: the rounds of ``series``, and 0 to ``top`` upward.

        With ``growing`` there is room for the next rounds, so that an axis, which is the dearest
        part of a plot to paint, changes only now and then.
        """
        if len(series) == 0:
            return
        first, last = float(series.index[0]), float(series.index[-1])
        rounds = max(last - first + 1.0, float(LEAST_ROUNDS))
        if growing:
            rounds = next_length(rounds)
            if first > 1.0:  # the oldest rounds leave now
                first -= (first - 1.0) % (rounds // 16)
        picture = QRectF(first, 0.0, rounds - 1.0, top)
        if picture == self._picture:
            return
        self._picture = picture
        self.plot.setRange(xRange=(first, first + rounds - 1.0), yRange=(0, top), padding=0)
        for line in self._lines:
            line.set_picture(picture)
        # Else the plot would find out while it is painted, and ask to be painted once more.
        self.plot.scene().prepareForPaint()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self.theme = theme
        self.plot.set_theme(theme)

    def changeEvent(self, event: QEvent) -> None:
        """Follow a new font size."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._apply_fonts()
            if self.theme is not None:
                self.set_theme(self.theme)

    def _apply_fonts(self) -> None:
        self._title.setFont(derived(self.font(), 1.0, bold=True))
        self._value.setFont(derived(self.font(), 1.45, bold=True))


def next_length(rounds: float) -> float:
    """Return the next length of the horizontal axis, at most a quarter longer than ``rounds``."""
    power = 10.0 ** math.floor(math.log10(rounds) + 1e-9)
    steps = (1.0, 1.3, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.4, 8.0)
    return next((step * power for step in steps if rounds <= step * power), 10.0 * power)


def round_up(value: float) -> float:
    """Return the next of 1, 1.5, 2, 3, 4, 5, 6, 8, 10 times a power of ten, so that the vertical
    axis changes rarely while numbers grow."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    for step in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0):
        if value <= step * power * (1 + 1e-9):
            return step * power
    return 10.0 * power

"""The live plots of a training: its loss, and how much of its drafts would stand."""

import pyqtgraph as pg
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from app.qtmodels.curve import Curve
from app.theme import Theme
from app.widgets.formats import UNKNOWN
from app.widgets.legend import LegendEntry, Mark
from app.widgets.mini_bars import Bar, MiniBars
from app.widgets.plot_card import PlotCard, round_up

_LEAST_STEPS = 20
_LOSS = (
    "How far the head is from what the host would say, over the last steps of the training; "
    "lower is better."
)
_LENGTH = (
    "Mean acceptance length on held-out text: how many tokens one pass of the target would bring "
    "in a greedy reply with this head. It lies between 1 and K + 1."
)
_POSITIONS = "How often each drafted position stands, where those before it stood."


class LossPlot(PlotCard):
    """The loss by step."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Loss",
            left="loss",
            bottom="step",
            explanation=_LOSS,
            widest="88.888",
            parent=parent,
        )
        self._curve = Curve()
        self._line = self.add_curve()
        self.set_value(UNKNOWN)

    def add(self, step: int, loss: float) -> None:
        """Add the loss after ``step``."""
        self._curve.append(step, loss)
        x, y = self._curve.points()
        self._line.setData(x, y)
        self.set_value(f"{loss:.3f}")
        low, high = float(y.min()), float(y.max())
        air = max(0.05, 0.1 * (high - low))
        right = max(1.08 * x[-1], _LEAST_STEPS)
        self.plot.setRange(xRange=(0, right), yRange=(max(0.0, low - air), high + air), padding=0)

    def clear(self) -> None:
        """Forget the curve."""
        self._curve.clear()
        self._line.setData([], [])
        self.set_value(UNKNOWN)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        super().set_theme(theme)
        self._line.setPen(pg.mkPen(QColor(theme.plot_smooth), width=2))
        self._line.opts["antialias"] = True
        words = "mean of the last steps"
        self.legend.set_entries((LegendEntry(Mark.STRONG, theme.plot_smooth, words),), theme.muted)


class HeadAcceptancePlot(PlotCard):
    """Mean acceptance length by step, with a dot for each measurement, and rates by position."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Tokens a round",
            left="tokens/round",
            bottom="step",
            explanation=_LENGTH,
            widest="88.88 of max 88",
            parent=parent,
        )
        self._depth = 1
        self._curve = Curve(64)
        self._line = self.add_curve()
        self._dots = pg.ScatterPlotItem(size=7)
        self.plot.addItem(self._dots)
        self.set_value(UNKNOWN)

    def add(self, step: int, length: float, depth: int) -> None:
        """Add what was measured after ``step`` of a head that drafts ``depth`` tokens."""
        self._depth = depth
        self._curve.append(step, length)
        x, y = self._curve.points()
        self._line.setData(x, y)
        self._dots.setData(x, y)
        self.set_value(f"{length:.2f} of max {depth + 1}")
        right = max(1.08 * x[-1], _LEAST_STEPS)
        top = max(1.2, min(depth + 1.0, 1.0 + round_up(1.15 * (float(y.max()) - 1.0))))
        self.plot.setRange(xRange=(0, right), yRange=(1.0, top), padding=0)

    def clear(self) -> None:
        """Forget the curve."""
        self._curve.clear()
        self._line.setData([], [])
        self._dots.setData([], [])
        self.set_value(UNKNOWN)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        super().set_theme(theme)
        colour = QColor(theme.origins["accepted"].underline_colour)
        self._line.setPen(pg.mkPen(colour, width=2))
        self._line.opts["antialias"] = True
        self._dots.setPen(pg.mkPen(colour))
        self._dots.setBrush(pg.mkBrush(colour))
        words = "mean length on held-out text"
        self.legend.set_entries((LegendEntry(Mark.STRONG, colour.name(), words),), theme.muted)


def position_bars() -> MiniBars:
    """Return bars for the acceptance by position."""
    return MiniBars("Acceptance by position", _POSITIONS)


def rate_bars(rates: tuple[float, ...]) -> tuple[Bar, ...]:
    """Return a bar for each rate of 0..1."""
    return tuple(Bar(str(place), rate, f"{rate:.0%}") for place, rate in enumerate(rates, start=1))

"""The live plot of decoding speed."""

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from app.qtmodels.ring import Floats
from app.qtmodels.series import Series, averaged, thinned
from app.theme import Theme
from app.widgets.formats import short, speed
from app.widgets.legend import LegendEntry, Mark
from app.widgets.plot_card import POINT_LIMIT, SMOOTH_LIMIT, PlotCard, round_up

_EXPLANATION = (
    "Tokens per second = decoded tokens / decode time. Reading the prompt is not counted.\n"
    "The large number is the whole reply so far; the plot shows every round and the last "
    "moments smoothed."
)
BASELINE_SOURCE = (
    "Plain decoding was measured on this machine with the same model, without a drafter."
)


class SpeedPlot(PlotCard):
    """Tokens per second: each round faint, smoothed strong, plain decoding dashed if known."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Speed",
            left="tokens/s",
            explanation=_EXPLANATION,
            widest="8,888 tok/s",
            parent=parent,
        )
        self._each = self.add_line()
        self._smooth = self.add_line()
        self._baseline_line = pg.InfiniteLine(angle=0, movable=False)
        self._baseline_line.hide()
        self.plot.addItem(self._baseline_line)
        self._baseline: float | None = None
        self.set_value(speed(None))

    def set_baseline(self, tokens_per_second: float | None) -> None:
        """Draw the speed of plain decoding, or nothing where it is not known."""
        self._baseline = tokens_per_second
        self._baseline_line.setVisible(tokens_per_second is not None)
        self.legend.setToolTip(_EXPLANATION)
        if tokens_per_second is not None:
            self._baseline_line.setValue(tokens_per_second)
            self.legend.setToolTip(BASELINE_SOURCE)
        self._describe()

    def show_series(
        self, series: Series, tokens_per_second: float | None, *, growing: bool = False
    ) -> None:
        """Draw ``series`` and the speed of the whole reply; ``growing`` while rounds come."""
        self.set_value(speed(tokens_per_second))
        self._each.set_points(*thinned(series.index, series.speed, POINT_LIMIT))
        self._smooth.set_points(*averaged(series.index, series.speed_smooth, SMOOTH_LIMIT))
        if len(series):
            # A single very short round may be off the picture; the smoothed line never is.
            highest = max(
                _nearly_highest(series.speed),
                float(series.speed_smooth.max()),
                self._baseline or 0.0,
            )
            self.show_rounds(series, round_up(1.1 * highest), growing=growing)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        super().set_theme(theme)
        self._each.set_pen(pg.mkPen(QColor(theme.plot_line), width=1))
        self._smooth.set_pen(pg.mkPen(QColor(theme.plot_smooth), width=2), smooth=True)
        dashed = pg.mkPen(QColor(theme.plot_baseline), width=1.4, style=Qt.PenStyle.DashLine)
        self._baseline_line.setPen(dashed)
        self._describe()

    def _describe(self) -> None:
        if self.theme is None:
            return
        entries = [
            LegendEntry(Mark.FAINT, self.theme.plot_line, "round"),
            LegendEntry(Mark.STRONG, self.theme.plot_smooth, "smoothed"),
        ]
        if self._baseline is not None:
            words = f"plain {short(self._baseline)}"
            entries.append(LegendEntry(Mark.DASHED, self.theme.plot_baseline, words))
        self.legend.set_entries(tuple(entries), self.theme.muted)


def _nearly_highest(values: Floats) -> float:
    """Return what all but a fiftieth of ``values`` stay below."""
    place = len(values) - 1 - len(values) // 50
    return float(np.partition(values, place)[place])

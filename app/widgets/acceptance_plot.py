"""The live plot of acceptance length."""

import pyqtgraph as pg
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from app.qtmodels.series import Series, averaged, thinned
from app.theme import Theme
from app.widgets.formats import UNKNOWN
from app.widgets.legend import LegendEntry, Mark
from app.widgets.plot_card import POINT_LIMIT, SMOOTH_LIMIT, PlotCard

_EXPLANATION = (
    "Mean acceptance length = 1 + accepted / rounds: how many tokens one pass of the target "
    "brings, counting the bonus or resampled token. It lies between 1 and gamma + 1, "
    "which the step line shows."
)


class AcceptancePlot(PlotCard):
    """Acceptance length: each round faint, smoothed strong, gamma + 1 as a step line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Acceptance",
            left="tokens/round",
            explanation=_EXPLANATION,
            widest="88.8 of 88",
            parent=parent,
        )
        self._limit = self.add_curve()
        self._each = self.add_curve()
        self._smooth = self.add_curve()
        self.set_value(UNKNOWN)

    def show_series(self, series: Series, mean_length: float | None) -> None:
        """Draw ``series`` and the mean acceptance length of the whole reply."""
        if len(series) == 0 or mean_length is None:
            self.set_value(UNKNOWN)
        else:
            self.set_value(f"{mean_length:.1f} of {series.gamma[-1] + 1:.0f}")
        limit = series.gamma + 1.0
        self._limit.setData(*thinned(series.index, limit, POINT_LIMIT), stepMode="right")
        self._each.setData(*thinned(series.index, series.length, POINT_LIMIT))
        self._smooth.setData(*averaged(series.index, series.length_smooth, SMOOTH_LIMIT))
        if len(series):
            self.show_rounds(series, max(2.0, float(limit.max())) + 0.5)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        super().set_theme(theme)
        self._limit.setPen(pg.mkPen(QColor(theme.plot_limit), width=1))
        self._each.setPen(pg.mkPen(QColor(theme.plot_line), width=1))
        self._smooth.setPen(pg.mkPen(QColor(theme.plot_smooth), width=2))
        self._smooth.opts["antialias"] = True
        self.legend.set_entries(
            (
                LegendEntry(Mark.FAINT, theme.plot_line, "round"),
                LegendEntry(Mark.STRONG, theme.plot_smooth, "smoothed"),
                LegendEntry(Mark.STEP, theme.plot_limit, "gamma + 1"),
            ),
            theme.muted,
        )

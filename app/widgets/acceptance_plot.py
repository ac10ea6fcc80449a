"""The live plot of acceptance length."""

import numpy as np
import pyqtgraph as pg
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from app.qtmodels.ring import Floats
from app.qtmodels.series import Series, averaged, thinned
from app.theme import Theme
from app.widgets.formats import UNKNOWN
from app.widgets.legend import LegendEntry, Mark
from app.widgets.plot_card import POINT_LIMIT, SMOOTH_LIMIT, PlotCard

_EXPLANATION = (
    "Mean acceptance length = 1 + accepted / rounds: how many tokens one pass of the target "
    "brings, counting the bonus or resampled token. It lies between 1 and gamma + 1, "
    "which the step line shows; where gamma changes, the number is set against its mean."
)


class AcceptancePlot(PlotCard):
    """Acceptance length: each round faint, smoothed strong, gamma + 1 as a step line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Tokens a round",
            left="tokens/round",
            explanation=_EXPLANATION,
            widest="8.8 of max 8.8",
            parent=parent,
        )
        self._limit = self.add_line()
        self._each = self.add_line()
        self._smooth = self.add_line()
        self.set_value(UNKNOWN)

    def show_series(
        self, series: Series, mean_length: float | None, *, growing: bool = False
    ) -> None:
        """Draw ``series`` and the mean length of the whole reply; ``growing`` while rounds come."""
        if len(series) == 0 or mean_length is None:
            self.set_value(UNKNOWN)
        else:
            possible = float(series.gamma.mean()) + 1.0
            digits = 0 if possible.is_integer() else 1
            self.set_value(f"{mean_length:.1f} of max {possible:.{digits}f}")
        limit = series.gamma + 1.0
        index, steps = thinned(series.index, limit, POINT_LIMIT)
        self._limit.set_steps(*_around(index, steps))
        self._each.set_points(*thinned(series.index, series.length, POINT_LIMIT))
        self._smooth.set_points(*averaged(series.index, series.length_smooth, SMOOTH_LIMIT))
        if len(series):
            self.show_rounds(series, max(2.0, float(limit.max())) + 0.5, growing=growing)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        super().set_theme(theme)
        self._limit.set_pen(pg.mkPen(QColor(theme.plot_limit), width=1))
        self._each.set_pen(pg.mkPen(QColor(theme.plot_line), width=1))
        self._smooth.set_pen(pg.mkPen(QColor(theme.plot_smooth), width=2), smooth=True)
        self.legend.set_entries(
            (
                LegendEntry(Mark.FAINT, theme.plot_line, "round"),
                LegendEntry(Mark.STRONG, theme.plot_smooth, "smoothed"),
                LegendEntry(Mark.STEP, theme.plot_limit, "max: gamma + 1"),
            ),
            theme.muted,
        )


def _around(index: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the edges of one step around each round, the newest included, and its height."""
    if len(index) == 0:
        return index, values
    between = (index[1:] + index[:-1]) / 2.0
    return np.concatenate((index[:1] - 0.5, between, index[-1:] + 0.5)), values

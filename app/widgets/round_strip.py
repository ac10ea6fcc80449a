"""One column a round: how far the drafter ran ahead, and how much of it stands."""

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.qtmodels.series import Series
from app.theme import Theme
from app.widgets.formats import percent
from app.widgets.legend import LegendEntry, Mark

_PITCH = 7
_COLUMN = 5
_DRAFT_PX = 44
_GAP_PX = 4
_TIME_PX = 12
_TIP = (
    "One column a round, newest at the right. Height: gamma. Filled: accepted. Hollow: drafted "
    "but not used. Under it the round's time: verifying above, drafting below."
)


def draft_legend(theme: Theme) -> tuple[LegendEntry, ...]:
    """What the upper marks mean."""
    origins = theme.origins
    return (
        LegendEntry(Mark.FILLED, origins["accepted"].underline_colour, "accepted"),
        LegendEntry(Mark.HOLLOW, origins["resampled"].underline_colour, "rejected"),
    )


def time_legend(theme: Theme) -> tuple[LegendEntry, ...]:
    """What the lower marks mean."""
    return (
        LegendEntry(Mark.FILLED, theme.plot_line, "verify time"),
        LegendEntry(Mark.FILLED, theme.plot_baseline, "draft time"),
    )


class RoundStrip(QWidget):
    """Paints the newest rounds that fit; older ones leave at the left."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._series: Series | None = None
        self._theme: Theme | None = None
        self.setFixedHeight(_DRAFT_PX + _GAP_PX + _TIME_PX + 2)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        self.setToolTip(_TIP)
        self.setAccessibleName("Rounds")
        self.setAccessibleDescription(_TIP)

    def columns(self) -> int:
        """How many rounds fit."""
        return max(1, (self.width() - 2) // _PITCH)

    def show_series(self, series: Series) -> None:
        """Show the newest rounds of ``series``."""
        self._series = series
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        """Room for a few dozen rounds."""
        return QSize(240, self.height())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell about the round under the pointer."""
        self.setToolTip(self._words_at(round(event.position().x())))
        super().mouseMoveEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint from the newest round at the right to the oldest that fits."""
        theme, series = self._theme, self._series
        if theme is None or series is None or len(series) == 0:
            return
        painter = QPainter(self)
        shown = min(len(series), self.columns())
        # Of all rounds, not of those that show: a changing gamma would else rescale the strip.
        tallest = max(1.0, float(series.gamma.max()))
        unit = _DRAFT_PX / tallest
        base = 1 + _DRAFT_PX
        unused = QColor(theme.raised)
        accepted_colour = QColor(theme.origins["accepted"].underline_colour)
        rejected_pen = QPen(QColor(theme.origins["resampled"].underline_colour), 1)
        verify_colour, draft_colour = QColor(theme.plot_line), QColor(theme.plot_baseline)
        time_top = base + _GAP_PX
        for place in range(shown):
            row = place - shown
            x = 1 + place * _PITCH
            gamma, proposed = float(series.gamma[row]), float(series.proposed[row])
            accepted = float(series.accepted[row])
            painter.fillRect(QRectF(x, base - gamma * unit, _COLUMN, gamma * unit), unused)
            if proposed > accepted:
                painter.setPen(rejected_pen)
                painter.drawRect(
                    QRectF(
                        x + 0.5,
                        base - proposed * unit + 0.5,
                        _COLUMN - 1,
                        max(1.0, (proposed - accepted) * unit - 1),
                    )
                )
            painter.fillRect(
                QRectF(x, base - accepted * unit, _COLUMN, accepted * unit), accepted_colour
            )
            verify = float(series.verify_share[row]) * _TIME_PX
            draft = float(series.draft_share[row]) * _TIME_PX
            painter.fillRect(QRectF(x, time_top, _COLUMN, verify), verify_colour)
            painter.fillRect(QRectF(x, time_top + verify, _COLUMN, draft), draft_colour)
        painter.setPen(QPen(QColor(theme.outline), 1))
        painter.drawLine(0, base + 1, self.width(), base + 1)

    def _words_at(self, x: int) -> str:
        series = self._series
        if series is None or len(series) == 0:
            return _TIP
        shown = min(len(series), self.columns())
        place = (x - 1) // _PITCH
        if not 0 <= place < shown:
            return _TIP
        row = place - shown
        return (
            f"Round {series.index[row]:.0f}: gamma {series.gamma[row]:.0f}, "
            f"{series.proposed[row]:.0f} drafted, {series.accepted[row]:.0f} accepted\n"
            f"Time: draft {percent(float(series.draft_share[row]))}, "
            f"verify {percent(float(series.verify_share[row]))}\n\n{_TIP}"
        )

"""What the automatic gamma goes by, in bars and words."""

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.names import source_name
from app.theme import Theme
from app.widgets import formats
from app.widgets.mini_bars import Bar, MiniBars
from app.widgets.stat_grid import StatGrid
from core.events import GammaBelief

_SCALE = 2.0
"""The bars of the verify time end here, so that a flat row of bars means that rows are cheap."""


class BeliefView(QWidget):
    """Shows one GammaBelief: why this length, how likely each position stands, what a row costs."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.reason = QLabel()
        self.reason.setWordWrap(True)
        self.grid = StatGrid()
        self.grid.add("source", "Drafted last by", "These numbers are kept for each source.")
        self.grid.add(
            "draft",
            "Draft time a token",
            "What one drafted token costs before it is verified.",
        )
        self.acceptance = MiniBars(
            "Expected to stand by position, %",
            "The chance that a position stands where those before it did. Learnt from the last "
            "hundred rounds or so, and kept until another pair is loaded.",
        )
        self.verify = MiniBars(
            "Verify time by rows, × one row",
            "Time of one pass of the target over so many rows, in passes over a single row. A "
            "draft of gamma tokens takes gamma + 1 rows.",
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 2, 0, 0)
        layout.setSpacing(10)
        for widget in (self.reason, self.grid, self.acceptance, self.verify):
            layout.addWidget(widget)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self.acceptance.set_theme(theme)
        self.verify.set_theme(theme)

    def show_belief(self, belief: GammaBelief) -> None:
        """Show ``belief``."""
        self.reason.setText(belief.reason)
        self.grid.set_text("source", source_name(belief.source))
        self.grid.set_text("draft", formats.step_time(belief.draft_ms))
        self.acceptance.set_bars(
            tuple(
                Bar(str(place), chance, f"{100 * chance:.0f}")
                for place, chance in enumerate(belief.acceptance, start=1)
            )
        )
        one = belief.verify_ms[0] if belief.verify_ms else 0.0
        costs = [time_ms / one for time_ms in belief.verify_ms] if one > 0 else []
        scale = max([_SCALE, *costs])
        self.verify.set_bars(
            tuple(
                Bar(str(rows), cost / scale, f"{cost:.1f}")
                for rows, cost in enumerate(costs, start=1)
            )
        )

"""The live numbers of a reply: speed, acceptance, rounds, and what is in force."""

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QPalette, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.names import drafter_name, head_name
from app.qtmodels.series import RoundSeries
from app.records import InForce
from app.theme import Theme
from app.widgets.acceptance_plot import AcceptancePlot
from app.widgets.belief_view import BeliefView
from app.widgets.formats import head_sentence, off_sentence, rule_words
from app.widgets.legend import Legend
from app.widgets.metrics_numbers import MetricsNumbers
from app.widgets.round_strip import RoundStrip, draft_legend, time_legend
from app.widgets.section import Section
from app.widgets.side_tips import SideTips
from app.widgets.speed_plot import SpeedPlot
from core.events import GammaBelief, Round
from core.metrics import GenerationMetrics, MetricsAccumulator

REPAINT_MS = 250
"""Often enough to be live. The processor that paints is the one that decodes."""
_EMPTY = (
    "Nothing measured yet.\n\nSend a message: speed and acceptance are plotted here while the "
    "reply streams."
)
_NEXT_TIP = "What the running or the next reply really uses."
_PLOTTED_TIP = "What the reply that is plotted here used."


class MetricsPanel(QScrollArea):
    """Plots and numbers of the running reply, and of the last one when none runs.

    Rounds are only stored when they come; a timer of 4 Hz paints them, and it runs only while
    a reply streams. Lives in the window thread.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._series = RoundSeries()
        self._accumulator = MetricsAccumulator()
        self._dirty = False
        self._final: GenerationMetrics | None = None
        self._speed_up: float | None = None
        self._baseline: float | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(REPAINT_MS)
        self._timer.timeout.connect(self._repaint_if_needed)

        self._in_force = QLabel()
        self._in_force.setWordWrap(True)
        self._in_force.setProperty("muted", True)
        self._off = QLabel()
        self._off.setWordWrap(True)
        self._off.setProperty("warning", True)
        self._off.hide()
        self._note = QLabel()
        self._note.setWordWrap(True)
        self._note.hide()
        self.speed = SpeedPlot()
        self.acceptance = AcceptancePlot()
        self.strip = RoundStrip()
        self._strip_title = QLabel("Rounds")
        self._strip_title.setProperty("heading", True)
        self._draft_legend = Legend()
        self._time_legend = Legend()
        self.numbers = MetricsNumbers()
        self.belief = BeliefView()
        self._belief_section = Section("What automatic gamma believes", self.belief)
        self._belief_section.hide()
        self._belief: GammaBelief | None = None
        self._empty = QLabel(_EMPTY)
        self._empty.setWordWrap(True)
        self._empty.setProperty("muted", True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._live = QWidget()
        self._build()
        SideTips(self)
        self.set_in_force(InForce())

    def start_reply(self) -> None:
        """Forget the last reply and begin to paint the next."""
        self._series.clear()
        self._accumulator = MetricsAccumulator()
        self._final = self._speed_up = None
        self._belief = None
        self.set_note("")
        self._dirty = True
        self._timer.start()

    def add_round(self, round_: Round) -> None:
        """Count one round; it is painted within 250 ms. A round outside a reply begins one."""
        if not self._timer.isActive():
            self.start_reply()
        self._series.add(round_)
        self._accumulator.add(round_)
        self._belief = round_.belief or self._belief
        self._dirty = True

    def finish_reply(self, metrics: GenerationMetrics, *, speed_up: float | None = None) -> None:
        """Show the final ``metrics`` of the reply and stop painting.

        ``speed_up`` is what was measured of the reply; None compares it with the plain speed, once
        that is known.
        """
        self._timer.stop()
        self._final, self._speed_up = metrics, speed_up
        self._dirty = True
        self._repaint_if_needed()

    def set_in_force(self, in_force: InForce, *, plotted: bool = False) -> None:
        """Say what the running or next reply uses, and why nothing drafts where that is so.

        ``plotted`` says that it is what the reply used that is plotted.
        """
        off = bool(in_force.off_reason) or in_force.drafter == "off"
        parts = [in_force.pair, drafter_name(in_force.drafter)]
        if not off:
            parts += [f"head {head_name(in_force.head)}"] if in_force.head else []
            parts += [
                f"gamma {in_force.gamma}",
                rule_words(in_force.rule, lossy=in_force.lossy),
            ]
        where = f"{in_force.device.upper()} {in_force.precision}".strip()
        parts.append(where)
        self._in_force.setText(" · ".join(part for part in parts if part))
        self._in_force.setVisible(plotted or bool(in_force.device))
        tip = _PLOTTED_TIP if plotted else _NEXT_TIP
        self._in_force.setToolTip(f"{tip}\n{head_sentence(in_force.head)}".strip())
        self._off.setText(off_sentence(in_force.off_reason) if off else "")
        self._off.setVisible(off and bool(in_force.device) and not plotted)

    def set_note(self, text: str) -> None:
        """Say calmly what the reply shown should be known for, "" where there is nothing."""
        self._note.setText(text)
        self._note.setVisible(bool(text))

    def set_baseline(self, tokens_per_second: float | None) -> None:
        """Set the speed of plain decoding on the same runner, None where it is not known."""
        if tokens_per_second == self._baseline:
            return
        self._baseline = tokens_per_second
        self.speed.set_baseline(tokens_per_second)
        self.numbers.set_baseline(tokens_per_second)
        self._dirty = True
        self._repaint_if_needed()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self.speed.set_theme(theme)
        self.acceptance.set_theme(theme)
        self.strip.set_theme(theme)
        self._draft_legend.set_entries(draft_legend(theme), theme.muted)
        self._time_legend.set_entries(time_legend(theme), theme.muted)
        self.numbers.set_theme(theme)
        self.belief.set_theme(theme)
        self._belief_section.set_theme(theme)

    def clear(self) -> None:
        """Return to the state before the first reply."""
        self._timer.stop()
        self._series.clear()
        self._accumulator = MetricsAccumulator()
        self._final = self._speed_up = None
        self._belief = None
        self._belief_section.hide()
        self.set_note("")
        self._dirty = False
        self._paint()
        self._show_live(False)

    def is_painting(self) -> bool:
        """Whether the 4 Hz timer runs."""
        return self._timer.isActive()

    def minimumSizeHint(self) -> QSize:
        """Small enough for a narrow, low window; the rest scrolls."""
        return QSize(240, 120)

    def sizeHint(self) -> QSize:
        """Room for both plots."""
        return QSize(320, 420)

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up on what came while hidden."""
        super().showEvent(event)
        self._repaint_if_needed()

    def _repaint_if_needed(self) -> None:
        if self._dirty and self.isVisible():
            self._dirty = False
            self._paint()

    def _paint(self) -> None:
        series = self._series.tail()
        metrics = self._final or self._accumulator.snapshot()
        growing = self._final is None
        self.speed.show_series(series, metrics.tokens_per_second, growing=growing)
        self.acceptance.show_series(series, metrics.mean_acceptance_length, growing=growing)
        self.strip.show_series(series)
        self.numbers.show_metrics(metrics, speed_up=self._speed_up)
        if self._belief is not None:
            self.belief.show_belief(self._belief)
            self._belief_section.show()
        elif self._final is not None:
            # Not before: the belief of the last reply stays until the next has one of its own.
            self._belief_section.hide()
        if len(series):
            self._show_live(True)

    def _show_live(self, live: bool) -> None:
        self._live.setVisible(live)
        self._empty.setVisible(not live)

    def _build(self) -> None:
        strip_head = QHBoxLayout()
        strip_head.addWidget(self._strip_title)
        strip_head.addStretch(1)
        strip_head.addWidget(self._draft_legend)
        column = QVBoxLayout(self._live)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(self.speed)
        column.addWidget(self.acceptance)
        rounds = QVBoxLayout()
        rounds.setSpacing(3)
        rounds.addLayout(strip_head)
        rounds.addWidget(self.strip)
        rounds.addWidget(self._time_legend)
        column.addLayout(rounds)
        column.addWidget(self.numbers)
        column.addWidget(self._belief_section)
        column.addStretch(1)
        content = QWidget()
        outer = QVBoxLayout(content)
        outer.setContentsMargins(12, 10, 12, 12)
        outer.setSpacing(6)
        outer.addWidget(self._in_force)
        outer.addWidget(self._off)
        outer.addWidget(self._note)
        outer.addWidget(self._empty, 1)
        outer.addWidget(self._live)
        outer.addStretch(0)
        self._live.hide()
        for widget in (content, self.viewport(), self):
            widget.setBackgroundRole(QPalette.ColorRole.Base)
            widget.setAutoFillBackground(True)
        self.setWidget(content)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Live numbers")

"""The numbers beside the plots, with their definitions as tooltips."""

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QLabel, QVBoxLayout, QWidget

from app.theme import Theme
from app.widgets import formats
from app.widgets.fonts import derived
from app.widgets.mini_bars import Bar, MiniBars
from app.widgets.speed_plot import BASELINE_SOURCE
from app.widgets.stat_grid import StatGrid
from core.metrics import GenerationMetrics

_BESIDE_PX = 330
_SPEED_UP = (
    "Speed-up = tokens/s over plain tokens/s on the same runner and machine. Below 1 "
    "speculation costs time."
)
_WAITING = "The speed-up waits for the plain speed. Measure it in the menu Model."
_PROMPT = "Tokens of the prompt, the whole chat included."
_STATS = (
    ("speed_up", "Speed-up", _SPEED_UP),
    ("rate", "Accepted drafts", "Draft acceptance rate = accepted / proposed tokens."),
    ("rounds", "Rounds", "How often the target verified: one forward pass each."),
    ("tokens", "Tokens", "Tokens decoded for this reply."),
    ("first", "First token", "Time to first token, from sending to the first decided token."),
    ("prefill", "Prompt", "Prefill tokens/s: how fast the new part of the prompt was read."),
    ("shares", "Draft / verify", "Share of the decode time spent drafting and verifying."),
    ("prompt", "Prompt tokens", _PROMPT),
)


class MetricsNumbers(QWidget):
    """Shows one GenerationMetrics; counts nothing itself."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._baseline: float | None = None
        self._metrics = GenerationMetrics()
        self._speed_up: float | None = None
        self.waiting = QLabel(_WAITING)
        self.waiting.setWordWrap(True)
        self.waiting.setProperty("muted", True)
        self.waiting.setFont(derived(self.font(), 0.88))
        self.waiting.hide()
        self.grid = StatGrid()
        for key, title, explanation in _STATS:
            self.grid.add(key, title, explanation)
        self.positions = MiniBars(
            "Accepted by position, %",
            "Rate i = rounds that accepted position i / rounds that proposed it.",
        )
        self.histogram = MiniBars(
            "Rounds by accepted tokens",
            "Histogram: how many rounds accepted 0, 1, 2, ... drafted tokens. Rounds without a "
            "draft count under 0.",
        )
        self._bars = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._bars.setSpacing(10)
        self._bars.addWidget(self.positions)
        self._bars.addWidget(self.histogram)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(12)
        layout.addWidget(self.grid)
        layout.addWidget(self.waiting)
        layout.addLayout(self._bars)

    def set_baseline(self, tokens_per_second: float | None) -> None:
        """Set the speed of plain decoding that the speed-up is measured against."""
        self._baseline = tokens_per_second
        words = _SPEED_UP
        if tokens_per_second is not None:
            words += f"\n{BASELINE_SOURCE} It reached {formats.speed(tokens_per_second)}."
        self.grid.set_explanation("speed_up", words)
        self.show_metrics(self._metrics, speed_up=self._speed_up)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self.positions.set_theme(theme)
        self.histogram.set_theme(theme)

    def show_metrics(self, metrics: GenerationMetrics, *, speed_up: float | None = None) -> None:
        """Show ``metrics``, and the speed-up that was measured or that the plain speed gives."""
        self._metrics, self._speed_up = metrics, speed_up
        if speed_up is None and self._baseline and metrics.tokens_per_second is not None:
            speed_up = metrics.tokens_per_second / self._baseline
        known = metrics.prompt_tokens > 0
        prompt = formats.count(metrics.prompt_tokens) if known else formats.UNKNOWN
        show = self.grid.set_text
        show("speed_up", formats.ratio(speed_up))
        self.waiting.setVisible(speed_up is None and metrics.proposed > 0)
        show("rate", formats.percent(metrics.acceptance_rate))
        show("rounds", formats.count(metrics.rounds))
        show("tokens", formats.count(metrics.tokens))
        show("first", formats.duration(metrics.time_to_first_token_ms))
        show("prefill", formats.speed(metrics.prefill_tokens_per_second))
        show("shares", _shares(metrics))
        show("prompt", prompt)
        reused = f" {formats.count(metrics.reused_tokens)} of them were still in the cache."
        self.grid.set_explanation("prompt", _PROMPT + (reused if known else ""))
        self.positions.set_bars(
            tuple(
                Bar(str(place), rate, f"{100 * rate:.0f}")
                for place, rate in enumerate(metrics.position_rates, start=1)
            )
        )
        self.histogram.set_bars(_histogram(metrics))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the bars side by side where there is room."""
        super().resizeEvent(event)
        beside = event.size().width() >= _BESIDE_PX
        self._bars.setDirection(
            QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom
        )


def _shares(metrics: GenerationMetrics) -> str:
    if metrics.decode_ms <= 0:
        return formats.UNKNOWN
    draft = 100 * metrics.draft_ms / metrics.decode_ms
    verify = 100 * metrics.verify_ms / metrics.decode_ms
    return f"{draft:.0f} / {verify:.0f} %"


def _histogram(metrics: GenerationMetrics) -> tuple[Bar, ...]:
    rounds = dict(metrics.histogram)
    if not rounds:
        return ()
    most = max(rounds.values())
    longest = max(len(metrics.position_rates), max(rounds))
    return tuple(
        Bar(str(accepted), rounds.get(accepted, 0) / most, formats.count(rounds.get(accepted, 0)))
        for accepted in range(longest + 1)
    )

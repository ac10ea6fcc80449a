"""The line at the bottom of the window: state, speculation, context, memory."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from app.theme import Theme
from app.widgets import formats
from app.widgets.elided_label import ElidedLabel
from app.widgets.fonts import derived
from app.widgets.steady_label import SteadyLabel

_PROGRESS_PX = 120
_NEARLY_FULL = 0.9


class StatusLine(QWidget):
    """Shows what the program does now, and whether tokens are drafted.

    Texts shorten where the window is narrow; the whole text is then the tooltip.
    """

    trainingClicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state_text = "Ready"
        self._state = ElidedLabel()
        self._progress = QProgressBar()
        self._speculation = ElidedLabel()
        self._context = SteadyLabel()
        self._memory = QLabel()
        self._training = QPushButton()
        self._build()
        self.set_state("Ready")
        self.clear_progress()

    def set_state(self, text: str) -> None:
        """Say what the program does, e.g. "Ready"; progress, while shown, stands in its place."""
        self._state_text = text
        if self._progress.isHidden():
            self._show_state(text)

    def set_progress(self, fraction: float | None, text: str) -> None:
        """Show ``text`` with a bar at ``fraction`` (0..1); None runs to and fro."""
        if fraction is None:
            self._progress.setRange(0, 0)
            self._show_state(text)
        else:
            share = min(1.0, max(0.0, fraction))
            self._progress.setRange(0, 1000)
            self._progress.setValue(round(1000 * share))
            self._show_state(f"{text} {formats.percent(share)}")
        self._progress.show()

    def clear_progress(self) -> None:
        """Take the bar away and show the state again."""
        self._progress.hide()
        # A bar without an end would go on repainting even while hidden.
        self._progress.setRange(0, 1000)
        self._show_state(self._state_text)

    def set_speculation(self, text: str, ok: bool) -> None:
        """Say whether tokens are drafted; ``ok`` False marks the text as a warning."""
        self._speculation.setText(text)
        self._mark(self._speculation, not ok)

    def set_context(self, used: int, limit: int) -> None:
        """Show how much of the context is used, in tokens; a limit of 0 shows nothing."""
        if limit <= 0:
            self._context.setText("")
            return
        self._context.setText(f"context {formats.count(used)} / {formats.count(limit)}")
        self._context.setToolTip(
            f"{formats.count(max(0, limit - used))} tokens are left for this chat."
        )
        self._mark(self._context, used >= _NEARLY_FULL * limit)

    def set_memory(self, used_bytes: int | None) -> None:
        """Show the memory that the loaded models take; None or 0 shows nothing."""
        self._memory.setText(f"memory {formats.size(used_bytes)}" if used_bytes else "")

    def set_training(self, text: str) -> None:
        """Say how far a training is, on a button that shows it; "" hides it."""
        self._training.setText(text)
        self._training.setVisible(bool(text))

    def training(self) -> str:
        """What is said of a training."""
        return self._training.text()

    def set_theme(self, theme: Theme) -> None:
        """Nothing to do: every colour comes from the palette and the style sheet."""

    def _show_state(self, text: str) -> None:
        if text == self._state.text():
            return
        self._state.setText(text)
        self._state.setAccessibleName(text)

    @staticmethod
    def _mark(label: QLabel, warning: bool) -> None:
        if label.property("warning") == warning:
            return
        label.setProperty("warning", warning)
        label.setProperty("muted", not warning)
        label.style().unpolish(label)
        label.style().polish(label)

    def _build(self) -> None:
        self._progress.setTextVisible(False)
        self._progress.setFixedSize(_PROGRESS_PX, 4)
        self._memory.setToolTip("Memory that the loaded models take.")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 4, 12, 4)
        row.setSpacing(12)
        row.addWidget(self._state)
        row.addWidget(self._progress)
        row.addStretch(1)
        row.addWidget(self._speculation)
        row.addStretch(1)
        row.addWidget(self._training)
        row.addWidget(self._context)
        row.addWidget(self._memory)
        self._speculation.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        font = derived(self.font(), 0.92)
        self._training.setProperty("flat", True)
        self._training.setFont(font)
        # As high as the texts beside it, so that its coming moves nothing.
        self._training.setStyleSheet("padding: 0 6px; min-height: 0;")
        self._training.setFixedHeight(QFontMetrics(font).height() + 2)
        self._training.setToolTip("Shows the training.")
        self._training.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._training.clicked.connect(self.trainingClicked)
        self._training.hide()
        for label in (self._state, self._speculation, self._context, self._memory):
            label.setFont(font)
            label.setProperty("muted", True)

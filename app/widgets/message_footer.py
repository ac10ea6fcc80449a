"""The line under a message: numbers, how it ended, and what can be done with it."""

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.records import Message, MessageState
from app.theme import Theme
from app.widgets.colours import colour_text
from app.widgets.fonts import derived
from app.widgets.formats import (
    duration,
    head_sentence,
    percent,
    ratio,
    rule_words,
    short,
    speed,
)
from app.widgets.quiet_button import QuietButton
from core.requests import AUTO_GAMMA, Rule

_FIXED = "\u00a0"
_ENDINGS = {
    MessageState.STOPPED: "Stopped",
    MessageState.INTERRUPTED: "Interrupted when the program ended",
    MessageState.FAILED: "Broke off",
}

_REASONS = {"length": "Max tokens reached", "context": "The context is full"}


def numbers_line(metrics: Mapping[str, object]) -> str:
    """Return the numbers of a reply in words: speed, acceptance, time to first token."""

    def number(name: str) -> float | None:
        value = metrics.get(name)
        return float(value) if isinstance(value, int | float) else None

    parts = []
    if (rate := number("tokens_per_second")) is not None:
        parts.append(speed(rate))
    if (gain := number("speed_up")) is not None:
        parts.append(ratio(gain))
    drafted = number("proposed")
    if drafted:
        if (length := number("mean_acceptance_length")) is not None:
            parts.append(f"{short(length)} a round")
        if (acceptance := number("acceptance_rate")) is not None:
            parts.append(f"{percent(acceptance)} accepted")
    if (first := number("time_to_first_token_ms")) is not None:
        parts.append(f"{duration(first)} to first token")
    return " · ".join(parts)


def lossy_words(message: Message) -> str:
    """Return that a lossy rule shaped the reply, "" where none did.

    At temperature 0 every rule is the greedy one, so that nothing is lost.
    """
    speculation, sampling = _stored(message, "speculation"), _stored(message, "sampling")
    rule = str(speculation.get("rule"))
    if not message.metrics.get("proposed") or rule not in set(Rule) or not Rule(rule).lossy:
        return ""
    return rule_words(rule, lossy=True) if sampling.get("temperature") else ""


def head_of(message: Message) -> str:
    """Return the head that drafted for the reply and its host, "" where none did."""
    head = message.settings.get("head") if message.metrics.get("proposed") else ""
    return head if isinstance(head, str) else ""


def gamma_words(message: Message) -> str:
    """Return what an automatic gamma came to in the reply, "" where it was fixed."""
    proposed, rounds = message.metrics.get("proposed"), message.metrics.get("rounds")
    if _stored(message, "speculation").get("gamma") != AUTO_GAMMA:
        return ""
    if not isinstance(proposed, int) or not isinstance(rounds, int) or proposed * rounds <= 0:
        return ""
    return f"gamma automatic ({short(proposed / rounds)} on average)"


def _stored(message: Message, name: str) -> Mapping[str, object]:
    part = message.settings.get(name)
    return part if isinstance(part, dict) else {}


class MessageFooter(QWidget):
    """Numbers at the left; versions, copy and regenerate at the right."""

    copyClicked = Signal()
    regenerateClicked = Signal()
    versionClicked = Signal(int)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._base = parent
        self._several = False
        self._numbers = QLabel(self)
        self._numbers.setTextFormat(Qt.TextFormat.PlainText)
        self._numbers.setWordWrap(True)
        self._back = QuietButton("chevron-left", "Previous version", self)
        self._version = QLabel(self)
        self._forth = QuietButton("chevron-right", "Next version", self)
        self._copy = QuietButton("copy", "Copy as Markdown", self)
        self._again = QuietButton("regenerate", "Write another version", self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self._numbers, 1)
        # A row of their own: in the middle of each other, and at the top of numbers that wrap.
        tools = QHBoxLayout()
        tools.setSpacing(2)
        for widget in (self._back, self._version, self._forth, self._copy, self._again):
            tools.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addLayout(tools)
        row.setAlignment(tools, Qt.AlignmentFlag.AlignTop)
        self._back.clicked.connect(lambda: self.versionClicked.emit(-1))
        self._forth.clicked.connect(lambda: self.versionClicked.emit(1))
        self._copy.clicked.connect(self.copyClicked)
        self._again.clicked.connect(self.regenerateClicked)

    def show_message(self, message: Message) -> None:
        """Take the numbers, the ending and the versions of ``message``."""
        ending = _ENDINGS.get(MessageState(message.state), "")
        ending = ending or _REASONS.get(str(message.metrics.get("reason")), "")
        numbers = numbers_line(message.metrics)
        parts = (ending, lossy_words(message), numbers, gamma_words(message))
        # A line may end between two numbers, not between a number and its unit.
        words = " · ".join(part for part in parts if part)
        self._numbers.setText(
            words.replace(" ", _FIXED).replace(f"{_FIXED}·{_FIXED}", f"{_FIXED}· ")
        )
        self._numbers.setToolTip(head_sentence(head_of(message)))
        several = self._several = message.versions > 1
        for widget in (self._back, self._version, self._forth):
            widget.setVisible(several)
        self._version.setText(f"{message.version}/{message.versions}")
        self._version.setAccessibleName(f"Version {message.version} of {message.versions}")
        self.reveal(self.underMouse())
        self._back.setEnabled(message.version > 1)
        self._forth.setEnabled(message.version < message.versions)
        streaming = message.state == MessageState.STREAMING
        self._again.setVisible(message.role == "assistant" and not streaming)
        self._copy.setVisible(not streaming)

    def focus_chain(self) -> list[QWidget]:
        """Return what takes the focus, from left to right."""
        return [self._back, self._forth, self._copy, self._again]

    @property
    def words(self) -> str:
        """What the line says."""
        return self._numbers.text().replace(_FIXED, " ")

    def lay_out(self, width: int) -> int:
        """Return the height that it takes for ``width``."""
        layout = self.layout()
        wanted = layout.totalHeightForWidth(width) if layout is not None else 0
        return max(wanted, self.sizeHint().height() if not self._numbers.text() else 0)

    def set_theme(self, theme: Theme) -> None:
        """Change colours and follow the parent's font."""
        font = derived(self._base.font(), 0.9)
        self._numbers.setFont(font)
        self._version.setFont(font)
        colour_text(self._numbers, theme.muted)
        colour_text(self._version, theme.muted)
        for button in (self._back, self._forth, self._copy, self._again):
            button.set_colour(theme.muted)

    def reveal(self, shown: bool) -> None:
        """Show or hide what can be done; a version switch always shows."""
        self._copy.reveal(shown)
        self._again.reveal(shown)
        self._back.reveal(self._several)
        self._forth.reveal(self._several)

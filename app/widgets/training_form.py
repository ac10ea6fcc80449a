"""What a training is asked for: host, head, prompts and budget, and what it takes of the disk."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.records import Choice
from app.theme import Theme
from app.training_records import LIMITS, Budget, DiskPlan, PromptFile, TrainingChoices
from app.widgets.fields import CheckField, ChoiceField, Field
from app.widgets.fonts import derived
from app.widgets.formats import size
from app.widgets.number_fields import WholeField
from app.widgets.prompt_files import PromptFilesField
from app.widgets.scroll import scrolled
from app.widgets.section import Section
from app.widgets.settings_form import Form, Row, choice
from app.widgets.wheel_guard import WheelGuard
from core.models.mtp.card import HeadKind

_KINDS = (
    Choice(
        HeadKind.SEQUENTIAL,
        "Sequential",
        "One small module, applied again for every further token. Accepted most.",
    ),
    Choice(
        HeadKind.PARALLEL,
        "Parallel",
        "A block of its own for every further token. Cheapest to draft with.",
    ),
)
_BUDGETS = (
    Choice(Budget.MINUTES, "Time", "Half of it writes text to learn from, the rest trains."),
    Choice(Budget.TOKENS, "Amount of text", "Then six rounds over it, however long they take."),
)
_LOCKED = "While a training runs, these are its choices."


class TrainingForm(QWidget):
    """Shows TrainingChoices and tells about every change. Below them what starting takes.

    Lives in the window thread; checks and starts nothing itself.
    """

    changed = Signal()
    startClicked = Signal()
    addClicked = Signal()
    """More files of prompts are wanted."""
    removeClicked = Signal(str)
    """A file is not wanted any more."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._base = TrainingChoices(pair="-")
        self._locked = False
        self._fields: dict[str, Field] = {}
        self._sections: list[Section] = []
        self._budget = Form(())
        self._files = PromptFilesField()
        self._guard = WheelGuard(self)
        self._content = QWidget()
        self._head = QLabel()
        self._disk = QLabel()
        self._obstacle = QLabel()
        self._start = QPushButton("Start training")
        self._start_words = self._start.text()
        self._build()
        self._show_rows()
        self.set_obstacle("")

    def choices(self) -> TrainingChoices:
        """What the form shows."""
        values: dict[str, Any] = {name: field.value() for name, field in self._fields.items()}
        return replace(self._base, **values)

    def set_choices(self, choices: TrainingChoices) -> None:
        """Show ``choices`` without a signal."""
        self._base = choices
        for name, field in self._fields.items():
            field.set_value(getattr(choices, name))
        self._show_rows()

    def set_pairs(self, choices: Sequence[Choice]) -> None:
        """Offer pairs of models."""
        self._offer("pair", choices)

    def set_hosts(self, choices: Sequence[Choice]) -> None:
        """Offer the models of the chosen pair, refused ones with their reason."""
        self._offer("host", choices)

    def set_files(self, files: Sequence[PromptFile]) -> None:
        """Show the person's files, and bring one that was added into sight."""
        more = len(files) > len(self._files.value())
        self._files.set_files(files)
        if more and self.isVisible():
            # The rows have their places once the layout has run.
            QTimer.singleShot(0, self, lambda: self._scroll.ensureWidgetVisible(self._files, 0, 12))

    def set_head(self, words: str) -> None:
        """Say which head the host has already; "" where that is not known, or it has none."""
        self._head.setText(words)
        self._head.setVisible(bool(words))

    def set_disk(self, plan: DiskPlan | None) -> None:
        """Say what a training takes of the disk; None says nothing."""
        self._disk.setVisible(plan is not None)
        if plan is None:
            return
        short = plan.free_bytes < plan.needed_bytes
        words = f"Needs up to {size(plan.needed_bytes)} on the disk; {size(plan.free_bytes)} free."
        if short:
            words += " Take a smaller budget, or free some space."
        self._disk.setText(words)
        self._disk.setToolTip(f"Kept in {plan.folder}")
        _mark(self._disk, "warning" if short else "muted")

    def set_obstacle(self, reason: str) -> None:
        """Say why the training cannot be started; "" lets it start."""
        self._reason = reason
        self._show_start()

    def set_start_words(self, words: str) -> None:
        """Name what the button does."""
        self._start_words = words
        self._show_start()

    def set_locked(self, locked: bool) -> None:
        """While a training runs its choices stay as they are."""
        self._locked = locked
        self._content.setEnabled(not locked)
        self._show_start()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        for section in self._sections:
            section.set_theme(theme)
        self._files.set_theme(theme)

    def minimumSizeHint(self) -> QSize:
        """Small enough for a low window; the rest scrolls."""
        return QSize(300, 160)

    def _show_start(self) -> None:
        words = _LOCKED if self._locked else self._reason
        self._obstacle.setText(words)
        self._obstacle.setVisible(bool(words))
        _mark(self._obstacle, "muted" if self._locked else "warning")
        self._start.setText(self._start_words)
        self._start.setEnabled(not words)
        self._start.setVisible(not self._locked)

    def _offer(self, name: str, choices: Sequence[Choice]) -> None:
        field = self._fields[name]
        if isinstance(field, ChoiceField):
            field.box.set_choices(choices)
            field.refresh()

    def _on_edited(self) -> None:
        self._show_rows()
        self.changed.emit()

    def _show_rows(self) -> None:
        for budget in Budget:
            self._budget.set_row_visible(budget, self._fields["budget"].value() == budget)

    def _build(self) -> None:
        column = QVBoxLayout(self._content)
        column.setContentsMargins(8, 8, 12, 12)
        column.setSpacing(6)
        for title, rows in (
            ("Model", _model_rows()),
            ("Head", _head_rows()),
            ("Prompts", self._prompt_rows()),
            ("Budget", _budget_rows()),
        ):
            form = Form(rows)
            if title == "Budget":
                self._budget = form
            self._fields.update({row.name: row.field for row in rows})
            section = Section(title, form)
            self._sections.append(section)
            column.addWidget(section)
        column.addStretch(1)
        for field in self._fields.values():
            field.edited.connect(self._on_edited)
            for widget in field.inputs:
                self._guard.guard(widget)
        self._files.addClicked.connect(self.addClicked)
        self._files.removeClicked.connect(self.removeClicked)
        self._start.clicked.connect(self.startClicked)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        self._scroll = scrolled(self._content)
        outer.addWidget(self._scroll, 1)
        outer.addWidget(self._make_foot())

    def _prompt_rows(self) -> tuple[Row, ...]:
        return (
            Row(
                "shipped",
                "",
                CheckField("Those that come with Paceline"),
                "Varied requests: chat, code, rewriting and summarising.",
                above=True,
            ),
            Row(
                "files",
                "Your own",
                self._files,
                "Text files with one prompt a line, or JSONL files with an object with the key "
                '"text" a line.',
                above=True,
            ),
        )

    def _make_foot(self) -> QFrame:
        foot = QFrame()
        foot.setAutoFillBackground(True)
        foot.setBackgroundRole(QPalette.ColorRole.AlternateBase)
        self._start.setObjectName("start")
        self._start.setProperty("primary", True)
        column = QVBoxLayout(foot)
        column.setContentsMargins(16, 10, 12, 12)
        column.setSpacing(6)
        _mark(self._head, "muted")
        self._head.hide()
        for label in (self._head, self._disk, self._obstacle):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setFont(derived(self.font(), 0.92))
            column.addWidget(label)
        column.addWidget(self._start)
        return foot


def _model_rows() -> tuple[Row, ...]:
    return (
        Row("pair", "Model pair", choice(()), "The pair whose target or draft gets a head.", True),
        Row(
            "host",
            "Host",
            choice(()),
            "The model that the head reads and drafts for. On the target it replaces a draft "
            "model; on the draft it lets one step of the draft propose several tokens.",
            True,
        ),
    )


def _head_rows() -> tuple[Row, ...]:
    return (
        Row("kind", "Kind", choice(_KINDS), "How the head makes its tokens."),
        Row("depth", "Depth K", WholeField(*LIMITS["depth"]), "How many tokens the head drafts."),
        Row(
            "vocabulary",
            "Vocabulary",
            WholeField(*LIMITS["vocabulary"], step=1024),
            "The head drafts that many of the most frequent tokens alone; fewer are quicker. "
            "The target still speaks all of them.",
        ),
    )


def _budget_rows() -> tuple[Row, ...]:
    return (
        Row("budget", "Limit", choice(_BUDGETS), "What ends the writing of text."),
        Row(
            Budget.MINUTES,
            "Minutes",
            WholeField(*LIMITS["minutes"], step=10),
            "How long all may take.",
        ),
        Row(
            Budget.TOKENS,
            "Tokens",
            WholeField(*LIMITS["tokens"], step=50_000),
            "How much text the host writes to learn from.",
        ),
    )


def _mark(label: QLabel, look: str) -> None:
    for name in ("muted", "warning"):
        label.setProperty(name, name == look)
    label.style().unpolish(label)
    label.style().polish(label)

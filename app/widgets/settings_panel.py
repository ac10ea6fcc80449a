"""The settings beside the chat: the pair, drafting, sampling, the reply, the machine, the look."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QSize, QTimer, Signal
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.names import HEAD_DRAFTERS
from app.records import Choice
from app.settings import Settings
from app.theme import Theme
from app.widgets.fields import ChoiceField, Field, PathField
from app.widgets.scroll import scrolled
from app.widgets.section import Section
from app.widgets.settings_choices import OWN_FILES
from app.widgets.settings_form import (
    HEAD_UNKNOWN,
    Form,
    appearance_rows,
    device_rows,
    drafting_rows,
    model_rows,
    reply_rows,
    sampling_rows,
)
from app.widgets.wheel_guard import WheelGuard
from core.requests import Rule

CHANGE_DELAY_MS = 250
_MODEL_FIELDS = ("pair", "target_path", "draft_path", "head_path", "device", "precision")
_RULE_FIELDS = {
    "ensemble_weight": Rule.ENSEMBLE,
    "typical_epsilon": Rule.TYPICAL,
    "typical_delta": Rule.TYPICAL,
}
_LOAD = "Load"
_RELOAD = "The new pair is loaded when you press Load."
_DRAFTING_NOTE = (
    "Code and repetitive text gain much from drafting; creative prompts gain little. "
    "Changes apply to the next reply."
)


class SettingsPanel(QWidget):
    """Shows a Settings record and tells about every change, a quarter of a second after the last.

    Lives in the window thread; keeps nothing and loads nothing itself.
    """

    changed = Signal(object)
    """The new Settings, after the person changed something."""
    loadClicked = Signal()
    """Load what is chosen; ``changed`` has been emitted before where it was due."""
    browseClicked = Signal(str)
    """A path is wanted for "target", "draft" or "head"."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._base = Settings()
        self._before_reset: Settings | None = None
        self._loading = False
        self._reload_needed = False
        self._reload_words = _RELOAD
        self._fields: dict[str, Field] = {}
        self._sections: list[Section] = []
        self._guard = WheelGuard(self)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(CHANGE_DELAY_MS)
        self._timer.timeout.connect(self._emit)
        self._banner = QFrame()
        self._banner_text = QLabel(_RELOAD)
        self._load = QPushButton(_LOAD)
        self._load_words = _LOAD
        self._reset = QPushButton("Reset to defaults")
        self._model = Form(())
        self._drafting = Form(())
        self._build()
        self.set_settings(Settings())
        self.set_reload_needed(False)

    def settings(self) -> Settings:
        """What the panel shows, unsent changes included."""
        values: dict[str, Any] = {name: field.value() for name, field in self._fields.items()}
        return replace(self._base, **values)

    def set_settings(self, settings: Settings) -> None:
        """Show ``settings`` without a signal; an unsent change is dropped."""
        self._timer.stop()
        self._base = settings
        for name, field in self._fields.items():
            field.set_value(getattr(settings, name))
        self._show_rows()

    def set_pairs(self, pairs: Sequence[Choice]) -> None:
        """Offer ``pairs``; an entry for own files is added where it is missing."""
        known = any(pair.value == OWN_FILES.value for pair in pairs)
        self._offer("pair", (*pairs,) if known else (*pairs, OWN_FILES))

    def set_precisions(self, precisions: Sequence[Choice]) -> None:
        """Offer ``precisions``, refused ones with their reason."""
        self._offer("precision", precisions)

    def set_devices(self, devices: Sequence[Choice]) -> None:
        """Offer ``devices``, refused ones with their reason."""
        self._offer("device", devices)

    def set_drafters(self, drafters: Sequence[Choice]) -> None:
        """Offer ``drafters``, refused ones with their reason."""
        self._offer("drafter", drafters)

    def set_head(self, words: str) -> None:
        """Say which head drafts while none is chosen; "" where that is not known before a load."""
        field = self._fields["head_path"]
        if isinstance(field, PathField):
            field.set_placeholder(words or HEAD_UNKNOWN)

    def set_reload_needed(self, needed: bool, words: str = "", button: str = "") -> None:
        """Show or hide the line with the Load button; ``words`` and ``button`` replace its own."""
        self._reload_needed, self._reload_words = needed, words or _RELOAD
        self._load_words = button or _LOAD
        self._show_banner()

    def set_busy_loading(self, busy: bool) -> None:
        """While models load, what chooses them cannot be changed."""
        self._loading = busy
        self._load.setEnabled(not busy)
        for name in _MODEL_FIELDS:
            self._fields[name].setEnabled(not busy)
        self._show_banner()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        for section in self._sections:
            section.set_theme(theme)
        for field in self._fields.values():
            field.set_theme(theme)

    def flush(self) -> None:
        """Tell about a change at once, e.g. before the window closes."""
        if self._timer.isActive():
            self._timer.stop()
            self._emit()

    def minimumSizeHint(self) -> QSize:
        """Small enough for a narrow, low window; the rest scrolls."""
        return QSize(240, 120)

    def sizeHint(self) -> QSize:
        """Room for the first two sections."""
        return QSize(320, 420)

    def _show_banner(self) -> None:
        words = "The pair is being loaded." if self._loading else self._reload_words
        self._banner_text.setText(words)
        self._load.setText("Loading…" if self._loading else self._load_words)
        self._banner.setVisible(self._loading or self._reload_needed)

    def _offer(self, name: str, choices: Sequence[Choice]) -> None:
        field = self._fields[name]
        if isinstance(field, ChoiceField):
            field.box.set_choices(choices)
            field.refresh()

    def _on_edited(self) -> None:
        self._before_reset = None
        self._reset.setText("Reset to defaults")
        self._show_rows()
        self._timer.start()

    def _emit(self) -> None:
        settings = self.settings()
        if settings != self._base:
            self._base = settings
            self.changed.emit(settings)

    def _on_load(self) -> None:
        self.flush()
        self.loadClicked.emit()

    def _on_reset(self) -> None:
        """Put back every setting but the models; pressed again, take that back."""
        now = self.settings()
        before = self._before_reset
        if before is None:
            kept = {name: getattr(now, name) for name in _MODEL_FIELDS}
            shown = {name: getattr(Settings(), name) for name in self._fields}
            target = replace(now, **{**shown, **kept})
        else:
            target = before
        self.set_settings(target)
        self._before_reset = now if before is None else None
        self._reset.setText("Undo reset" if before is None else "Reset to defaults")
        self.changed.emit(target)

    def _show_rows(self) -> None:
        custom = self._fields["pair"].value() == OWN_FILES.value
        self._model.set_row_visible("target_path", custom)
        self._model.set_row_visible("draft_path", custom)
        wanted = self._fields["drafter"].value() in HEAD_DRAFTERS
        self._drafting.set_row_visible(
            "head_path", wanted or bool(self._fields["head_path"].value())
        )
        rule = self._fields["rule"].value()
        for name, its_rule in _RULE_FIELDS.items():
            self._drafting.set_row_visible(name, rule == its_rule)

    def _build(self) -> None:
        column = QVBoxLayout()
        column.setContentsMargins(8, 8, 12, 12)
        column.setSpacing(6)
        parts = (
            ("Model pair", model_rows()),
            ("Drafting", drafting_rows()),
            ("Sampling", sampling_rows()),
            ("Reply", reply_rows()),
            ("Precision and device", device_rows()),
            ("Appearance", appearance_rows()),
        )
        for title, rows in parts:
            form = Form(rows)
            if title == "Model pair":
                self._model = form
            if title == "Drafting":
                self._drafting = form
                form.add_note(_DRAFTING_NOTE, rows[-1].name)
            self._fields.update({row.name: row.field for row in rows})
            section = Section(title, form)
            self._sections.append(section)
            column.addWidget(section)
        foot = QHBoxLayout()
        foot.setContentsMargins(18, 0, 0, 0)
        foot.addWidget(self._reset)
        foot.addStretch(1)
        column.addLayout(foot)
        column.addStretch(1)
        for name, field in self._fields.items():
            field.edited.connect(self._on_edited)
            for widget in field.inputs:
                self._guard.guard(widget)
            if isinstance(field, PathField):
                role = name.removesuffix("_path")
                field.browseClicked.connect(lambda role=role: self.browseClicked.emit(role))
        self._reset.setToolTip("Puts back every setting but the models; the button takes it back.")
        self._reset.clicked.connect(self._on_reset)
        self._load.clicked.connect(self._on_load)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(self._make_scroll(column), 1)
        # Below, so that its coming moves no setting away under the pointer.
        outer.addWidget(self._make_banner())

    def _make_banner(self) -> QFrame:
        self._banner.setObjectName("banner")
        self._banner.setAutoFillBackground(True)
        self._banner.setBackgroundRole(QPalette.ColorRole.AlternateBase)
        self._banner_text.setWordWrap(True)
        self._load.setProperty("primary", True)
        self._load.setToolTip("Loads the chosen models; the chat stays.")
        row = QHBoxLayout(self._banner)
        row.setContentsMargins(12, 8, 12, 8)
        row.addWidget(self._banner_text, 1)
        row.addWidget(self._load)
        return self._banner

    def _make_scroll(self, column: QVBoxLayout) -> QScrollArea:
        content = QWidget()
        content.setLayout(column)
        return scrolled(content)

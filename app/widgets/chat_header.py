"""The line above the chat: which pair answers, how it drafts, and the folds of the side panels."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QWidget

from app.names import drafter_name
from app.records import InForce
from app.theme import Theme
from app.widgets.elided_label import ElidedLabel
from app.widgets.fonts import derived
from app.widgets.formats import head_sentence, rule_words
from app.widgets.icons import icon
from core.requests import DrafterKind


class ChatHeader(QFrame):
    """Shows what is in force; the buttons at its ends trigger the given fold actions."""

    def __init__(
        self, fold_left: QAction, fold_right: QAction, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("chatHeader")
        self._pair = ElidedLabel("", self)
        self._pair.setFont(derived(self.font(), 1.08, bold=True))
        self._how = ElidedLabel("", self)
        self._how.setProperty("muted", True)
        self._where = QLabel("", self)
        self._where.setProperty("muted", True)
        self._left = self._fold_button(fold_left)
        self._right = self._fold_button(fold_right)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 6, 8, 6)
        row.setSpacing(8)
        row.addWidget(self._left)
        row.addWidget(self._pair)
        row.addWidget(self._how, 1)
        row.addWidget(self._where)
        row.addWidget(self._right)
        self.set_in_force(InForce())

    def set_in_force(self, in_force: InForce) -> None:
        """Show what the running or next reply uses."""
        self._pair.setText(in_force.pair or "No model loaded")
        if not in_force.device:
            self._how.setText("")
        elif in_force.drafter == DrafterKind.OFF or in_force.off_reason:
            self._how.setText(drafter_name(DrafterKind.OFF))
        else:
            # The length last: what changes while a reply streams then moves nothing.
            parts = [drafter_name(in_force.drafter)]
            if in_force.lossy:
                parts.append(rule_words(in_force.rule, lossy=True))
            self._how.setText(", ".join([*parts, f"gamma {in_force.gamma}"]))
        self._how.set_more(head_sentence(in_force.head))
        self._where.setText(f"{in_force.device.upper()} {in_force.precision}".strip())

    def text(self) -> str:
        """Everything that is shown, on one line."""
        return " ".join(label.text() for label in (self._pair, self._how, self._where))

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self._left.setIcon(icon("panel-left", theme.muted))
        self._right.setIcon(icon("panel-right", theme.muted))
        self.setStyleSheet(
            f"#chatHeader {{ background: {theme.surface};"
            f" border-bottom: 1px solid {theme.border}; }}"
        )

    def _fold_button(self, action: QAction) -> QToolButton:
        button = QToolButton(self)
        button.setProperty("flat", True)
        button.setCheckable(True)
        button.setChecked(action.isChecked())
        button.setIconSize(QSize(18, 18))
        button.setToolTip(f"{action.text()} ({action.shortcut().toString()})")
        button.setAccessibleName(action.text())
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(action.trigger)
        action.toggled.connect(button.setChecked)
        return button

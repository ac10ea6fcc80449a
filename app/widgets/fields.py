"""The controls of the settings panel: each holds one value and says when the person changed it."""

import secrets
from typing import Any

from PySide6.QtCore import QRegularExpression, Qt, Signal
from PySide6.QtGui import QRegularExpressionValidator
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.theme import Theme
from app.widgets.choice_box import ChoiceBox
from app.widgets.fonts import derived
from app.widgets.icons import icon

SEED_LIMIT = 2**63 - 1


class Field(QWidget):
    """One value of the settings. ``edited`` is for the person's changes only.

    ``control`` is what a label belongs to; ``inputs`` are the widgets inside.
    """

    edited = Signal()

    def __init__(self, control: QWidget, *inputs: QWidget) -> None:
        super().__init__()
        self.control = control
        self.inputs = (control, *inputs)
        self.setFocusProxy(control)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def value(self) -> Any:
        """The value as it stands."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Show ``value`` without a signal."""
        raise NotImplementedError

    def set_help(self, text: str) -> None:
        """Explain the value in one plain sentence."""
        for widget in self.inputs:
            widget.setToolTip(text)
            widget.setAccessibleDescription(text)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``; most controls follow the palette by themselves."""


class ChoiceField(Field):
    """A ChoiceBox; below it why the chosen entry cannot be used, or with ``details`` its detail."""

    def __init__(self, *, details: bool = True) -> None:
        self._details = details
        self.box = ChoiceBox()
        super().__init__(self.box)
        self._detail = QLabel()
        self._detail.setWordWrap(True)
        self._detail.setFont(derived(self.font(), 0.88))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        layout.addWidget(self.box)
        layout.addWidget(self._detail)
        self.box.chosen.connect(self._on_chosen)
        self.refresh()

    def value(self) -> str:
        """The chosen value."""
        return self.box.value()

    def set_value(self, value: Any) -> None:
        """Choose ``value``."""
        self.box.set_value(str(value))
        self.refresh()

    def refresh(self) -> None:
        """Show the detail of what is chosen."""
        choice = self.box.choice()
        refused = choice is not None and not choice.enabled
        text = ""
        if choice is not None:
            text = choice.reason if refused else choice.detail if self._details else ""
        self._detail.setText(text)
        self._detail.setVisible(bool(text))
        self._detail.setProperty("warning", refused)
        self._detail.setProperty("muted", not refused)
        style = self._detail.style()
        style.unpolish(self._detail)
        style.polish(self._detail)

    def _on_chosen(self) -> None:
        self.refresh()
        self.edited.emit()


class SeedField(Field):
    """A whole number, or empty for a fresh seed with every reply."""

    def __init__(self) -> None:
        self._edit = QLineEdit()
        self._dice = QToolButton()
        super().__init__(self._edit, self._dice)
        self._edit.setPlaceholderText("random")
        self._edit.setClearButtonEnabled(True)
        digits = QRegularExpression("[0-9]{0,19}")
        self._edit.setValidator(QRegularExpressionValidator(digits, self._edit))
        self._dice.setAccessibleName("Draw a seed")
        self._dice.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(self._edit, 1)
        layout.addWidget(self._dice)
        self._edit.textEdited.connect(self.edited)
        self._edit.editingFinished.connect(self._limit)
        self._dice.clicked.connect(self._draw)

    def value(self) -> int | None:
        """The seed, None for a random one."""
        text = self._edit.text()
        return min(int(text), SEED_LIMIT) if text else None

    def set_value(self, value: Any) -> None:
        """Show a seed; None empties the field."""
        if value != self.value():
            self._edit.setText("" if value is None else str(value))

    def set_help(self, text: str) -> None:
        """Explain the seed and the button beside it."""
        super().set_help(text)
        self._dice.setToolTip("Draw a seed and keep it, so that replies can be repeated.")

    def set_theme(self, theme: Theme) -> None:
        """Colour the button's icon."""
        self._dice.setIcon(icon("dice", theme.muted))

    def _draw(self) -> None:
        self._edit.setText(str(secrets.randbelow(2**31)))
        self.edited.emit()

    def _limit(self) -> None:
        self.set_value(self.value())
        if self._edit.text() and int(self._edit.text()) > SEED_LIMIT:
            self._edit.setText(str(SEED_LIMIT))


class TextField(Field):
    """Text of several lines. Tab leaves the field."""

    def __init__(self, *, lines: int, placeholder: str) -> None:
        self.edit = QPlainTextEdit()
        super().__init__(self.edit)
        self.edit.setTabChangesFocus(True)
        self.edit.setPlaceholderText(placeholder)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.edit)
        self.edit.setFixedHeight(self.edit.fontMetrics().lineSpacing() * lines + 20)
        self.edit.textChanged.connect(self.edited)

    def value(self) -> Any:
        """The text."""
        return self.edit.toPlainText()

    def set_value(self, value: Any) -> None:
        """Show ``value``; the cursor stays where the text is the same."""
        if value != self.value():
            blocked = self.edit.blockSignals(True)
            self.edit.setPlainText(str(value))
            self.edit.blockSignals(blocked)


class StopField(TextField):
    """Stop strings, one a line; line breaks and tabs inside one are written \\n and \\t."""

    def __init__(self) -> None:
        super().__init__(lines=2, placeholder="one a line; \\n is a line break")

    def value(self) -> tuple[str, ...]:
        """The stop strings."""
        lines = self.edit.toPlainText().split("\n")
        return tuple(unescaped(line) for line in lines if line)

    def set_value(self, value: Any) -> None:
        """Show the stop strings of ``value``."""
        if tuple(value) != self.value():
            blocked = self.edit.blockSignals(True)
            self.edit.setPlainText("\n".join(escaped(each) for each in value))
            self.edit.blockSignals(blocked)


class CheckField(Field):
    """Yes or no."""

    def __init__(self, text: str) -> None:
        self._box = QCheckBox(text)
        super().__init__(self._box)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._box)
        self._box.clicked.connect(self.edited)

    def value(self) -> bool:
        """Whether the box is checked."""
        return self._box.isChecked()

    def set_value(self, value: Any) -> None:
        """Check the box or not."""
        self._box.setChecked(bool(value))


class PathField(Field):
    """A path that can be typed, pasted, or picked by the button."""

    browseClicked = Signal()

    def __init__(self, placeholder: str) -> None:
        self._edit = QLineEdit()
        self._browse = QPushButton("Browse…")
        super().__init__(self._edit, self._browse)
        self._edit.setPlaceholderText(placeholder)
        self._edit.setClearButtonEnabled(True)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._edit, 1)
        layout.addWidget(self._browse)
        self._edit.textEdited.connect(self.edited)
        self._browse.clicked.connect(self.browseClicked)

    def set_placeholder(self, text: str) -> None:
        """Say what stands in for an empty path."""
        self._edit.setPlaceholderText(text)

    def value(self) -> str:
        """The path, without blanks or quotes around it as pasting brings them."""
        return self._edit.text().strip().strip('"')

    def set_value(self, value: Any) -> None:
        """Show ``value``."""
        if value != self.value():
            self._edit.setText(str(value))


_ESCAPES = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def escaped(text: str) -> str:
    """Return ``text`` on one line; ``unescaped`` brings it back."""
    for raw, written in _ESCAPES:
        text = text.replace(raw, written)
    return text


def unescaped(text: str) -> str:
    """Return what ``text`` stands for; a backslash before any other character is itself."""
    meanings = {written: raw for raw, written in _ESCAPES}
    result = []
    place = 0
    while place < len(text):
        pair = text[place : place + 2]
        result.append(meanings.get(pair, text[place]))
        place += 2 if pair in meanings else 1
    return "".join(result)

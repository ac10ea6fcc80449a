"""The few dialogs of the window: choosing files, the keyboard, about."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QGridLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

_MODEL_FILES = "Models (*.gguf *.safetensors *.json);;All files (*)"
_PROMPT_FILES = "Prompts (*.txt *.jsonl);;All files (*)"


class Dialogs(Protocol):
    """What may be asked of the person in a dialog; tests answer for them."""

    def ask_save(self, title: str, name: str, kinds: str, /) -> Path | None: ...
    def ask_model(self, title: str, /) -> Path | None: ...
    def ask_prompts(self, title: str, /) -> list[Path]: ...
    def show_keys(self, keys: Sequence[tuple[str, str]], /) -> None: ...
    def show_text(self, title: str, text: str, /) -> None: ...


class WindowDialogs:
    """The dialogs over ``parent``."""

    def __init__(self, parent: QWidget) -> None:
        self._parent = parent

    def ask_save(self, title: str, name: str, kinds: str) -> Path | None:
        """Ask where to write; ``name`` is proposed. None when the person thinks better of it."""
        chosen, _ = QFileDialog.getSaveFileName(self._parent, title, name, kinds)
        return Path(chosen) if chosen else None

    def ask_model(self, title: str) -> Path | None:
        """Ask for a GGUF file, or any file in a folder of safetensors, which means the folder."""
        chosen, _ = QFileDialog.getOpenFileName(self._parent, title, "", _MODEL_FILES)
        if not chosen:
            return None
        path = Path(chosen)
        return path if path.suffix == ".gguf" else path.parent

    def ask_prompts(self, title: str) -> list[Path]:
        """Ask for files with prompts."""
        chosen, _ = QFileDialog.getOpenFileNames(self._parent, title, "", _PROMPT_FILES)
        return [Path(path) for path in chosen]

    def show_keys(self, keys: Sequence[tuple[str, str]]) -> None:
        """Show what each key does."""
        dialog = self._dialog("Keyboard shortcuts")
        grid = QGridLayout()
        grid.setHorizontalSpacing(24)
        for row, (text, key) in enumerate(keys):
            grid.addWidget(QLabel(text), row, 0)
            label = QLabel(key)
            label.setProperty("muted", True)
            grid.addWidget(label, row, 1, Qt.AlignmentFlag.AlignRight)
        self._open(dialog, grid)

    def show_text(self, title: str, text: str) -> None:
        """Show a few lines of text."""
        dialog = self._dialog(title)
        label = QLabel(text)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setWordWrap(True)
        label.setMinimumWidth(380)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        grid = QGridLayout()
        grid.addWidget(label, 0, 0)
        self._open(dialog, grid)

    def _dialog(self, title: str) -> QDialog:
        dialog = QDialog(self._parent)
        dialog.setWindowTitle(title)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return dialog

    def _open(self, dialog: QDialog, content: QGridLayout) -> None:
        # The style's own Close button has a black icon, which a dark window swallows.
        buttons = QDialogButtonBox()
        buttons.addButton("Close", QDialogButtonBox.ButtonRole.RejectRole)
        buttons.rejected.connect(dialog.reject)
        column = QVBoxLayout(dialog)
        column.setContentsMargins(20, 18, 20, 14)
        column.setSpacing(16)
        column.addLayout(content)
        column.addWidget(buttons)
        dialog.open()

"""The list of the person's files of prompts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.theme import Theme
from app.training_records import PromptFile
from app.widgets.elided_label import ElidedLabel
from app.widgets.fields import Field
from app.widgets.fonts import derived
from app.widgets.formats import count
from app.widgets.icons import icon


class PromptFilesField(Field):
    """Shows files with what they hold; the buttons only tell, so the owner sets the files anew."""

    addClicked = Signal()
    removeClicked = Signal(str)

    def __init__(self) -> None:
        self._add = QPushButton("Add files…")
        super().__init__(self._add)
        self._theme: Theme | None = None
        self._files: tuple[PromptFile, ...] = ()
        self._rows: list[_FileRow] = []
        self._list = QVBoxLayout()
        self._list.setSpacing(4)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addLayout(self._list)
        layout.addWidget(self._add, 0, Qt.AlignmentFlag.AlignLeft)
        self._add.clicked.connect(self.addClicked)

    def value(self) -> tuple[str, ...]:
        """The paths."""
        return tuple(file.path for file in self._files)

    def set_value(self, value: Any) -> None:
        """Show paths; what the files hold follows by ``set_files``."""
        if tuple(value) != self.value():
            self.set_files([PromptFile(path=path) for path in value])

    def set_files(self, files: Sequence[PromptFile]) -> None:
        """Show ``files``."""
        self._files = tuple(files)
        for row in self._rows:
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        self._rows = [_FileRow(file) for file in files]
        for row in self._rows:
            self._list.addWidget(row)
            row.remove.clicked.connect(lambda _=False, path=row.path: self.removeClicked.emit(path))
        if self._theme is not None:
            self.set_theme(self._theme)

    def set_theme(self, theme: Theme) -> None:
        """Colour the icons."""
        self._theme = theme
        for row in self._rows:
            row.remove.setIcon(icon("close", theme.muted))


class _FileRow(QWidget):
    def __init__(self, file: PromptFile) -> None:
        super().__init__()
        self.path = file.path
        name = Path(file.path).name
        title = ElidedLabel(name)
        words = QLabel(_words(file))
        words.setWordWrap(True)
        words.setTextFormat(Qt.TextFormat.PlainText)
        words.setFont(derived(self.font(), 0.88))
        words.setProperty("error" if file.problem else "muted", True)
        words.setVisible(bool(words.text()))
        self.remove = QToolButton()
        self.remove.setProperty("flat", True)
        self.remove.setStyleSheet("padding: 1px; min-height: 0;")
        self.remove.setToolTip(f"Remove {name} from the list; the file stays.")
        self.remove.setAccessibleName(f"Remove {name}")
        self.remove.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(title)
        texts.addWidget(words)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addLayout(texts, 1)
        row.addWidget(self.remove, 0, Qt.AlignmentFlag.AlignTop)


def _words(file: PromptFile) -> str:
    if file.problem:
        return file.problem
    if file.prompts is None:
        return "Large; it is checked when the training begins."
    return f"{count(file.prompts)} prompt{'' if file.prompts == 1 else 's'}"

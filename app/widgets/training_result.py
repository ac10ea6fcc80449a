"""What a finished training made: how good the head is, where it is, and a button to load it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.theme import Theme
from app.training_records import TrainedHead
from app.widgets.fonts import derived
from app.widgets.formats import span
from app.widgets.training_plots import position_bars, rate_bars

_LITTLE = 1.3
"""A mean acceptance length below which a head hardly pays."""


class TrainingResult(QFrame):
    """A card about a trained head; hidden while there is none."""

    shown = Signal(object)
    """The TrainedHead that is shown now."""
    loadClicked = Signal()
    showClicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("trainingResult")
        self._title = QLabel("The head is ready")
        self._words = QLabel()
        self._title.setProperty("heading", True)
        self._title.setWordWrap(True)
        self._words.setWordWrap(True)
        self._present = QLabel()
        self._present.setWordWrap(True)
        self._present.setTextFormat(Qt.TextFormat.PlainText)
        self._length: float | None = None
        self._path = QLineEdit()
        self._path.setReadOnly(True)
        self._path.setAccessibleName("Folder of the head")
        self.load = QPushButton("Load this head")
        self.load.setProperty("primary", True)
        self.load.setToolTip("Loads the pair again, with this head to draft.")
        self._show = QPushButton("Show the folder")
        self.bars = position_bars()
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.load)
        buttons.addWidget(self._show)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        column.setSpacing(8)
        column.addWidget(self._title)
        column.addWidget(self._words)
        column.addWidget(self._present)
        column.addWidget(self.bars)
        column.addWidget(self._path)
        column.addLayout(buttons)
        self.load.clicked.connect(self.loadClicked)
        self._show.clicked.connect(self.showClicked)
        self.hide()

    def show_head(self, head: TrainedHead) -> None:
        """Show ``head``."""
        self._title.setText(f"{head.title} is ready")
        self._words.setText(_words(head))
        self.bars.set_bars(rate_bars(head.acceptance))
        self.bars.setVisible(bool(head.acceptance))
        self._path.setText(head.path)
        self._path.setCursorPosition(0)
        self._path.setToolTip(head.path)
        self._length = head.length
        self.set_present("")
        self.show()
        self.shown.emit(head)

    def set_present(self, name: str, length: float = 0.0) -> None:
        """Compare with the head that the model has without this one; without a name say nothing.

        ``length`` is its mean acceptance length, 0 where that was not measured.
        """
        self._present.setText(_comparison(name, length, self._length) if name else "")
        self._present.setVisible(bool(name))
        shorter = (self._length or 0.0) < length
        self._present.setProperty("warning", shorter)
        self.load.setProperty("primary", not shorter)
        for widget in (self._present, self.load):
            widget.style().unpolish(widget)
            widget.style().polish(widget)

    def comparison(self) -> str:
        """What is said of the head that the model has without this one."""
        return self._present.text()

    def words(self) -> str:
        """What is said about the head."""
        return self._words.text()

    def path(self) -> str:
        """Where the head is."""
        return self._path.text()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self._title.setFont(derived(self.font(), 1.15, bold=True))
        self.bars.set_theme(theme)
        edge = theme.origins["accepted"].underline_colour
        self.setStyleSheet(
            f"#trainingResult {{ background: {theme.surface}; border: 1px solid {theme.border};"
            f" border-left: 3px solid {edge}; border-radius: 6px; }}"
        )


def _comparison(name: str, before: float, now: float | None) -> str:
    words = f"Without it this model drafts with {name}"
    if not before or now is None:
        return f"{words}. The two cannot be compared: one was not measured."
    words += f", which brings {before:.2f} tokens a round; this one brings {now:.2f}."
    return words if now >= before else f"{words} Drafts are worse with this one."


def _words(head: TrainedHead) -> str:
    took = f"It took {span(head.seconds)}." if head.seconds else ""
    if head.length is None:
        return took
    most = len(head.acceptance) + 1
    words = (
        f"On held-out text one pass of the model brings {head.length:.2f} tokens on average with "
        f"this head, of at most {most}. {took}"
    )
    if head.length < _LITTLE:
        words += " That is little: more text, which takes a larger budget, helps most."
    return words.strip()

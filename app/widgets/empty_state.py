"""What an empty chat shows: what this is, and four prompts to begin with."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.theme import Theme
from app.widgets.colours import colour_text
from app.widgets.fonts import derived

_PARAGRAPH = (
    "A paceline is a line of riders who take turns at the front. The rider ahead cuts the "
    "wind, and those behind save their strength for when it is their turn."
)
PROMPTS = (
    (
        "Repeat a paragraph",
        "Long runs of accepted drafts",
        f"Repeat this paragraph three times: {_PARAGRAPH}",
    ),
    (
        "Write some code",
        "Code is easy to draft",
        "Write a Python function that checks whether a string is a palindrome, with a docstring "
        "and tests.",
    ),
    (
        "Explain something",
        "Ordinary prose",
        "Explain hash tables to a ten-year-old in three short paragraphs.",
    ),
    (
        "Make something up",
        "Hard to draft: little is gained",
        "Write a short poem about the last bicycle on earth.",
    ),
)
"""(title, what to expect, prompt)"""
_TWO_COLUMNS = 460


class EmptyState(QWidget):
    """A title, the product in one line, and buttons that send a prompt."""

    promptChosen = Signal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._title = QLabel("Paceline", self)
        self._line = QLabel(
            "Chat with a local model while a small drafter runs ahead. Every word shows "
            "whether it was drafted or decided by the target.",
            self,
        )
        self._buttons: list[QPushButton] = []
        self._hints: list[QLabel] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for label in (self._title, self._line):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            label.setWordWrap(True)
            column.addWidget(label)
        column.addSpacing(16)
        self._grid = QGridLayout()
        self._grid.setSpacing(10)
        column.addLayout(self._grid)
        for title, hint, prompt in PROMPTS:
            self._add_prompt(title, hint, prompt)
        self._arrange(2)

    def _add_prompt(self, title: str, hint: str, prompt: str) -> None:
        button = QPushButton(self)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setToolTip(f"<p>{prompt}</p>")
        button.setAccessibleName(f"{title}. {hint}")
        inside = QVBoxLayout(button)
        inside.setContentsMargins(14, 10, 14, 10)
        inside.setSpacing(2)
        head, tail = QLabel(title, button), QLabel(hint, button)
        for label in (head, tail):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            inside.addWidget(label)
        button.clicked.connect(lambda: self.promptChosen.emit(prompt))
        self._buttons.append(button)
        self._hints.append(tail)

    @property
    def buttons(self) -> list[QPushButton]:
        """The prompts, in reading order."""
        return self._buttons

    def _arrange(self, columns: int) -> None:
        for number, button in enumerate(self._buttons):
            self._grid.addWidget(button, number // columns, number % columns)
        for column in range(2):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)

    def set_theme(self, theme: Theme) -> None:
        """Change the colours and follow the parent's font."""
        font = self.font()
        self._title.setFont(derived(font, 1.9, bold=True))
        self._line.setFont(derived(font, 1.05))
        colour_text(self._title, theme.text)
        colour_text(self._line, theme.muted)
        for button, hint in zip(self._buttons, self._hints, strict=True):
            for label in button.findChildren(QLabel):
                label.setFont(derived(font, 1.0, bold=label is not hint))
                colour_text(label, theme.text)
            hint.setFont(derived(font, 0.92))
            colour_text(hint, theme.muted)

    def lay_out(self, width: int, room: int) -> int:
        """Choose what fits into ``width`` and ``room`` in pixels and return the height it takes.

        One or two columns; where that is too high, two without the hints.
        """
        height = self._height(width, 2 if width >= _TWO_COLUMNS else 1, hints=True)
        return height if height <= room else self._height(width, 2, hints=False)

    def _height(self, width: int, columns: int, *, hints: bool) -> int:
        self._arrange(columns)
        for button, hint in zip(self._buttons, self._hints, strict=True):
            hint.setVisible(hints)
            inside = button.layout()
            if inside is not None:
                inside.activate()
                button.setMinimumHeight(inside.sizeHint().height())
        layout = self.layout()
        return layout.heightForWidth(width) if layout is not None else 0

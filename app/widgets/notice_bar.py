"""A line that appears where something needs the person's decision."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QPushButton,
    QWidget,
)

from app.theme import LIGHT, Theme
from app.widgets.margins import MARGIN, side_margin

_READABLE = 320
"""Where the text would have less room in pixels beside the buttons, they go under it."""


class NoticeBar(QWidget):
    """One sentence, the actions that go with it, and a progress bar while one runs.

    ``actionChosen(key)`` names the button that was pressed. Hidden until something is shown.
    """

    actionChosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._box = QFrame(self)
        self._box.setObjectName("noticeBar")
        self._error = False
        self._theme = LIGHT
        self._label = QLabel(self._box)
        self._label.setWordWrap(True)
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._progress = QProgressBar(self._box)
        self._progress.setFixedSize(140, 6)
        self._progress.setTextVisible(False)
        self._progress.hide()
        self._buttons: list[QPushButton] = []
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self._box)
        self._row.setContentsMargins(12, 8, 8, 8)
        self._row.setSpacing(8)
        self._answers = QHBoxLayout()
        self._answers.setSpacing(8)
        self._answers.addWidget(self._progress)
        self._row.addWidget(self._label, 1)
        self._row.addLayout(self._answers)
        self._air = QHBoxLayout(self)
        self._air.setContentsMargins(MARGIN, 8, MARGIN, 4)
        self._air.addWidget(self._box)
        self.hide()

    def show_notice(
        self,
        text: str,
        actions: Sequence[tuple[str, str]] = (),
        *,
        error: bool = False,
        primary: bool = False,
    ) -> None:
        """Show ``text`` with one button for each (key, label) of ``actions``.

        ``error`` marks what went wrong, ``primary`` the first button as what is expected next.
        """
        self._label.setText(text)
        self._error = error
        self._progress.hide()
        for button in self._buttons:
            self._answers.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = [
            self._button(key, label, primary=primary and number == 0)
            for number, (key, label) in enumerate(actions)
        ]
        self.set_theme(self._theme)
        self._arrange()
        self.show()

    def set_text(self, text: str) -> None:
        """Change the sentence and keep the buttons."""
        self._label.setText(text)

    def set_progress(self, fraction: float | None) -> None:
        """Show how far the running action is; None while that is unknown."""
        self._progress.setRange(0, 0 if fraction is None else 1000)
        if fraction is not None:
            self._progress.setValue(round(1000 * fraction))
        self._progress.show()
        self._arrange()

    def dismiss(self) -> None:
        """Hide the bar."""
        self.hide()

    def text(self) -> str:
        """The sentence that is shown; empty while hidden."""
        return "" if self.isHidden() else self._label.text()

    def actions_shown(self) -> list[str]:
        """The keys of the buttons that are shown."""
        return [] if self.isHidden() else [button.objectName() for button in self._buttons]

    def press(self, key: str) -> None:
        """Press the button of that key, as a click would."""
        next(button for button in self._buttons if button.objectName() == key).click()

    def set_theme(self, theme: Theme) -> None:
        """Paint the bar in ``theme``."""
        self._theme = theme
        edge = theme.error if self._error else theme.accent
        self._box.setStyleSheet(
            f"#noticeBar {{ background: {theme.raised}; border: 1px solid {theme.border};"
            f" border-left: 3px solid {edge}; border-radius: 6px; }}"
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep to the column of the chat, and put the buttons where they leave room to read."""
        super().resizeEvent(event)
        side = side_margin(event.size().width())
        self._air.setContentsMargins(side, 8, side, 4)
        self._arrange()

    def _arrange(self) -> None:
        beside = self.width() - 2 * side_margin(self.width()) - self._answers.sizeHint().width()
        narrow = beside < _READABLE and self._answers.sizeHint().width() > 0
        direction = QBoxLayout.Direction
        self._row.setDirection(direction.TopToBottom if narrow else direction.LeftToRight)
        alignment = Qt.AlignmentFlag.AlignRight if narrow else Qt.AlignmentFlag.AlignVCenter
        self._row.setAlignment(self._answers, alignment)

    def _button(self, key: str, label: str, *, primary: bool) -> QPushButton:
        button = QPushButton(label, self._box)
        button.setProperty("primary", primary)
        button.setObjectName(key)
        button.clicked.connect(lambda: self.actionChosen.emit(key))
        self._answers.addWidget(button)
        return button

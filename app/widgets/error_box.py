"""A box that says what went wrong and what to do, where it happened."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.theme import LIGHT, Theme
from app.widgets.colours import colour_text

_PAD = 12


class ErrorBox(QWidget):
    """A sentence and, under it, an action; hidden while there is nothing to say."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._sentence = self._make_label()
        self._action = self._make_label()
        self.hide()

    def _make_label(self) -> QLabel:
        label = QLabel(self)
        label.setWordWrap(True)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return label

    def show_error(self, sentence: str, action: str) -> None:
        """Say ``sentence`` and ``action``; both empty hides the box."""
        self._sentence.setText(sentence)
        self._action.setText(action)
        self._action.setVisible(bool(action))
        self.setAccessibleName(f"Error: {sentence} {action}".strip())
        self.setVisible(bool(sentence or action))

    @property
    def words(self) -> str:
        """What the box says."""
        return f"{self._sentence.text()} {self._action.text()}".strip()

    def set_theme(self, theme: Theme) -> None:
        """Change the colours."""
        self._theme = theme
        colour_text(self._sentence, theme.error)
        colour_text(self._action, theme.text)
        self.update()

    def lay_out(self, width: int) -> int:
        """Place both lines for ``width`` and return the height they take."""
        y = _PAD - 2
        for label in (self._sentence, self._action):
            if label.text():
                height = label.heightForWidth(width - 2 * _PAD - 4)
                label.setGeometry(_PAD + 4, y, width - 2 * _PAD - 4, height)
                y += height + 4
        return y + _PAD - 6

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the box with a bar at the left."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(self._theme.border))
        painter.setBrush(QColor(self._theme.surface))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 7.0, 7.0)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.error))
        painter.drawRoundedRect(QRectF(0, 0, 4, self.height()), 2.0, 2.0)

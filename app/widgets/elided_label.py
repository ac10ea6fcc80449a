"""A label of one line that shortens its text to the room it has."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QWidget


class ElidedLabel(QLabel):
    """Shows one line, cut with "…" where room is short; the whole text is then the tooltip.

    What was set with :meth:`set_more` stands in the tooltip at all times.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._more = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setText(text)

    def setText(self, text: str) -> None:
        """Set the text; line breaks become spaces."""
        line = " ".join(text.split())
        if line != self.text():
            super().setText(line)
            self._update_tooltip()

    def set_more(self, more: str) -> None:
        """Tell more in the tooltip."""
        self._more = more
        self._update_tooltip()

    def minimumSizeHint(self) -> QSize:
        """Shrinks to a few characters."""
        return QSize(self.fontMetrics().averageCharWidth() * 4, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Offer the tooltip only where text is cut."""
        super().resizeEvent(event)
        self._update_tooltip()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text that fits."""
        painter = QPainter(self)
        text = self.fontMetrics().elidedText(
            self.text(), Qt.TextElideMode.ElideRight, self.contentsRect().width()
        )
        self.style().drawItemText(
            painter,
            self.contentsRect(),
            int(QStyle.visualAlignment(self.layoutDirection(), self.alignment())),
            self.palette(),
            self.isEnabled(),
            text,
            self.foregroundRole(),
        )

    def _update_tooltip(self) -> None:
        cut = self.fontMetrics().horizontalAdvance(self.text()) > self.contentsRect().width()
        words = "\n".join(part for part in (self.text() if cut else "", self._more) if part)
        if words != self.toolTip():
            self.setToolTip(words)

"""A label of changing numbers whose place stays."""

import re

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QLabel, QWidget

_DIGIT = re.compile(r"\d")


class SteadyLabel(QLabel):
    """One line as large as its text with the widest digits, and never smaller than ``widest``.

    Another number of as many digits thus lays nothing out anew, neither here nor around it.
    """

    def __init__(self, widest: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._widest = widest
        self._pattern = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self._take_place()

    def setText(self, text: str) -> None:
        """Show ``text``; the place changes only with what is not a digit, or their number."""
        if text == self.text():
            return
        super().setText(text)
        pattern = _DIGIT.sub("8", text)
        if pattern != self._pattern:
            self._pattern = pattern
            self._take_place()

    def changeEvent(self, event: QEvent) -> None:
        """Measure again in another font or style."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._take_place()

    def _take_place(self) -> None:
        self.setMinimumSize(0, 0)  # Qt's hint is never below it
        hint = super().sizeHint()
        metrics = self.fontMetrics()
        spare = hint.width() - metrics.horizontalAdvance(self.text()) if self.text() else 0
        wide = max(metrics.horizontalAdvance(text) for text in (self._pattern, self._widest))
        # Qt tells nobody of a new text where the size cannot change.
        self.setFixedSize(wide + max(spare, 2), hint.height())

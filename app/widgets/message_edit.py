"""A text field that knows Enter that sends from Enter that confirms a composition."""

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

MAX_LINES = 8
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class MessageEdit(QPlainTextEdit):
    """A plain text field, one to eight lines high, that knows Enter from a new line."""

    entered = Signal()
    escaped = Signal()
    focusMoved = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._composing = False
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setPlaceholderText("Message")
        self.setAccessibleName("Message")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(2.0)
        self.textChanged.connect(self.fit)

    def fit(self) -> None:
        """Take the height of the text, at most eight lines."""
        # A QPlainTextDocumentLayout measures its height in lines.
        lines = max(1, min(round(self.document().size().height()), MAX_LINES))
        height = lines * self.fontMetrics().lineSpacing() + 10
        policy = Qt.ScrollBarPolicy
        over = self.document().size().height() > MAX_LINES
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAsNeeded if over else policy.ScrollBarAlwaysOff
        )
        if height != self.height():
            self.setFixedHeight(height)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter sends, Shift+Enter breaks the line, Escape stops; not while composing."""
        if event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
            return
        if event.key() in _ENTER:
            if self._composing:
                event.accept()
                return
            if not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self.entered.emit()
                return
            self.textCursor().insertBlock()
            self.ensureCursorVisible()
            return
        super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Remember whether an input method is composing."""
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Composition ends with the focus."""
        self._composing = False
        super().focusOutEvent(event)
        self.focusMoved.emit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Let the frame show the focus."""
        super().focusInEvent(event)
        self.focusMoved.emit()

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste text only."""
        if source.hasText():
            self.insertPlainText(source.text())
            self.ensureCursorVisible()

    def changeEvent(self, event: QEvent) -> None:
        """Another font has another height."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrapping changes the height."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()

"""Where the person writes: grows with the text, Enter sends, the button stops a reply."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.theme import LIGHT, Theme
from app.widgets.colours import colour_text
from app.widgets.fonts import derived
from app.widgets.icons import icon
from app.widgets.margins import MARGIN, side_margin
from app.widgets.message_edit import MessageEdit
from app.widgets.steady_label import SteadyLabel

_NEARLY = 0.85
_TOO_LONG = "Longer than the model can read. Enter shows what can be done."


class Composer(QWidget):
    """The text field with its button and a line of words under it.

    ``submitted`` carries the text, which stays until :meth:`clear`, so that a refused message
    is not lost.
    """

    submitted = Signal(str)
    stopClicked = Signal()
    textEdited = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._busy = False
        self._reason = ""
        self._can_send = True
        self._over = False
        self._too_long = False
        self._box = _Box(self)
        self._edit = MessageEdit(self._box)
        self._button = QPushButton(self._box)
        self._button.setCursor(Qt.CursorShape.PointingHandCursor)
        self._hint = QLabel(self)
        self._hint.setTextFormat(Qt.TextFormat.PlainText)
        self._hint.setWordWrap(True)
        self._count = SteadyLabel(parent=self)
        inside = QHBoxLayout(self._box)
        inside.setContentsMargins(12, 8, 8, 8)
        inside.setSpacing(8)
        inside.addWidget(self._edit, 1)
        inside.addWidget(self._button, 0, Qt.AlignmentFlag.AlignBottom)
        under = QHBoxLayout()
        under.setContentsMargins(4, 0, 4, 0)
        under.addWidget(self._hint, 1)
        under.addWidget(self._count)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(MARGIN, 6, MARGIN, 8)
        self._column.setSpacing(4)
        self._column.addWidget(self._box)
        self._column.addLayout(under)
        self.setFocusProxy(self._edit)
        self._edit.entered.connect(self._enter)
        self._edit.escaped.connect(self._escape)
        self._edit.focusMoved.connect(self._box.update)
        self._edit.textChanged.connect(self._edited)
        self._button.clicked.connect(self._click)
        self.set_theme(self._theme)

    @property
    def edit(self) -> MessageEdit:
        """The text field."""
        return self._edit

    @property
    def button(self) -> QPushButton:
        """Send, or Stop while a reply is written."""
        return self._button

    @property
    def hint(self) -> str:
        """The words under the field."""
        return self._hint.text()

    @property
    def count(self) -> str:
        """The words of the token counter."""
        return self._count.text()

    def text(self) -> str:
        """Return what is written."""
        return self._edit.toPlainText()

    def set_text(self, text: str) -> None:
        """Replace what is written."""
        self._edit.setPlainText(text)

    def set_busy(self, busy: bool) -> None:
        """Turn Send into Stop while a reply is written; writing goes on."""
        self._busy = busy
        self._dress()

    def set_enabled_to_send(self, enabled: bool, reason: str) -> None:
        """Allow sending, or refuse it and say why under the field."""
        self._can_send, self._reason = enabled, reason
        self._dress()

    def set_token_count(self, used: int, limit: int) -> None:
        """Show how much of the context the next message would use; 0 of 0 shows nothing."""
        self._over = bool(limit) and used > limit
        if limit <= 0:
            words, colour = "", self._theme.muted
        elif self._over:
            words = f"{used:,} / {limit:,} tokens: {used - limit:,} too many"
            colour = self._theme.error
        elif used > _NEARLY * limit:
            words, colour = f"{used:,} / {limit:,} tokens: nearly full", self._theme.warning
        else:
            words, colour = f"{used:,} / {limit:,} tokens", self._theme.muted
        self._count_values = (used, limit)
        self._count.setText(words)
        colour_text(self._count, colour)

    def set_too_long(self, too_long: bool) -> None:
        """Say that the chat with this message is longer than the model can read.

        The button is then off; Enter still tells ``submitted``, so that the way out is shown.
        """
        if too_long != self._too_long:
            self._too_long = too_long
            self._dress()

    def clear(self) -> None:
        """Remove what is written."""
        self._edit.clear()

    def focus(self) -> None:
        """Go to the text field."""
        self._edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_theme(self, theme: Theme) -> None:
        """Change the colours."""
        self._theme = theme
        self._box.theme = theme
        palette = self._edit.palette()
        role = QPalette.ColorRole
        palette.setColor(role.Base, Qt.GlobalColor.transparent)
        palette.setColor(role.Text, QColor(theme.text))
        palette.setColor(role.PlaceholderText, QColor(theme.muted))
        palette.setColor(role.Highlight, QColor(theme.accent))
        palette.setColor(role.HighlightedText, QColor(theme.accent_text))
        self._edit.setPalette(palette)
        self._edit.setStyleSheet(
            "QPlainTextEdit, QPlainTextEdit:focus { border: none; padding: 0; min-height: 0;"
            f" background: transparent; color: {theme.text}; }}"
        )
        self._dress()
        self.set_token_count(*self._count_values)

    _count_values = (0, 0)

    def _dress(self) -> None:
        theme = self._theme
        small = derived(self.font(), 0.88)
        self._hint.setFont(small)
        self._count.setFont(small)
        words = "Stop" if self._busy else "Send"
        self._button.setText(words)
        self._button.setAccessibleName(words)
        self._button.setToolTip("Stop (Esc)" if self._busy else "Send (Enter)")
        primary = not self._busy
        offered = self._sendable() and not self._too_long
        self._button.setProperty("primary", primary)
        colour = theme.accent_text if primary and offered else theme.text
        colour = colour if self._busy or offered else theme.muted
        self._button.setIcon(icon("stop" if self._busy else "arrow-up", colour))
        self._button.setEnabled(self._busy or offered)
        self._button.style().unpolish(self._button)
        self._button.style().polish(self._button)
        if self._reason and not self._can_send:
            self._hint.setText(self._reason)
            colour_text(self._hint, theme.warning if self.text().strip() else theme.muted)
        elif self._too_long and not self._busy:
            self._hint.setText(_TOO_LONG)
            colour_text(self._hint, theme.warning)
        else:
            busy, free = "Esc stops the reply", "Enter sends, Shift+Enter starts a new line"
            self._hint.setText(busy if self._busy else free)
            colour_text(self._hint, theme.muted)
        self._box.update()

    def _sendable(self) -> bool:
        return self._can_send and bool(self.text().strip())

    def _edited(self) -> None:
        self._dress()
        self.textEdited.emit(self.text())

    def _enter(self) -> None:
        if not self._busy and self._sendable():
            self.submitted.emit(self.text())

    def _escape(self) -> None:
        if self._busy:
            self.stopClicked.emit()

    def _click(self) -> None:
        if self._busy:
            self.stopClicked.emit()
        else:
            self._enter()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape stops also while the button has the focus."""
        if event.key() == Qt.Key.Key_Escape and self._busy:
            self.stopClicked.emit()
            return
        super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Stay as wide as the text of the chat."""
        super().resizeEvent(event)
        side = side_margin(event.size().width())
        self._column.setContentsMargins(side, 6, side, 8)

    def minimumSizeHint(self) -> QSize:
        """Narrow windows are fine."""
        return QSize(280, super().minimumSizeHint().height())


class _Box(QWidget):
    """The rounded frame around the field; its edge shows the focus."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme = LIGHT

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        focused = any(child.hasFocus() for child in self.findChildren(QPlainTextEdit))
        edge = QColor(self.theme.accent if focused else self.theme.outline)
        painter.setPen(QPen(edge, 1.6 if focused else 1.0))
        painter.setBrush(QColor(self.theme.surface))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 11.0, 11.0)

"""One message of the transcript: who speaks, the text, how it ended and what can be done."""

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QEnterEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.records import Message, MessageState
from app.rendering.look import Look
from app.rendering.tokens import TokenInfo
from app.widgets.colours import colour_text
from app.widgets.error_box import ErrorBox
from app.widgets.fonts import derived
from app.widgets.message_body import MessageBody
from app.widgets.message_footer import MessageFooter
from app.widgets.prefill_line import PrefillLine
from core.events import Token

BUBBLE_PAD = 14
_ROLES = {"user": "You", "assistant": "Assistant", "system": "System"}
_LABEL_GAP = 2
_CHARACTER_WIDTH = 0.5
_LINE_HEIGHT = 1.65


class MessageWidget(QWidget):
    """Shows a message; its text is rendered when :meth:`materialise` is first called."""

    regenerateClicked = Signal(int)
    versionClicked = Signal(int, int)
    copyClicked = Signal(int)
    linkActivated = Signal(str)
    heightChanged = Signal()

    def __init__(self, message: Message, look: Look, parent: QWidget) -> None:
        super().__init__(parent)
        self._message = message
        self._look = look
        self._user = message.role == "user"
        # Growing at its end, as every part of the transcript, paints only what is new.
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents, not self._user)
        self._rendered = False
        self._label = QLabel(_ROLES.get(message.role, message.role.capitalize()), self)
        opens = bool(message.settings.get("opens_thinking"))
        self._body = MessageBody(look, markdown=not self._user, opens_thinking=opens)
        self._body.setParent(self)
        self._body.linkActivated.connect(self.linkActivated)
        self._body.heightChanged.connect(self.heightChanged)
        self._prefill = PrefillLine(self)
        self._prefill.hide()
        self._error = ErrorBox(self)
        self._footer = MessageFooter(self)
        self._footer.copyClicked.connect(lambda: self.copyClicked.emit(self._message.id))
        self._footer.regenerateClicked.connect(
            lambda: self.regenerateClicked.emit(self._message.id)
        )
        self._footer.versionClicked.connect(
            lambda offset: self.versionClicked.emit(self._message.id, offset)
        )
        self.setAccessibleName(self._label.text())
        self._dress()
        self.set_message(message)

    @property
    def message(self) -> Message:
        """The message as last set."""
        return self._message

    @property
    def body(self) -> MessageBody:
        """The text."""
        return self._body

    @property
    def footer(self) -> MessageFooter:
        """The line under the text."""
        return self._footer

    def focus_chain(self) -> list[QWidget]:
        """Return what takes the focus, in reading order."""
        return [*self._body.focus_chain(), *self._footer.focus_chain()]

    @property
    def prefill_line(self) -> PrefillLine:
        """How much of the prompt has been read."""
        return self._prefill

    @property
    def error_box(self) -> ErrorBox:
        """Why the reply broke off."""
        return self._error

    @property
    def rendered(self) -> bool:
        """Whether the text has been rendered to its end."""
        return self._rendered and not self._body.unfinished

    @property
    def streaming(self) -> bool:
        """Whether more tokens may come."""
        return self._message.state == MessageState.STREAMING

    def set_message(self, message: Message) -> None:
        """Take a stored message; the text is rendered anew only if it is another one."""
        streamed = message.text == self._body.text
        same_tokens = len(message.spans) == len(self._body.tokens) or not message.spans
        self._message = message
        if self._rendered:
            if not (streamed and same_tokens):
                self._take_source()
            self._body.refresh(final=not self.streaming)
        if not self.streaming:
            self._body.set_caret(None)
            self._prefill.hide()
        self._error.show_error(message.error, "")
        self._footer.show_message(message)

    def _take_source(self) -> None:
        tokens = [
            (span.length, TokenInfo(span.origin, span.target_prob, span.draft_prob))
            for span in self._message.spans
        ]
        self._body.set_source(self._message.text, tokens)

    def append_tokens(self, tokens: list[Token]) -> None:
        """Add streamed tokens; shown by :meth:`refresh`."""
        self.materialise()
        for token in tokens:
            info = TokenInfo(token.origin, token.target_prob, token.draft_prob)
            self._body.append(token.text, info)

    def refresh(self) -> None:
        """Show what was appended."""
        self._body.refresh(final=not self.streaming)
        if self._body.text:
            self._prefill.hide()

    def materialise(self) -> None:
        """Render the text, or the next part of a long one, if that has not been done."""
        if not self._rendered:
            self._rendered = True
            self._take_source()
            self.refresh()
        elif self._body.unfinished:
            self.refresh()

    def set_prefill(self, done: int, total: int) -> None:
        """Show how much of the prompt has been read."""
        self._prefill.set_progress(done, total)
        self.materialise()
        self._prefill.setVisible(not self._body.text)

    def set_caret(self, opacity: float | None) -> None:
        """Show the caret of a reply that is being written."""
        self._body.set_caret(opacity)

    def wear(self, look: Look, *, colouring: bool) -> None:
        """Take on a theme, a font and whether origins show."""
        self._body.set_colouring(colouring)
        if look is not self._look:
            self._look = look
            self._body.set_look(look)
            self._dress()

    def _dress(self) -> None:
        look = self._look
        self.setFont(look.font)
        self._label.setFont(derived(look.font, 0.9, bold=True))
        colour_text(self._label, look.theme.muted)
        self._prefill.set_theme(look.theme)
        self._error.set_theme(look.theme)
        self._footer.set_theme(look.theme)
        self.update()

    def estimate(self, width: int) -> int:
        """Guess the height before the text has been rendered."""
        points = self._look.font.pointSizeF() if self._look.font.pointSizeF() > 0 else 10.0
        pixels = points * self.logicalDpiY() / 72.0
        per_line = max(width / (pixels * _CHARACTER_WIDTH), 10.0)
        text = self._message.text
        lines = text.count("\n") + len(text) / per_line + 1
        return int(lines * pixels * _LINE_HEIGHT) + 60

    def lay_out(self, width: int) -> int:
        """Place everything for ``width`` and return the height it takes."""
        label = self._label.sizeHint()
        pad = BUBBLE_PAD if self._user else 0
        self._label.setGeometry(0, 0, min(label.width(), width), label.height())
        y = label.height() + _LABEL_GAP
        if self._user:
            size = self._footer.sizeHint()
            wide = max(width - label.width() - 12, 40)
            top = (label.height() - size.height()) // 2
            self._footer.setGeometry(width - wide, top, wide, size.height())
        height = self._body.lay_out(width - 2 * pad)
        top = y + (2 if self._user else 0)
        self._body.setGeometry(pad, top, width - 2 * pad, height)
        y = top + height + (2 if self._user else 0)
        if not self._prefill.isHidden():
            self._prefill.setGeometry(0, y, width, self._prefill.sizeHint().height())
            y += self._prefill.sizeHint().height()
        if not self._error.isHidden():
            box = self._error.lay_out(width)
            self._error.setGeometry(0, y + 4, width, box)
            y += box + 8
        if not self._user:
            footer = self._footer.lay_out(width)
            self._footer.setGeometry(0, y, width, footer)
            y += footer
        return y

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the soft background of what the person wrote."""
        if not self._user:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._look.theme.user_background))
        top = self._label.height() + _LABEL_GAP
        painter.drawRoundedRect(QRectF(0, top, self.width(), self.height() - top), 10.0, 10.0)

    def enterEvent(self, event: QEnterEvent) -> None:
        """Reveal what can be done."""
        self._footer.reveal(True)
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        """Hide it again."""
        self._footer.reveal(False)
        super().leaveEvent(event)

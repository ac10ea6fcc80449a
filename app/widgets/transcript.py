"""The chat: messages from top to bottom, the newest followed while it is written."""

import time
from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.records import Message
from app.rendering.look import Look
from app.theme import LIGHT, Theme
from app.widgets.column import Column, Wear
from app.widgets.empty_state import EmptyState
from app.widgets.error_box import ErrorBox
from app.widgets.jump_button import JumpButton
from app.widgets.message import MessageWidget
from app.widgets.prefill_line import PrefillLine
from app.widgets.pulse import Pulse
from core.events import Token

FRAME_MS = 33
SLOW_FRAME_MS = 150
_FRAME_SHARE = 0.03
"""Of the thread's time; where painting costs more, frames come more slowly, as the processor that
paints may be the one that decodes."""
_NEARLY_MS = 25
"""A frame that is due so soon is painted at once: what woke the thread paints something anyway."""
_IDLE_MS = 15
_AT_END = 8


class TranscriptView(QScrollArea):
    """Shows one conversation. Signals carry message ids; links are http, https or mailto.

    Tokens are shown when they come, at most every 33 to 150 ms, by what that costs; a reader who
    scrolled away from the end is left alone. ``empty_state`` shows while there is no message,
    ``error_box`` what went wrong at the end, ``jump_button`` while the reader is away from it.
    Texts far from what is seen are rendered while the window is idle.
    """

    regenerateClicked = Signal(int)
    versionClicked = Signal(int, int)
    copyClicked = Signal(int)
    promptChosen = Signal(str)
    linkActivated = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._points = 0
        self._following = True
        self._moving = False
        self._pending: list[int] = []
        self._messages: dict[int, MessageWidget] = {}
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Chat")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._wear = Wear(Look(self._theme, self._font()), True)
        self.empty_state = EmptyState(self)
        self.empty_state.promptChosen.connect(self.promptChosen)
        self._prefill = PrefillLine(self)
        self.error_box = ErrorBox(self)
        self._column = Column(self.empty_state, self._prefill, self.error_box)
        self.setWidget(self._column)
        self._prefill.hide()
        self.jump_button = JumpButton(self)
        self.jump_button.clicked.connect(self.jump_to_end)
        self._frame_ms = float(FRAME_MS)
        self._shown_s = 0.0
        self._frame = QTimer(self, singleShot=True)
        self._frame.timeout.connect(self.flush)
        self._idle = QTimer(self, interval=_IDLE_MS, singleShot=True)
        self._idle.timeout.connect(self._work_while_idle)
        self._pulse = Pulse(self)
        self._pulse.changed.connect(self._show_caret)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self.verticalScrollBar().setSingleStep(24)
        self.set_theme(self._theme)

    # What is shown

    def set_messages(self, messages: list[Message]) -> None:
        """Show a conversation from its end."""
        self.clear()
        for message in messages:
            self._make(message)
        self._following = True
        self._relayout()

    def add_message(self, message: Message) -> None:
        """Add a message at the end and go there."""
        self.error_box.show_error("", "")
        self._prefill.hide()
        self._make(message).materialise()
        self._following = True
        self._relayout()

    def append_tokens(self, message_id: int, tokens: Sequence[Token]) -> None:
        """Add streamed tokens to a message; they are shown with the next frame."""
        widget = self._messages.get(message_id)
        if widget is None or not tokens:
            return
        self._prefill.hide()
        widget.append_tokens(list(tokens))
        if message_id not in self._pending:
            self._pending.append(message_id)
        if not self._frame.isActive():
            wait_ms = self._frame_ms - 1000.0 * (time.perf_counter() - self._shown_s)
            if wait_ms <= _NEARLY_MS:
                self.flush()
            else:
                self._frame.start(round(wait_ms))

    def finish_message(self, message: Message) -> None:
        """Take the stored end of a streamed message: text, spans, state, metrics, error."""
        widget = self._messages.get(message.id)
        if widget is None:
            return
        self._prefill.hide()
        if message.id in self._pending:
            self._pending.remove(message.id)
        widget.set_message(message)
        self._measure_again(widget)

    def set_prefill(self, done: int, total: int) -> None:
        """Show how much of the prompt has been read, where the reply will be."""
        widget = self._streaming()
        if widget is not None:
            widget.set_prefill(done, total)
            self._column.forget_height(widget)
        else:
            self._prefill.set_progress(done, total)
            self._prefill.setVisible(done < total)
        self._relayout()

    def set_error(self, sentence: str, action: str) -> None:
        """Say at the end of the chat what went wrong and what to do; both empty removes it."""
        self._prefill.hide()
        self.error_box.show_error(sentence, action)
        self._relayout()

    def clear(self) -> None:
        """Show the empty state."""
        self._frame.stop()
        self._idle.stop()
        self._pending.clear()
        self._messages.clear()
        self._column.clear()
        self.error_box.show_error("", "")
        self._prefill.hide()
        self._relayout()

    # How it looks

    def set_colouring(self, on: bool) -> None:
        """Show or hide the origins, what is seen first and the rest while idle."""
        self._wear = Wear(self._wear.look, on)
        self._relayout()

    def set_theme(self, theme: Theme) -> None:
        """Change the colours."""
        self._theme = theme
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Window, QColor(theme.surface))
        palette.setColor(QPalette.ColorRole.Base, QColor(theme.surface))
        self.setPalette(palette)
        self._column.setPalette(palette)
        self.jump_button.set_theme(theme)
        self._dress()

    def set_font_points(self, points: int) -> None:
        """Change the size of the text; 0 follows the application."""
        self._points = points
        self._dress()

    def _dress(self) -> None:
        look = Look(self._theme, self._font())
        self._wear = Wear(look, self._wear.colouring)
        self._column.setFont(look.font)
        for part in (self.empty_state, self._prefill, self.error_box):
            part.setFont(look.font)
            part.set_theme(self._theme)
        self._relayout()

    def _font(self) -> QFont:
        font = QFont(self.font())
        if self._points > 0:
            font.setPointSizeF(float(self._points))
        return font

    # Where it is

    @property
    def following(self) -> bool:
        """Whether the end is kept in sight while text comes."""
        return self._following

    @property
    def working(self) -> bool:
        """Whether texts out of sight are still to be rendered."""
        return self._idle.isActive()

    def jump_to_end(self) -> None:
        """Go to the end and follow it again."""
        # A focused button that hides hands the focus on, and Qt scrolls to where it goes.
        if self.jump_button.hasFocus():
            self.setFocus(Qt.FocusReason.OtherFocusReason)
        self._following = True
        self._relayout()

    def message_widget(self, message_id: int) -> MessageWidget | None:
        """Return the widget of a message that is shown."""
        return self._messages.get(message_id)

    def _make(self, message: Message) -> MessageWidget:
        widget = MessageWidget(message, self._wear.look, self._column)
        widget.regenerateClicked.connect(self.regenerateClicked)
        widget.versionClicked.connect(self.versionClicked)
        widget.copyClicked.connect(self.copyClicked)
        widget.linkActivated.connect(self.linkActivated)
        widget.heightChanged.connect(lambda: self._measure_again(widget))
        self._messages[message.id] = widget
        self._column.add(widget)
        if widget.streaming:
            self._pulse.start()
        return widget

    def _measure_again(self, widget: MessageWidget) -> None:
        self._column.forget_height(widget)
        self._relayout()

    def _streaming(self) -> MessageWidget | None:
        return next((w for w in reversed(self._messages.values()) if w.streaming), None)

    def flush(self) -> None:
        """Show appended tokens now instead of with the next frame."""
        self._frame.stop()
        self._shown_s = time.perf_counter()
        began_s = time.thread_time()
        for message_id in self._pending:
            widget = self._messages[message_id]
            widget.refresh()
            self._column.forget_height(widget)
        self._pending.clear()
        self._relayout()
        cost_ms = 1000.0 * (time.thread_time() - began_s)
        self._frame_ms = min(max(cost_ms / _FRAME_SHARE, FRAME_MS), SLOW_FRAME_MS)
        self._pulse.step()

    def _relayout(self) -> None:
        """Place everything; what is seen stays where it is, or the end stays in sight."""
        if self._moving:
            return
        self._moving = True
        try:
            bar = self.verticalScrollBar()
            anchor = self._column.anchor(bar.value())
            # The column is centred in the whole width, as the composer is, scroll bar or not.
            size = QSize(self.width(), self.viewport().height())
            target = None if self._following else bar.value()
            # What is brought up to date changes its height, which moves things: twice settles it.
            for _ in range(2):
                height = self._column.place(size.width(), size.height(), target, self._wear)
                self._column.resize(self.viewport().width(), height)
                maximum = max(height - size.height(), 0)
                if self._following:
                    welcoming = not self._messages and self.error_box.isHidden()
                    bar.setValue(0 if welcoming else maximum)
                else:
                    target = min(self._column.resolve(anchor), maximum)
                    bar.setValue(target)
        finally:
            self._moving = False
        self._place_jump()
        if self._column.unfinished(self._wear):
            self._idle.start()
        else:
            self._column.order_focus(self)

    def _work_while_idle(self) -> None:
        self._column.catch_up(self._wear)
        self._relayout()

    def _scrolled(self) -> None:
        if self._moving:
            return
        bar = self.verticalScrollBar()
        self._following = bar.value() >= bar.maximum() - _AT_END
        self._relayout()

    def _place_jump(self) -> None:
        self.jump_button.setVisible(not self._following and bool(self._messages))
        size = self.jump_button.sizeHint()
        area = self.viewport().geometry()
        x = area.center().x() - size.width() // 2
        self.jump_button.setGeometry(
            x, area.bottom() - size.height() - 10, size.width(), size.height()
        )
        self.jump_button.raise_()

    def _show_caret(self, opacity: float) -> None:
        widget = self._streaming()
        if widget is None:
            self._pulse.stop()
            return
        widget.set_caret(opacity)

    # Qt overrides

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Home and End go to the ends; the other keys scroll as usual."""
        if event.key() == Qt.Key.Key_Home:
            self.verticalScrollBar().setValue(0)
        elif event.key() == Qt.Key.Key_End:
            self.jump_to_end()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out for the new width."""
        super().resizeEvent(event)
        self._relayout()

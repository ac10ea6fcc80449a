"""The open conversation: sending, stopping, regenerating, versions, switching."""

import time
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from app.controllers.counter import PromptCounter
from app.controllers.length import LEAVE_OUT, LengthGate
from app.controllers.models import ModelController
from app.controllers.prompts import certainly_fits, request_for
from app.controllers.streaming import ReplyController
from app.controllers.views import ChatViews
from app.engine.pump import EventPump
from app.records import Message
from app.settings import Settings
from app.storage.conversations import ConversationStore
from app.storage.titles import title_from
from core.errors import UserError
from core.requests import GenerateRequest


class ChatController(QObject):
    """Owns what the open conversation shows and the one reply that may be streaming.

    The reply may belong to another conversation than the open one; it goes on, is stored, and is
    shown again when its conversation is opened. Lives on the window thread. Every failure of the
    storage or the engine ends as a sentence in the window; nothing is raised.
    """

    conversationsChanged = Signal()
    currentChanged = Signal(object)
    """The id of the open conversation, or None for a new one."""
    refreshed = Signal()
    """What can be done now may have changed."""

    def __init__(
        self,
        *,
        store: ConversationStore,
        pump: EventPump,
        models: ModelController,
        settings: Callable[[], Settings],
        views: ChatViews,
        clock: Callable[[], float] = time.monotonic,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._models = models
        self._settings = settings
        self._views = views
        self._current: int | None = None
        self._thread: list[Message] = []
        self.reply = ReplyController(
            store=store,
            pump=pump,
            models=models,
            views=views,
            shows=self._shows,
            clock=clock,
            parent=self,
        )
        self.reply.ended.connect(self._reply_ended)
        self.reply.contextGrew.connect(self._context_grew)
        self._length = LengthGate(pump, views.notices, self)
        self._length.fits.connect(self._fits)
        self._length.refused.connect(self._refused)
        self._leave_out: set[int] = set()
        self.counter = PromptCounter(pump, self._request_to_count, self)
        self.counter.counted.connect(self._show_count)
        models.changed.connect(self.refresh)

    @property
    def current(self) -> int | None:
        """The id of the open conversation, or None for a new one."""
        return self._current

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that are shown."""
        return tuple(self._thread)

    # -- what the person does ------------------------------------------------------------------

    def open(self, conversation_id: int | None) -> None:
        """Show a conversation, or an empty new one."""
        self._length.drop()
        self._current = conversation_id
        self._views.notices.dismiss()
        self._reload()
        self._show_numbers(len(self._thread) - 1)
        writing = self.reply.message
        if writing is not None and not self._shows(writing.id):
            self._show_count(0, self._models.context_limit)
        self.currentChanged.emit(conversation_id)
        self._views.composer.focus()

    def send(self, text: str) -> None:
        """Send ``text`` as the next message; where something stands in the way, it is kept."""
        if not text.strip() or self.reply.running or self._length.busy:
            return
        if not self._models.ready:
            self._fail(UserError(self._models.reason))
            return
        try:
            request = self._request((*self._thread, _unsaved_user_message(text)))
        except UserError as error:
            self._fail(error)
            return
        if certainly_fits(request, self._models.context_limit):
            self._begin(text, leave_out_oldest=False)
        elif self._current is not None and self._current in self._leave_out:
            self._begin(text, leave_out_oldest=True)
        else:
            self.counter.cancel()
            self._length.check(text, request, can_leave_out=bool(self._thread))
            self.refresh()

    def regenerate(self, message_id: int | None = None) -> None:
        """Write another version of a reply (None: the last one); the old version stays."""
        if self.reply.running or self._length.busy or not self._thread:
            return
        if not self._models.ready:
            self._fail(UserError(self._models.reason))
            return
        ids = [message.id for message in self._thread]
        at = ids.index(message_id) if message_id in ids else len(ids) - 1
        before = self._thread[:at] if self._thread[at].role == "assistant" else self._thread
        if before:
            self._reply_to(before, leave_out_oldest=self._current in self._leave_out)

    def choose_version(self, message_id: int, offset: int) -> None:
        """Show the next (+1) or previous (-1) version of a message."""
        ids = [message.id for message in self._thread]
        at = ids.index(message_id) if message_id in ids else len(ids) - 1
        try:
            self._store.select_version(message_id, offset)
        except UserError as error:
            self._fail(error)
            return
        self._reload()
        self._show_numbers(at)

    def copy(self, message_id: int) -> None:
        """Put a message's text on the clipboard."""
        for message in self._thread:
            if message.id == message_id:
                QGuiApplication.clipboard().setText(message.text)
                self._views.status.set_state("Copied")

    def delete(self, conversation_id: int) -> None:
        """Delete a conversation; a reply that streams in it is cancelled first."""
        self.reply.discard(conversation_id)
        try:
            self._store.delete(conversation_id)
        except UserError as error:
            self._fail(error)
            return
        self._leave_out.discard(conversation_id)
        if conversation_id == self._current:
            self.open(None)
        self.conversationsChanged.emit()
        self.refresh()

    def text_edited(self) -> None:
        """Count the tokens of what would be sent, once the typing rests."""
        self.counter.schedule()

    def close(self) -> None:
        """Store what the engine did not end; call after its thread was shut down."""
        self.reply.close()
        self.counter.cancel()

    def choose_notice(self, key: str) -> None:
        """Act on a button of the notice above the composer."""
        self._views.notices.dismiss()
        if key == LEAVE_OUT:
            self._begin(self._views.composer.text(), leave_out_oldest=True)
        self._views.composer.focus()

    # -- the reply ---------------------------------------------------------------------------

    def _begin(self, text: str, *, leave_out_oldest: bool) -> None:
        if not text.strip() or self.reply.running or not self._models.ready:
            return
        try:
            if self._current is None:
                self._current = self._store.create(title_from(text)).id
                self.currentChanged.emit(self._current)
            parent_id = self._thread[-1].id if self._thread else None
            message = self._store.add_message(self._current, parent_id, "user", text)
        except UserError as error:
            self._fail(error)
            return
        if leave_out_oldest:
            self._leave_out.add(self._current)
        self._thread.append(message)
        self._views.composer.clear()
        self._views.transcript.add_message(message)
        self._reply_to(list(self._thread), leave_out_oldest=leave_out_oldest)

    def _reply_to(self, before: list[Message], *, leave_out_oldest: bool) -> None:
        try:
            request = self._request(tuple(before))
            reply = self.reply.start(before[-1], request, leave_out_oldest=leave_out_oldest)
        except UserError as error:
            self._fail(error)
            return
        self.counter.cancel()
        self._views.notices.dismiss()
        self._views.transcript.set_error("", "")
        if len(before) == len(self._thread):
            self._thread.append(reply)
            self._views.transcript.add_message(reply)
        else:
            self._reload()
        self.conversationsChanged.emit()
        self.refresh()

    def _reply_ended(self, message: Message) -> None:
        self._thread = [message if m.id == message.id else m for m in self._thread]
        if not self._shows(message.id):
            self._show_numbers(len(self._thread) - 1)
        self.conversationsChanged.emit()
        self.refresh()

    # -- counting ----------------------------------------------------------------------------

    def _fits(self, text: str) -> None:
        self.refresh()
        self._begin(text, leave_out_oldest=False)

    def _refused(self, error: UserError | None) -> None:
        self.refresh()
        if error is not None:
            self._fail(error)

    def _request_to_count(self) -> GenerateRequest | None:
        if not self._models.ready or self.reply.running or self._length.busy:
            return None
        text = self._views.composer.text()
        if not text.strip() and not self._thread:
            self._show_count(0, self._models.context_limit)
            return None
        following = (_unsaved_user_message(text),) if text.strip() else ()
        return self._request((*self._thread, *following))

    def _context_grew(self, tokens: int) -> None:
        self._show_count(tokens, self._models.context_limit)

    def _show_count(self, tokens: int, limit: int) -> None:
        self._views.composer.set_token_count(tokens, limit)
        too_long = limit > 0 and tokens >= limit and self._current not in self._leave_out
        self._views.composer.set_too_long(too_long and not self.reply.running)
        self._views.status.set_context(tokens, limit)

    # -- small things -------------------------------------------------------------------------

    def refresh(self) -> None:
        """Bring the composer in line with what can be done now."""
        writing = self.reply.message
        here = writing is not None and self._shows(writing.id)
        self._views.composer.set_busy(here)
        if not self._models.ready:
            self._views.composer.set_enabled_to_send(False, self._models.reason)
        elif writing is not None and not here:
            reason = "A reply is being written in another chat."
            self._views.composer.set_enabled_to_send(False, reason)
        elif self._length.busy:
            self._views.composer.set_enabled_to_send(False, "Counting the tokens.")
        else:
            self._views.composer.set_enabled_to_send(True, "")
        if self._models.ready and writing is None:
            self.counter.schedule()
        self.refreshed.emit()

    def _show_numbers(self, at: int) -> None:
        """Show the numbers of the reply at a place of the thread, else of the nearest before."""
        replies = [message for message in self._thread[: at + 1] if message.role == "assistant"]
        replies = replies or [message for message in self._thread if message.role == "assistant"]
        self.reply.show_numbers(replies[-1] if replies else None)

    def _shows(self, message_id: int) -> bool:
        return any(message.id == message_id for message in self._thread)

    def _reload(self) -> None:
        self._thread = []
        if self._current is not None:
            try:
                self._thread = list(self._store.thread(self._current))
            except UserError as error:
                self._fail(error)
                return
        writing = self.reply.message
        if writing is not None:
            self._thread = [
                replace(writing, version=m.version, versions=m.versions)
                if m.id == writing.id
                else m
                for m in self._thread
            ]
        self._views.transcript.set_messages(list(self._thread))
        self.refresh()

    def _request(self, thread: tuple[Message, ...]) -> GenerateRequest:
        settings = self._settings()
        return request_for(thread, settings, self._models.speculation(settings))

    def _fail(self, error: UserError) -> None:
        self._views.transcript.set_error(error.message, error.action)


def _unsaved_user_message(text: str) -> Message:
    return Message(id=0, conversation_id=0, parent_id=None, role="user", text=text, created_at=0.0)

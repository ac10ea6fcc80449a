"""The list of conversations: search, rename, delete, and which one is open."""

from PySide6.QtCore import QObject

from app.controllers.chat import ChatController
from app.controllers.views import Conversations, Notices
from app.storage.conversations import ConversationStore
from core.errors import UserError

DISMISS = "dismiss"


class ConversationsController(QObject):
    """Keeps the list in line with the store and the chat. Lives on the window thread."""

    def __init__(
        self,
        *,
        store: ConversationStore,
        chat: ChatController,
        view: Conversations,
        notices: Notices,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._chat = chat
        self._view = view
        self._notices = notices
        self._search = ""
        chat.conversationsChanged.connect(self.refresh)
        chat.currentChanged.connect(self._show_current)

    def start(self) -> None:
        """Show the list, and open the newest conversation where there is one."""
        self.refresh()
        try:
            newest = next(iter(self._store.list()), None)
        except UserError:
            newest = None  # refresh has said why
        self._chat.open(newest.id if newest is not None else None)

    def refresh(self) -> None:
        """Read the list again."""
        try:
            self._view.set_conversations(self._store.list(self._search))
        except UserError as error:
            self._fail(error)
        self._view.set_current(self._chat.current)

    def search(self, text: str) -> None:
        """Show only conversations whose title or text holds ``text``."""
        self._search = text
        self.refresh()

    def select(self, conversation_id: int) -> None:
        """Open a conversation."""
        if conversation_id != self._chat.current:
            self._chat.open(conversation_id)

    def rename(self, conversation_id: int, title: str) -> None:
        """Give a conversation another title; an empty one changes nothing."""
        if title.strip():
            try:
                self._store.rename(conversation_id, title.strip())
            except UserError as error:
                self._fail(error)
        self.refresh()

    def _show_current(self, conversation_id: int | None) -> None:
        self._view.cancel_delete()  # the question was about what was shown before
        self._view.set_current(conversation_id)

    def _fail(self, error: UserError) -> None:
        self._notices.show_notice(str(error), ((DISMISS, "OK"),), error=True)

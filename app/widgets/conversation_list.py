"""The conversations at the left: begin, find, choose, rename and delete them."""

from collections.abc import Sequence

from PySide6.QtCore import (
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QPoint,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence, QPalette
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.qtmodels.conversations import ConversationsModel
from app.records import Conversation
from app.theme import Theme
from app.widgets.conversation_row import ConversationDelegate
from app.widgets.conversation_view import ConversationView
from app.widgets.icons import icon

_SEARCH_DELAY_MS = 150
_SELECT_DELAY_MS = 120
_UNREAD = "The stored conversations could not be opened."
_EMPTY = "No conversations yet.\nWrite a message to begin one."


class ConversationList(QWidget):
    """A button, a search field and the grouped list.

    Only the person's doing is told: ``set_current`` and ``set_conversations`` emit nothing.
    """

    newClicked = Signal()
    selected = Signal(int)
    """The conversation to show; while arrow keys are held only the last one is told."""
    renamed = Signal(int, str)
    deleted = Signal(int)
    """A conversation to delete, after the person confirmed it."""
    searched = Signal(str)
    """What to search for, once typing rests; "" shows all."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = ConversationsModel(self)
        self._current: int | None = None
        self._doomed: int | None = None
        self._new = QPushButton("New chat")
        self._search = QLineEdit()
        self._search_icon = QAction(self)
        self.view = ConversationView()
        self._empty = QLabel(_EMPTY)
        self._confirm = QFrame()
        self._question = QLabel()
        self._note = QLabel()
        self._unread = False
        self._delete = QPushButton("Delete")
        self._keep = QPushButton("Keep")
        self._search_timer = self._single_shot(_SEARCH_DELAY_MS, self._tell_search)
        self._select_timer = self._single_shot(_SELECT_DELAY_MS, self._tell_selected)
        self._build()
        self._connect()
        self.set_conversations([])

    def set_conversations(self, conversations: Sequence[Conversation]) -> None:
        """Show ``conversations``; the current one stays marked where it is among them."""
        scrolled = self.view.verticalScrollBar().value()
        self.model.set_conversations(conversations)
        self._mark_current()
        self.view.verticalScrollBar().setValue(scrolled)
        self._say_nothing_here()
        self._empty.setVisible(not conversations)
        self.view.setVisible(bool(conversations))
        if self._doomed is not None and not self.model.index_of(self._doomed).isValid():
            self.cancel_delete()

    def set_unkept(self, why: str, *, unread: bool) -> None:
        """Say, as long as the window is open, that nothing is kept; "" says nothing.

        ``unread`` means that an empty list does not say that there are no conversations.
        """
        self._note.setText(why)
        self._note.setVisible(bool(why))
        self._unread = unread
        self._say_nothing_here()

    def set_current(self, conversation_id: int | None) -> None:
        """Mark the conversation that is shown, or none."""
        self._select_timer.stop()
        self._current = conversation_id
        self._mark_current()

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self._new.setIcon(icon("plus", theme.text))
        self._search_icon.setIcon(icon("search", theme.muted))
        self.view.viewport().update()

    def focus_search(self) -> None:
        """Put the cursor into the search field."""
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    def minimumSizeHint(self) -> QSize:
        """Narrow windows leave little room."""
        return QSize(160, 160)

    def sizeHint(self) -> QSize:
        """Room for a title of a few words."""
        return QSize(220, 480)

    def ask_delete(self, conversation_id: int) -> None:
        """Ask in a row below the list whether to delete a conversation."""
        conversation = self.model.conversation(self.model.index_of(conversation_id))
        if conversation is None:
            return
        self._doomed = conversation_id
        title = conversation.title
        short = title if len(title) <= 40 else f"{title[:39].rstrip()}…"
        self._question.setText(f"Delete “{short}” for good?")
        self._confirm.show()
        self._keep.setFocus(Qt.FocusReason.OtherFocusReason)

    def rename_current(self) -> None:
        """Let the person edit the name of the conversation that is shown, also while searching."""
        if self._current is None:
            return
        if not self.model.index_of(self._current).isValid():
            self._search.clear()
            self._search_timer.stop()
            self._tell_search()
        index = self.model.index_of(self._current)
        self.view.setFocus(Qt.FocusReason.OtherFocusReason)
        self.view.edit(index)

    def cancel_delete(self) -> None:
        """Take the question about deleting back; nothing is deleted."""
        focused = self._confirm.isAncestorOf(self.focusWidget() or self)
        self._doomed = None
        if focused:
            self.view.setFocus(Qt.FocusReason.OtherFocusReason)
        self._confirm.hide()

    def event(self, event: QEvent) -> bool:
        """Claim Escape while there is a question, before it stops a reply."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Escape
            and self._confirm.isVisible()
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape keeps the conversation that was about to be deleted."""
        if event.key() == Qt.Key.Key_Escape and self._confirm.isVisible():
            self.cancel_delete()
            return
        super().keyPressEvent(event)

    def _single_shot(self, delay_ms: int, slot: object) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(delay_ms)
        timer.timeout.connect(slot)
        return timer

    def _mark_current(self) -> None:
        index = QModelIndex() if self._current is None else self.model.index_of(self._current)
        selection = self.view.selectionModel()
        blocked = selection.blockSignals(True)
        if index.isValid():
            selection.setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        else:
            selection.clear()
        selection.blockSignals(blocked)
        self.view.viewport().update()

    def _on_current_changed(self, index: QModelIndex) -> None:
        conversation = self.model.conversation(index)
        if conversation is not None and conversation.id != self._current:
            self.cancel_delete()
            self._current = conversation.id
            self._select_timer.start()

    def _on_clicked(self) -> None:
        self.cancel_delete()
        if self._select_timer.isActive():
            self._select_timer.stop()
            self._tell_selected()

    def _say_nothing_here(self) -> None:
        text = self._search.text().strip()
        nothing = _UNREAD if self._unread else _EMPTY
        self._empty.setText(f"Nothing found for “{text}”." if text else nothing)

    def _tell_selected(self) -> None:
        if self._current is not None:
            self.selected.emit(self._current)

    def _tell_search(self) -> None:
        self.searched.emit(self._search.text().strip())

    def _on_delete_key(self) -> None:
        conversation = self.model.conversation(self.view.currentIndex())
        if conversation is not None:
            self.ask_delete(conversation.id)

    def _on_confirmed(self) -> None:
        doomed = self._doomed
        self.cancel_delete()
        if doomed is not None:
            self.deleted.emit(doomed)

    def _open_menu(self, place: QPoint) -> None:
        index = self.view.indexAt(place)
        conversation = self.model.conversation(index)
        if conversation is None:
            return
        menu = QMenu(self)
        rename = menu.addAction("Rename")
        rename.setShortcut(QKeySequence(Qt.Key.Key_F2))
        rename.triggered.connect(lambda: self.view.edit(index))
        delete = menu.addAction("Delete…")
        delete.setShortcut(QKeySequence(QKeySequence.StandardKey.Delete))
        delete.triggered.connect(lambda: self.ask_delete(conversation.id))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.view.viewport().mapToGlobal(place))

    def _connect(self) -> None:
        self._new.clicked.connect(self.newClicked)
        self._search.textChanged.connect(lambda: self._search_timer.start())
        self.model.renamed.connect(self.renamed)
        self.view.selectionModel().currentChanged.connect(self._on_current_changed)
        self.view.clicked.connect(self._on_clicked)
        self.view.activated.connect(self._on_clicked)
        self.view.deletePressed.connect(self._on_delete_key)
        self.view.customContextMenuRequested.connect(self._open_menu)
        self._delete.clicked.connect(self._on_confirmed)
        self._keep.clicked.connect(self.cancel_delete)

    def _build(self) -> None:
        self._new.setToolTip("Begin a new conversation.")
        self._search.setPlaceholderText("Search")
        self._search.setAccessibleName("Search conversations")
        self._search.setClearButtonEnabled(True)
        self._search.addAction(self._search_icon, QLineEdit.ActionPosition.LeadingPosition)
        self.view.setModel(self.model)
        self.view.setItemDelegate(ConversationDelegate(self.view))
        self.view.setAccessibleName("Conversations")
        self._empty.setWordWrap(True)
        self._empty.setProperty("muted", True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self._empty.setContentsMargins(8, 24, 8, 8)
        self._question.setWordWrap(True)
        self._note.setWordWrap(True)
        self._note.setProperty("warning", True)
        self._note.hide()
        self._delete.setProperty("danger", True)
        self._confirm.setAutoFillBackground(True)
        self._confirm.setBackgroundRole(QPalette.ColorRole.AlternateBase)
        self._confirm.hide()
        buttons = QHBoxLayout()
        buttons.addWidget(self._delete)
        buttons.addWidget(self._keep)
        buttons.addStretch(1)
        confirm = QVBoxLayout(self._confirm)
        confirm.setContentsMargins(10, 8, 10, 8)
        confirm.addWidget(self._question)
        confirm.addLayout(buttons)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 10, 8, 8)
        layout.setSpacing(8)
        layout.addWidget(self._new)
        layout.addWidget(self._search)
        layout.addWidget(self.view, 1)
        layout.addWidget(self._empty, 1)
        layout.addWidget(self._confirm)
        layout.addWidget(self._note)

"""The conversations as rows of a list, grouped by when they were last used."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtCore import Signal as QtSignal

from app.records import Conversation

ID_ROLE = int(Qt.ItemDataRole.UserRole)
"""The conversation's id, None for a heading."""

_Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class _Heading:
    title: str


class ConversationsModel(QAbstractListModel):
    """Rows are headings ("Today", ...) and the conversations under them.

    ``renamed`` is emitted with id and new title when a title was edited in place; the row
    already shows it. ``now`` gives the time that "Today" is measured from.
    """

    renamed = QtSignal(int, str)

    def __init__(
        self, parent: QObject | None = None, *, now: Callable[[], datetime] = datetime.now
    ) -> None:
        super().__init__(parent)
        self._now = now
        self._rows: list[_Heading | Conversation] = []
        self._row_of: dict[int, int] = {}

    def set_conversations(self, conversations: Sequence[Conversation]) -> None:
        """Show ``conversations``, the most recently used first."""
        self.beginResetModel()
        self._rows = []
        self._row_of = {}
        midnight = self._now().replace(hour=0, minute=0, second=0, microsecond=0)
        heading = ""
        for each in sorted(conversations, key=lambda c: (c.updated_at, c.id), reverse=True):
            group = group_of(each.updated_at, midnight)
            if group != heading:
                heading = group
                self._rows.append(_Heading(group))
            self._row_of[each.id] = len(self._rows)
            self._rows.append(each)
        self.endResetModel()

    def conversation(self, index: _Index) -> Conversation | None:
        """The conversation of ``index``, None for a heading or an invalid index."""
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        return row if isinstance(row, Conversation) else None

    def index_of(self, conversation_id: int) -> QModelIndex:
        """Where a conversation is; an invalid index when it is not shown."""
        row = self._row_of.get(conversation_id)
        return QModelIndex() if row is None else self.index(row)

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008
        """Headings and conversations together."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Title, tooltip and id of a row."""
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row.title
        if isinstance(row, Conversation):
            if role == Qt.ItemDataRole.ToolTipRole:
                used = datetime.fromtimestamp(row.updated_at)
                return f"{row.title}\n{used:%Y-%m-%d %H:%M}"
            if role == ID_ROLE:
                return row.id
        return None

    def setData(self, index: _Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Rename a conversation; an empty or unchanged title is left as it was."""
        conversation = self.conversation(index)
        title = " ".join(str(value).split())
        if role != Qt.ItemDataRole.EditRole or conversation is None:
            return False
        if not title or title == conversation.title:
            return False
        self._rows[index.row()] = replace(conversation, title=title)
        self.dataChanged.emit(index, index)
        self.renamed.emit(conversation.id, title)
        return True

    def flags(self, index: _Index) -> Qt.ItemFlag:
        """Headings can neither be chosen nor edited."""
        if self.conversation(index) is None:
            return Qt.ItemFlag.NoItemFlags
        kinds = Qt.ItemFlag
        return kinds.ItemIsEnabled | kinds.ItemIsSelectable | kinds.ItemIsEditable


def group_of(seconds: float, midnight: datetime) -> str:
    """Return the heading for a time; ``midnight`` is the beginning of today."""
    used = datetime.fromtimestamp(seconds)
    if used >= midnight:
        return "Today"
    if used >= midnight - timedelta(days=1):
        return "Yesterday"
    if used >= midnight - timedelta(days=7):
        return "Previous 7 days"
    return "Older"

"""Conversations as message trees in the database."""

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence

from app.records import Conversation, Message, MessageState, TokenSpan
from app.storage.db import Database
from app.storage.rows import insert_message, inserted_id, message_from, text_columns
from app.storage.spans import pack_spans
from app.storage.text import folded, storable
from app.storage.titles import NEW_CHAT, one_line
from core.errors import BugError, UserError

# The names keep `list` usable in annotations beside the method of that name.
Conversations = list[Conversation]
Messages = list[Message]

_MESSAGE = """
    SELECT m.*,
        (SELECT count(*) FROM message s
          WHERE s.conversation_id = m.conversation_id AND s.parent_id IS m.parent_id) AS versions,
        (SELECT count(*) FROM message s
          WHERE s.conversation_id = m.conversation_id AND s.parent_id IS m.parent_id
            AND s.id <= m.id) AS version
    FROM message m
"""
_THREAD = f"""
    WITH RECURSIVE branch (id, parent_id, height) AS (
        SELECT m.id, m.parent_id, 0 FROM message m
          JOIN conversation c ON c.active_leaf_id = m.id WHERE c.id = ?
        UNION ALL
        SELECT m.id, m.parent_id, b.height + 1 FROM message m JOIN branch b ON m.id = b.parent_id
    )
    {_MESSAGE} JOIN branch b ON b.id = m.id ORDER BY b.height DESC
"""
# A child is always younger than its parent, so the youngest of a subtree is a leaf.
_LATEST_LEAF = """
    WITH RECURSIVE subtree (id) AS (
        SELECT ?
        UNION ALL
        SELECT m.id FROM message m JOIN subtree t ON m.parent_id = t.id
          WHERE m.conversation_id = ?
    )
    SELECT max(id) FROM subtree
"""
_LIST = "SELECT id, title, created_at, updated_at FROM conversation c"
_FOUND = """
    WHERE instr(folded(c.title), :needle) > 0
       OR EXISTS (SELECT 1 FROM message m
                   WHERE m.conversation_id = c.id AND instr(m.search_text, :needle) > 0)
"""


class ConversationStore:
    """Keeps every version of every message; used on the thread that made the database.

    Messages of a conversation form a tree. Siblings under one parent are versions of the same
    turn (a reply that was generated again, a message that was edited); the conversation shows
    the branch that ends at its active leaf.

    Every method raises UserError when the file cannot be read or written.
    """

    def __init__(self, db: Database, clock: Callable[[], float] = time.time) -> None:
        self._db = db
        self._clock = clock

    def create(self, title: str = "") -> Conversation:
        """Begin a conversation and return it."""
        with self._db.transaction() as connection:
            return self._create(connection, title)

    def get(self, conversation_id: int) -> Conversation:
        """Return one conversation. Raises UserError when it was deleted."""
        rows = self._db.query(f"{_LIST} WHERE id = ?", (conversation_id,))
        if not rows:
            raise _gone()
        return Conversation(**dict(rows[0]))

    def list(self, search: str = "") -> Conversations:
        """Return the conversations, last used first.

        ``search`` keeps those whose title or any message holds it, in any version, without
        regard to case.
        """
        needle = folded(storable(search.strip()))
        found = _FOUND if needle else ""
        rows = self._db.query(
            f"{_LIST} {found} ORDER BY updated_at DESC, id DESC", {"needle": needle}
        )
        return [Conversation(**dict(row)) for row in rows]

    def rename(self, conversation_id: int, title: str) -> None:
        """Give the conversation a name of one line. Raises UserError for an empty one."""
        name = one_line(title)
        if not name:
            raise UserError("The name is empty.", "Type a name for the conversation.")
        with self._db.transaction() as connection:
            connection.execute(
                "UPDATE conversation SET title = ? WHERE id = ?", (name, conversation_id)
            )

    def delete(self, conversation_id: int) -> None:
        """Delete the conversation with all versions, leaving no trace of it on the disk."""
        with self._db.deletion() as connection:
            connection.execute("DELETE FROM conversation WHERE id = ?", (conversation_id,))

    def thread(self, conversation_id: int) -> Messages:
        """Return the active branch from its first message to its last."""
        return [message_from(row) for row in self._db.query(_THREAD, (conversation_id,))]

    def tree(self, conversation_id: int) -> Messages:
        """Return the messages of all branches, oldest first."""
        rows = self._db.query(
            f"{_MESSAGE} WHERE m.conversation_id = ? ORDER BY m.id", (conversation_id,)
        )
        return [message_from(row) for row in rows]

    def message(self, message_id: int) -> Message:
        """Return one message. Raises UserError when it was deleted."""
        rows = self._db.query(f"{_MESSAGE} WHERE m.id = ?", (message_id,))
        if not rows:
            raise _gone()
        return message_from(rows[0])

    def add_message(
        self, conversation_id: int, parent_id: int | None, role: str, text: str
    ) -> Message:
        """Store a whole message under ``parent_id`` and make it the active leaf.

        Under a parent that has children already it is a new version beside them.
        """
        return self._add(conversation_id, parent_id, role, text, MessageState.COMPLETE, {})

    def begin_reply(
        self, conversation_id: int, parent_id: int | None, settings: Mapping[str, object]
    ) -> Message:
        """Store an empty reply that is being written, with the settings it is made with."""
        return self._add(
            conversation_id, parent_id, "assistant", "", MessageState.STREAMING, settings
        )

    def save_partial(self, message_id: int, text: str, spans: Sequence[TokenSpan]) -> None:
        """Keep what a reply has so far; meant to be called about once a second.

        Does nothing when the reply has ended or was deleted meanwhile.
        """
        with self._db.transaction() as connection:
            connection.execute(
                "UPDATE message SET text = ?, search_text = ?, spans = ?"
                " WHERE id = ? AND state = ?",
                (*text_columns(text), pack_spans(spans), message_id, MessageState.STREAMING),
            )

    def finish_reply(
        self,
        message_id: int,
        text: str,
        spans: Sequence[TokenSpan],
        state: str,
        metrics: Mapping[str, object],
        error: str = "",
    ) -> None:
        """Store the end of a reply. Does nothing when it was deleted meanwhile."""
        if MessageState(state) is MessageState.STREAMING:
            raise BugError("a reply cannot end in the state it is written in")
        with self._db.transaction() as connection:
            connection.execute(
                "UPDATE message SET text = ?, search_text = ?, spans = ?, state = ?, metrics = ?,"
                " error = ? WHERE id = ?",
                (
                    *text_columns(text),
                    pack_spans(spans),
                    str(state),
                    json.dumps(metrics),
                    storable(error),
                    message_id,
                ),
            )
            connection.execute(
                "UPDATE conversation SET updated_at = ?"
                " WHERE id = (SELECT conversation_id FROM message WHERE id = ?)",
                (self._clock(), message_id),
            )

    def select_version(self, message_id: int, offset: int) -> None:
        """Show another version of a message, with the latest branch under it.

        ``offset`` counts from the message: -1 is the version before, 1 the one after; beyond
        the first or last version that one is taken.
        """
        message = self.message(message_id)
        siblings = self._db.query(
            "SELECT id FROM message WHERE conversation_id = ? AND parent_id IS ? ORDER BY id",
            (message.conversation_id, message.parent_id),
        )
        position = min(max(message.version - 1 + offset, 0), len(siblings) - 1)
        with self._db.transaction() as connection:
            leaf = connection.execute(
                _LATEST_LEAF, (siblings[position]["id"], message.conversation_id)
            ).fetchone()[0]
            _activate(connection, message.conversation_id, leaf)

    def recover_interrupted(self) -> int:
        """Mark replies that a kill left unfinished, and return how many there were.

        Call once at the start, when no other program uses the file.
        """
        with self._db.transaction() as connection:
            return connection.execute(
                "UPDATE message SET state = ? WHERE state = ?",
                (MessageState.INTERRUPTED, MessageState.STREAMING),
            ).rowcount

    def active_leaf(self, conversation_id: int) -> int | None:
        """Return the id of the message at which the shown branch ends, None when empty."""
        rows = self._db.query(
            "SELECT active_leaf_id FROM conversation WHERE id = ?", (conversation_id,)
        )
        return rows[0]["active_leaf_id"] if rows else None

    def insert_tree(
        self, title: str, messages: Sequence[Message], active_leaf: int | None
    ) -> Conversation:
        """Store a whole conversation under new ids and return it.

        Parents come before their children; ``active_leaf`` is an id among ``messages``.
        """
        new_ids: dict[int, int] = {}
        with self._db.transaction() as connection:
            conversation = self._create(connection, title)
            for message in messages:
                parent_id = None if message.parent_id is None else new_ids[message.parent_id]
                new_ids[message.id] = insert_message(
                    connection, conversation.id, parent_id, message
                )
            if active_leaf is not None:
                _activate(connection, conversation.id, new_ids[active_leaf])
        return conversation

    def _create(self, connection: sqlite3.Connection, title: str) -> Conversation:
        now = self._clock()
        name = one_line(title) or NEW_CHAT
        cursor = connection.execute(
            "INSERT INTO conversation (title, created_at, updated_at) VALUES (?, ?, ?)",
            (name, now, now),
        )
        return Conversation(id=inserted_id(cursor), title=name, created_at=now, updated_at=now)

    def _add(
        self,
        conversation_id: int,
        parent_id: int | None,
        role: str,
        text: str,
        state: MessageState,
        settings: Mapping[str, object],
    ) -> Message:
        now = self._clock()
        with self._db.transaction() as connection:
            touched = connection.execute(
                "UPDATE conversation SET updated_at = ? WHERE id = ?", (now, conversation_id)
            )
            if touched.rowcount == 0:
                raise _gone()
            message_id = insert_message(
                connection,
                conversation_id,
                parent_id,
                Message(
                    id=0,
                    conversation_id=conversation_id,
                    parent_id=parent_id,
                    role=role,
                    text=text,
                    created_at=now,
                    state=state,
                    settings=dict(settings),
                ),
            )
            _activate(connection, conversation_id, message_id)
        return self.message(message_id)


def _activate(connection: sqlite3.Connection, conversation_id: int, leaf: int) -> None:
    connection.execute(
        "UPDATE conversation SET active_leaf_id = ? WHERE id = ?", (leaf, conversation_id)
    )


def _gone() -> UserError:
    return UserError("This conversation was deleted.", "Choose another one or start a new one.")

"""Messages as rows of the database."""

import json
import sqlite3

from app.records import Message, MessageState
from app.storage.spans import pack_spans, unpack_spans
from app.storage.text import folded, storable
from core.errors import BugError


def insert_message(
    connection: sqlite3.Connection, conversation_id: int, parent_id: int | None, message: Message
) -> int:
    """Insert ``message`` (its own ids are not used) and return its new id."""
    cursor = connection.execute(
        "INSERT INTO message (conversation_id, parent_id, role, state, created_at, text,"
        " search_text, error, settings, metrics, spans) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            conversation_id,
            parent_id,
            message.role,
            str(message.state),
            message.created_at,
            *text_columns(message.text),
            storable(message.error),
            json.dumps(message.settings),
            json.dumps(message.metrics),
            pack_spans(message.spans),
        ),
    )
    return inserted_id(cursor)


def text_columns(text: str) -> tuple[str, str]:
    """Return the text as it is stored, and as searches compare it."""
    kept = storable(text)
    return kept, folded(kept)


def inserted_id(cursor: sqlite3.Cursor) -> int:
    """Return the id that the last INSERT of ``cursor`` gave."""
    if cursor.lastrowid is None:
        raise BugError("an insertion returned no id")
    return cursor.lastrowid


def message_from(row: sqlite3.Row) -> Message:
    """Return the message of a row that also counts its versions."""
    values = dict(row)
    return Message(
        id=values["id"],
        conversation_id=values["conversation_id"],
        parent_id=values["parent_id"],
        role=values["role"],
        text=values["text"],
        created_at=values["created_at"],
        state=MessageState(values["state"]),
        spans=unpack_spans(values["spans"]),
        version=values["version"],
        versions=values["versions"],
        metrics=json.loads(values["metrics"]),
        settings=json.loads(values["settings"]),
        error=values["error"],
    )

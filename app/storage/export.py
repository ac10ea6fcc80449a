"""Conversations as Markdown for people, and as JSON that can be imported again."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from app.records import Conversation, Message, MessageState, TokenSpan
from app.storage.conversations import ConversationStore
from app.storage.files import write_atomic
from app.storage.text import storable
from app.storage.titles import title_from
from core.errors import UserError

FORMAT = "paceline-conversation"
FORMAT_VERSION = 1
MAX_IMPORT_BYTES = 256 * 2**20

_SPEAKERS = {"user": "You", "assistant": "Paceline", "system": "System"}
_ENDINGS = {
    MessageState.STOPPED: "stopped",
    MessageState.FAILED: "failed",
    MessageState.INTERRUPTED: "interrupted",
}
_END_OF_TIME = 2**37
"""Seconds since the epoch, beyond the year 6000: what any calendar here can show."""

_HINT = "Choose a JSON file that Paceline exported."

_T = TypeVar("_T")


def to_markdown(conversation: Conversation, thread: Sequence[Message]) -> str:
    """Return the shown branch as a Markdown document."""
    parts = [
        f"# {conversation.title}",
        datetime.fromtimestamp(conversation.created_at).isoformat(sep=" ", timespec="minutes"),
    ]
    for message in thread:
        ending = _ENDINGS.get(MessageState(message.state))
        parts.append(f"## {_SPEAKERS[message.role]}" + (f" ({ending})" if ending else ""))
        parts.extend(part for part in (message.text.strip("\n"), message.error) if part)
    return "\n\n".join(parts) + "\n"


def to_json(conversation: Conversation, tree: Sequence[Message], active_leaf: int | None) -> str:
    """Return the conversation with every version, its token origins and its numbers."""
    document = json.dumps(
        {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "title": conversation.title,
            "active_leaf": active_leaf,
            "messages": [_plain(message) for message in tree],
        },
        ensure_ascii=False,
        indent=1,
    )
    # Settings may hold halves of characters, which a file cannot.
    return storable(document)


def export_markdown(store: ConversationStore, conversation_id: int, path: Path) -> None:
    """Write the shown branch to ``path``. Raises UserError when it cannot be written."""
    write_atomic(path, to_markdown(store.get(conversation_id), store.thread(conversation_id)))


def export_json(store: ConversationStore, conversation_id: int, path: Path) -> None:
    """Write the whole conversation to ``path``. Raises UserError when it cannot be written."""
    text = to_json(
        store.get(conversation_id), store.tree(conversation_id), store.active_leaf(conversation_id)
    )
    write_atomic(path, text)


def import_json(store: ConversationStore, path: Path) -> Conversation:
    """Store the conversation of an exported file as a new one and return it.

    Raises UserError with one sentence when the file cannot be read or does not hold a whole
    conversation; nothing is stored then.
    """
    try:
        if path.stat().st_size > MAX_IMPORT_BYTES:
            raise UserError(f"{path.name} is too large for one conversation.", _HINT)
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} could not be read: {error.strerror or error}.", _HINT) from error
    title, messages, active_leaf = _parsed(content, path.name)
    return store.insert_tree(title, messages, active_leaf)


def _plain(message: Message) -> dict[str, object]:
    return {
        "id": message.id,
        "parent_id": message.parent_id,
        "role": message.role,
        "text": message.text,
        "created_at": message.created_at,
        "state": str(message.state),
        "error": message.error,
        "settings": message.settings,
        "metrics": message.metrics,
        "spans": [
            [span.length, span.origin, span.token_id, span.target_prob, span.draft_prob]
            for span in message.spans
        ],
    }


def _parsed(content: bytes, name: str) -> tuple[str, list[Message], int | None]:
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name} is not a JSON file.", _HINT) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UserError(f"{name} does not hold a conversation of Paceline.", _HINT)
    version = document.get("version")
    if version != FORMAT_VERSION:
        raise UserError(
            f"{name} has the format {version!r}; this Paceline reads format {FORMAT_VERSION}.",
            "Update Paceline.",
        )
    where = f"{name} is damaged"
    stored = _typed(document, "messages", list, where)
    messages: list[Message] = []
    known: set[int] = set()
    for number, values in enumerate(stored, 1):
        place = f"{where} at message {number}"
        if not isinstance(values, dict):
            raise _damaged(place, "it is not an object")
        message = _message(values, place)
        if message.id in known:
            raise _damaged(place, "its id is used twice")
        if message.parent_id is not None and message.parent_id not in known:
            raise _damaged(place, "its parent does not come before it")
        known.add(message.id)
        messages.append(message)
    active_leaf = document.get("active_leaf")
    if not isinstance(active_leaf, int) or active_leaf not in known:
        active_leaf = messages[-1].id if messages else None
    title = document.get("title")
    if not isinstance(title, str) or not title.strip():
        title = title_from(messages[0].text if messages else "")
    return title, messages, active_leaf


def _message(values: Mapping[str, object], place: str) -> Message:
    role = _typed(values, "role", str, place)
    if role not in _SPEAKERS:
        raise _damaged(place, f"its role is {role!r}")
    text = _typed(values, "text", str, place)
    parent_id = values.get("parent_id")
    if parent_id is not None:
        parent_id = _typed(values, "parent_id", int, place)
    return Message(
        id=_typed(values, "id", int, place),
        conversation_id=0,
        parent_id=parent_id,
        role=role,
        text=text,
        created_at=_number(values.get("created_at"), place, "created_at", _END_OF_TIME),
        state=_state(values, place),
        spans=_spans(values, text, place),
        metrics=_typed(values, "metrics", dict, place),
        settings=_typed(values, "settings", dict, place),
        error=_typed(values, "error", str, place),
    )


def _state(values: Mapping[str, object], place: str) -> MessageState:
    name = _typed(values, "state", str, place)
    if name not in list(MessageState):
        raise _damaged(place, f"its state is {name!r}")
    # Exported while it was being written: nobody will finish the copy.
    return MessageState.INTERRUPTED if name == MessageState.STREAMING else MessageState(name)


def _spans(values: Mapping[str, object], text: str, place: str) -> tuple[TokenSpan, ...]:
    spans = []
    for entry in _typed(values, "spans", list, place):
        if not isinstance(entry, list) or len(entry) != 5:
            raise _damaged(place, "a span does not have five values")
        length, origin, token_id, target_prob, draft_prob = entry
        whole = all(type(number) is int and 0 <= number < 2**63 for number in (length, token_id))
        if not whole or not isinstance(origin, str):
            raise _damaged(place, "a span is not in order")
        spans.append(
            TokenSpan(
                length,
                origin,
                token_id,
                _number(target_prob, place, "a probability"),
                None if draft_prob is None else _number(draft_prob, place, "a probability"),
            )
        )
    if spans and sum(span.length for span in spans) != len(text):
        raise _damaged(place, "its spans do not cover its text")
    return tuple(spans)


def _typed(values: Mapping[str, Any], key: str, kind: type[_T], place: str) -> _T:
    value = values.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _damaged(place, f"{key} is missing or of the wrong kind")
    return value


def _number(value: object, place: str, name: str, limit: float = 1.0) -> float:
    # Compared, not converted: a whole number of any size can stand in JSON. The slack is for
    # probabilities that single precision rounded to a little more than 1.
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= limit * (1 + 1e-5)
    ):
        raise _damaged(place, f"{name} is not a number from 0 to {limit:g}")
    return float(value)


def _damaged(place: str, what: str) -> UserError:
    return UserError(f"{place}: {what}.", _HINT)

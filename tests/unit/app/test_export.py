"""Export to Markdown and JSON, and the way back."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.records import Message, MessageState, TokenSpan
from app.storage.conversations import ConversationStore
from app.storage.db import MEMORY, Database
from app.storage.export import export_json, export_markdown, import_json
from core.errors import UserError


@pytest.fixture
def store() -> Iterator[ConversationStore]:
    database = Database(MEMORY)
    yield ConversationStore(database, clock=lambda: 1_000_000.0)
    database.close()


@pytest.fixture
def conversation_id(store: ConversationStore) -> int:
    """Two versions of the reply, the first one shown, and a failed one after it."""
    conversation_id = store.create("Größe # 1").id
    question = store.add_message(conversation_id, None, "user", "Hi\n")
    first = store.begin_reply(conversation_id, question.id, {"gamma": 4})
    spans = [TokenSpan(1, "accepted", 5, 0.1, 0.7), TokenSpan(1, "plain", 6, 1.0000001)]
    store.finish_reply(first.id, "é!", spans, MessageState.COMPLETE, {"tokens": 2})
    second = store.begin_reply(conversation_id, question.id, {})
    store.finish_reply(second.id, "other", (), MessageState.STOPPED, {})
    store.select_version(second.id, -1)
    failed = store.begin_reply(conversation_id, first.id, {})
    store.finish_reply(failed.id, "", (), MessageState.FAILED, {}, "Memory ran out.")
    return conversation_id


def shape(messages: list[Message]) -> list[Message]:
    """The messages with ids counted from 1, as they are in any conversation."""
    number = {message.id: position for position, message in enumerate(messages, 1)}
    return [
        replace(
            message,
            id=number[message.id],
            conversation_id=0,
            parent_id=message.parent_id and number[message.parent_id],
        )
        for message in messages
    ]


def test_markdown_holds_the_shown_branch(
    store: ConversationStore, conversation_id: int, tmp_path: Path
) -> None:
    export_markdown(store, conversation_id, tmp_path / "chat.md")
    lines = (tmp_path / "chat.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Größe # 1"
    assert lines[4:] == [
        "## You",
        "",
        "Hi",
        "",
        "## Paceline",
        "",
        "é!",
        "",
        "## Paceline (failed)",
        "",
        "Memory ran out.",
    ]


def test_an_exported_conversation_comes_back_with_all_versions_and_numbers(
    store: ConversationStore, conversation_id: int, tmp_path: Path
) -> None:
    export_json(store, conversation_id, tmp_path / "chat.json")
    copy = import_json(store, tmp_path / "chat.json")
    assert copy.id != conversation_id
    assert copy.title == "Größe # 1"
    assert shape(store.tree(copy.id)) == shape(store.tree(conversation_id))
    assert [m.text for m in store.thread(copy.id)] == [
        m.text for m in store.thread(conversation_id)
    ]


def test_an_empty_conversation_can_be_exported_and_imported(
    store: ConversationStore, tmp_path: Path
) -> None:
    export_json(store, store.create("empty").id, tmp_path / "chat.json")
    copy = import_json(store, tmp_path / "chat.json")
    assert store.thread(copy.id) == []


def test_a_reply_exported_while_it_streams_is_imported_as_interrupted(
    store: ConversationStore, tmp_path: Path
) -> None:
    conversation_id = store.create("live").id
    store.begin_reply(conversation_id, None, {})
    export_json(store, conversation_id, tmp_path / "chat.json")
    copy = import_json(store, tmp_path / "chat.json")
    assert store.thread(copy.id)[0].state is MessageState.INTERRUPTED


def test_half_a_character_in_the_settings_does_not_stop_an_export(
    store: ConversationStore, tmp_path: Path
) -> None:
    conversation_id = store.create("half").id
    store.begin_reply(conversation_id, None, {"system_prompt": "\ud83d"})
    export_json(store, conversation_id, tmp_path / "chat.json")
    copy = import_json(store, tmp_path / "chat.json")
    assert store.thread(copy.id)[0].settings == {"system_prompt": "�"}


def broken(path: list[str | int], value: object) -> Callable[[dict], None]:
    def change(document: dict) -> None:
        place = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (broken(["format"], "other"), "does not hold a conversation"),
        (broken(["version"], 2), "has the format 2"),
        (broken(["messages"], None), "messages is missing"),
        (broken(["messages", 0], "text"), "message 1: it is not an object"),
        (broken(["messages", 0, "id"], "1"), "message 1: id is missing"),
        (broken(["messages", 0, "id"], True), "message 1: id is missing"),
        (broken(["messages", 1, "id"], 1), "message 2: its id is used twice"),
        (broken(["messages", 1, "parent_id"], 99), "message 2: its parent does not"),
        (broken(["messages", 1, "parent_id"], 2), "message 2: its parent does not"),
        (broken(["messages", 0, "role"], "tool"), "its role is 'tool'"),
        (broken(["messages", 0, "text"], 5), "text is missing"),
        (broken(["messages", 0, "state"], "odd"), "its state is 'odd'"),
        (broken(["messages", 0, "created_at"], "today"), "created_at is not a number"),
        (broken(["messages", 0, "created_at"], float("inf")), "created_at is not a number"),
        (broken(["messages", 0, "created_at"], 10**400), "created_at is not a number"),
        (broken(["messages", 0, "created_at"], -1), "created_at is not a number"),
        (broken(["messages", 1, "metrics"], []), "metrics is missing"),
        (broken(["messages", 1, "spans", 0], [1]), "a span does not have five values"),
        (broken(["messages", 1, "spans", 0, 0], 2), "do not cover its text"),
        (broken(["messages", 1, "spans", 0, 0], -1), "a span is not in order"),
        (broken(["messages", 1, "spans", 0, 2], 2**70), "a span is not in order"),
        (broken(["messages", 1, "spans", 0, 3], None), "a probability is not a number"),
        (broken(["messages", 1, "spans", 0, 4], float("nan")), "a probability is not a number"),
    ],
)
def test_a_damaged_file_gives_one_sentence_and_stores_nothing(
    store: ConversationStore,
    conversation_id: int,
    tmp_path: Path,
    change: Callable[[dict], None],
    sentence: str,
) -> None:
    path = tmp_path / "chat.json"
    export_json(store, conversation_id, path)
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(UserError, match=sentence) as raised:
        import_json(store, path)
    assert str(raised.value).startswith("chat.json")
    assert len(store.list()) == 1


@pytest.mark.parametrize("content", [b"", b"hello", b"\xff\xff", b"[" * 100_000])
def test_a_file_that_is_not_json_gives_one_sentence(
    store: ConversationStore, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "chat.json").write_bytes(content)
    with pytest.raises(UserError, match="is not a JSON file"):
        import_json(store, tmp_path / "chat.json")


def test_a_file_that_is_not_there_gives_one_sentence(
    store: ConversationStore, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="could not be read"):
        import_json(store, tmp_path / "missing.json")


def test_a_missing_title_and_leaf_are_made_up(store: ConversationStore, tmp_path: Path) -> None:
    conversation_id = store.create("old").id
    store.add_message(conversation_id, None, "user", "What is new?")
    path = tmp_path / "chat.json"
    export_json(store, conversation_id, path)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["active_leaf"], document["title"] = [], None
    path.write_text(json.dumps(document))
    copy = import_json(store, path)
    assert copy.title == "What is new?"
    assert len(store.thread(copy.id)) == 1

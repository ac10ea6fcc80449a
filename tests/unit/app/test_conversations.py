"""Conversations as trees: versions, branches, search, and what survives a kill."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from app.records import Message, MessageState, TokenSpan
from app.storage.conversations import ConversationStore
from app.storage.db import Database
from app.storage.titles import NEW_CHAT
from core.errors import BugError, UserError


def reply(store: ConversationStore, conversation_id: int, parent_id: int, text: str) -> Message:
    begun = store.begin_reply(conversation_id, parent_id, {})
    store.finish_reply(begun.id, text, one_span_a_character(text), MessageState.COMPLETE, {})
    return store.message(begun.id)


def one_span_a_character(text: str) -> tuple[TokenSpan, ...]:
    return tuple(TokenSpan(1, "accepted", ord(char), 0.9, 0.5) for char in text)


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


def chat_of(store: ConversationStore, turns: int) -> tuple[int, list[Message]]:
    conversation_id = store.create("long").id
    parent: int | None = None
    for turn in range(1, turns + 1):
        question = store.add_message(conversation_id, parent, "user", f"question {turn}")
        parent = reply(store, conversation_id, question.id, f"answer {turn}").id
    return conversation_id, store.thread(conversation_id)


def test_a_new_conversation_is_empty_and_first_in_the_list(store: ConversationStore) -> None:
    first, second = store.create("first"), store.create("second")
    assert store.list() == [second, first]
    assert store.thread(first.id) == []
    assert store.create().title == NEW_CHAT


def test_the_conversation_used_last_comes_first(store: ConversationStore) -> None:
    first, second = store.create("first"), store.create("second")
    store.add_message(first.id, None, "user", "hello")
    assert [conversation.id for conversation in store.list()] == [first.id, second.id]


def test_messages_come_back_from_root_to_leaf_with_all_they_had(store: ConversationStore) -> None:
    conversation_id = store.create("chat").id
    question = store.add_message(conversation_id, None, "user", "Why? 👩‍👩‍👧\n\0 é")
    begun = store.begin_reply(conversation_id, question.id, {"gamma": 4, "stop": ["x"]})
    assert begun.state is MessageState.STREAMING
    spans = (
        TokenSpan(3, "accepted", 151_935, 0.1, 1.0),
        TokenSpan(0, "plain", 7, 1e-12),
        TokenSpan(5, "bonus", 0, 1.0, None),
    )
    store.finish_reply(
        begun.id, "Because.", spans, MessageState.STOPPED, {"tokens": 3, "rate": None}, "A reason."
    )
    assert store.thread(conversation_id) == [
        question,
        replace(
            begun,
            text="Because.",
            spans=spans,
            state=MessageState.STOPPED,
            metrics={"tokens": 3, "rate": None},
            error="A reason.",
        ),
    ]
    assert question.text == "Why? 👩‍👩‍👧\n\0 é"
    assert begun.settings == {"gamma": 4, "stop": ["x"]}


def test_thirty_turns_keep_old_versions_as_branches_after_a_reload(tmp_path: Path) -> None:
    database = Database(tmp_path / "chats.db")
    store = ConversationStore(database)
    conversation_id, original = chat_of(store, 30)
    third_question, third_answer = original[4], original[5]

    reply(store, conversation_id, third_question.id, "answer 3, again")
    assert texts(store.thread(conversation_id)) == [
        *texts(original[:5]),
        "answer 3, again",
    ]
    store.select_version(store.thread(conversation_id)[5].id, -1)
    assert texts(store.thread(conversation_id)) == texts(original)
    reply(store, conversation_id, original[-2].id, "answer 30, again")
    database.close()

    database = Database(tmp_path / "chats.db")
    store = ConversationStore(database)
    thread = store.thread(conversation_id)
    assert texts(thread) == [*texts(original[:-1]), "answer 30, again"]
    assert (thread[5].version, thread[5].versions) == (1, 2)
    assert (thread[-1].version, thread[-1].versions) == (2, 2)
    assert {message.versions for message in [*thread[:5], *thread[6:-1]]} == {1}

    store.select_version(thread[-1].id, -1)
    assert texts(store.thread(conversation_id)) == texts(original)
    store.select_version(third_answer.id, 1)
    assert texts(store.thread(conversation_id)) == [*texts(original[:5]), "answer 3, again"]
    store.select_version(store.thread(conversation_id)[5].id, -1)
    # The latest leaf under the old third answer is the last reply that was made there.
    assert texts(store.thread(conversation_id)) == [*texts(original[:-1]), "answer 30, again"]
    assert len(store.tree(conversation_id)) == 62
    database.close()


def test_an_edited_question_is_a_version_beside_the_old_one(store: ConversationStore) -> None:
    conversation_id, original = chat_of(store, 2)
    edited = store.add_message(conversation_id, original[1].id, "user", "question 2, edited")
    assert texts(store.thread(conversation_id)) == [
        "question 1",
        "answer 1",
        "question 2, edited",
    ]
    assert (edited.version, edited.versions) == (2, 2)
    store.select_version(edited.id, -1)
    assert texts(store.thread(conversation_id)) == texts(original)


def test_the_first_question_can_be_edited_too(store: ConversationStore) -> None:
    conversation_id, original = chat_of(store, 1)
    edited = store.add_message(conversation_id, None, "user", "something else")
    assert (edited.version, edited.versions) == (2, 2)
    store.select_version(edited.id, -1)
    assert texts(store.thread(conversation_id)) == texts(original)


def test_choosing_beyond_the_first_or_last_version_takes_that_one(store: ConversationStore) -> None:
    conversation_id, original = chat_of(store, 1)
    again = reply(store, conversation_id, original[0].id, "again")
    store.select_version(again.id, 5)
    assert store.active_leaf(conversation_id) == again.id
    store.select_version(again.id, -5)
    assert store.active_leaf(conversation_id) == original[1].id


def test_versions_of_two_conversations_are_counted_apart(store: ConversationStore) -> None:
    _, first = chat_of(store, 1)
    _, second = chat_of(store, 1)
    assert {message.versions for message in [*first, *second]} == {1}


def test_a_parent_of_another_conversation_is_refused(store: ConversationStore) -> None:
    _, messages = chat_of(store, 1)
    other = store.create("other")
    with pytest.raises(Exception, match="FOREIGN KEY"):
        store.add_message(other.id, messages[-1].id, "user", "lost")
    assert store.tree(other.id) == []


def test_writing_into_a_deleted_conversation_gives_a_sentence(store: ConversationStore) -> None:
    conversation_id, messages = chat_of(store, 1)
    store.delete(conversation_id)
    for call in (
        lambda: store.add_message(conversation_id, None, "user", "late"),
        lambda: store.begin_reply(conversation_id, None, {}),
        lambda: store.get(conversation_id),
        lambda: store.message(messages[0].id),
        lambda: store.select_version(messages[0].id, 1),
    ):
        with pytest.raises(UserError, match="was deleted"):
            call()


def test_a_late_save_does_not_bring_a_deleted_reply_back(store: ConversationStore) -> None:
    conversation_id = store.create("chat").id
    begun = store.begin_reply(conversation_id, None, {})
    store.delete(conversation_id)
    store.save_partial(begun.id, "late", ())
    store.finish_reply(begun.id, "late", (), MessageState.COMPLETE, {})
    assert store.list() == []
    assert store.create("next").id > conversation_id


def test_a_late_partial_save_does_not_overwrite_the_end(store: ConversationStore) -> None:
    conversation_id = store.create("chat").id
    begun = store.begin_reply(conversation_id, None, {})
    store.finish_reply(begun.id, "the whole", (), MessageState.COMPLETE, {})
    store.save_partial(begun.id, "the", ())
    assert store.message(begun.id).text == "the whole"


def test_a_reply_cannot_end_as_streaming(store: ConversationStore) -> None:
    begun = store.begin_reply(store.create("chat").id, None, {})
    with pytest.raises(BugError):
        store.finish_reply(begun.id, "", (), MessageState.STREAMING, {})


def test_a_conversation_of_three_thousand_messages_can_be_read_and_deleted(
    store: ConversationStore,
) -> None:
    conversation_id = store.create("deep").id
    parent = None
    for number in range(3000):
        parent = store.add_message(conversation_id, parent, "user", str(number)).id
    assert texts(store.thread(conversation_id)) == [str(number) for number in range(3000)]
    store.delete(conversation_id)
    assert store.tree(conversation_id) == []


def test_a_name_is_kept_on_one_line_and_an_empty_one_refused(store: ConversationStore) -> None:
    conversation = store.create("old")
    store.rename(conversation.id, "  new\n name\t\x07 ")
    assert store.get(conversation.id).title == "new name"
    with pytest.raises(UserError, match="name is empty"):
        store.rename(conversation.id, " \n ")
    assert store.get(conversation.id).title == "new name"


def test_renaming_does_not_change_the_order(store: ConversationStore) -> None:
    first, second = store.create("first"), store.create("second")
    store.rename(first.id, "renamed")
    assert [conversation.id for conversation in store.list()] == [second.id, first.id]


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("", ["second", "first"]),
        ("   ", ["second", "first"]),
        ("FIRST", ["first"]),
        ("ÜBERSICHT", ["first"]),
        ("100%", ["first"]),
        ("1%0", []),
        ("snake_case", ["second"]),
        ("snakeXcase", []),
        ("ПРИВЕТ", ["second"]),
        ("old version", ["second"]),
        ("it's", ["second"]),
    ],
)
def test_search_finds_titles_and_all_versions_without_regard_to_case(
    store: ConversationStore, search: str, found: list[str]
) -> None:
    first, second = store.create("first"), store.create("second")
    store.add_message(first.id, None, "user", "Die Übersicht ist zu 100% fertig")
    store.add_message(second.id, None, "user", "the old version: it's snake_case")
    store.add_message(second.id, None, "user", "Привет")
    assert [conversation.title for conversation in store.list(search)] == found


def test_a_search_for_half_a_character_finds_what_is_kept_of_it(store: ConversationStore) -> None:
    conversation = store.create("broken")
    store.add_message(conversation.id, None, "user", "a\ud800b")
    store.create("whole")
    assert [found.title for found in store.list("A\ud800b")] == ["broken"]


def test_broken_characters_are_replaced_and_the_rest_kept(store: ConversationStore) -> None:
    conversation_id = store.create("half \ud83d of a character").id
    message = store.add_message(conversation_id, None, "user", "half \ud83d of a character")
    assert message.text == "half � of a character"
    begun = store.begin_reply(conversation_id, message.id, {"system_prompt": "\ud83d"})
    assert begun.settings == {"system_prompt": "\ud83d"}


def test_a_reply_that_was_being_written_is_marked_at_the_next_start(
    store: ConversationStore,
) -> None:
    conversation_id, _ = chat_of(store, 1)
    begun = store.begin_reply(conversation_id, None, {})
    store.save_partial(begun.id, "so far", one_span_a_character("so far"))
    assert store.recover_interrupted() == 1
    assert store.recover_interrupted() == 0
    message = store.message(begun.id)
    assert (message.text, message.state) == ("so far", MessageState.INTERRUPTED)


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL exists on POSIX only")
def test_a_killed_program_keeps_every_partial_save(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    script = textwrap.dedent(
        """
        import sys
        from app.records import TokenSpan
        from app.storage.conversations import ConversationStore
        from app.storage.db import Database

        store = ConversationStore(Database(sys.argv[1]))
        conversation = store.create("killed")
        begun = store.begin_reply(conversation.id, None, {})
        spans = []
        while True:
            spans.append(TokenSpan(1, "plain", len(spans), 0.5))
            store.save_partial(begun.id, "x" * len(spans), spans)
            print(len(spans), flush=True)
        """
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], cwd=root, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        saved = 0
        while saved < 100:
            saved = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split("\n")
    complete = [int(line) for line in rest[:-1] if line]
    saved = max([saved, *complete])

    database = Database(path)
    store = ConversationStore(database)
    assert database.notices == ()
    assert store.recover_interrupted() == 1
    [message] = store.thread(store.list()[0].id)
    assert message.state is MessageState.INTERRUPTED
    assert len(message.text) >= saved
    assert len(message.spans) == len(message.text)
    database.close()


def test_saving_four_thousand_tokens_is_one_statement_and_a_small_blob(tmp_path: Path) -> None:
    database = Database(tmp_path / "chats.db")
    store = ConversationStore(database)
    begun = store.begin_reply(store.create("long").id, None, {})
    spans = [
        TokenSpan(4, "accepted", number * 37 % 151_936, 1 / (number + 1), 0.5)
        for number in range(4000)
    ]
    text = "word" * 4000
    statements: list[str] = []
    database._connection.set_trace_callback(statements.append)
    store.save_partial(begun.id, text, spans)
    database._connection.set_trace_callback(None)
    [[blob]] = database.query("SELECT spans FROM message")
    database.close()
    assert [statement.split()[0] for statement in statements] == ["BEGIN", "UPDATE", "COMMIT"]
    assert len(blob) < 20 * len(spans)

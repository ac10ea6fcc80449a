"""Sending, streaming, stopping, regenerating and switching, from the window to the store."""

import pytest

from app.records import MessageState
from app.widgets.error_box import ErrorBox
from core.errors import UserError
from core.events import Notice
from tests.helpers.fake_engine import FakeEngine, Gate, make_round
from tests.helpers.window import Bench, MakeBench

REPLY = "A hash table is a kind of **shelf**."


@pytest.fixture
def bench(make_bench: MakeBench) -> Bench:
    return make_bench()


def shown(bench: Bench) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in bench.app.chat.messages]


def test_a_sent_message_and_its_reply_are_stored_with_origins_and_numbers(bench: Bench) -> None:
    reply = bench.send_and_wait()
    assert [message.role for message in bench.thread()] == ["user", "assistant"]
    assert reply.text == REPLY
    assert reply.state == MessageState.COMPLETE
    assert [span.origin for span in reply.spans].count("accepted") == 6
    assert reply.metrics["mean_acceptance_length"] == pytest.approx(3.0)
    assert bench.conversations()[0].title == "Explain hash tables"


def test_the_composer_is_cleared_once_the_message_is_stored(bench: Bench) -> None:
    bench.send_and_wait()
    assert bench.window.composer.text() == ""


def test_the_request_carries_the_chat_and_the_settings(bench: Bench) -> None:
    bench.send_and_wait("One")
    bench.send_and_wait("Two")
    request = bench.engine.requests[-1]
    assert request.messages == (("user", "One"), ("assistant", REPLY), ("user", "Two"))
    assert request.speculation.drafter == "hybrid"


def test_blank_text_is_not_sent(bench: Bench) -> None:
    bench.send("  \n ")
    assert bench.conversations() == []
    assert not bench.app.chat.reply.running


def test_stop_before_the_first_token_leaves_an_empty_stopped_reply(bench: Bench) -> None:
    bench.engine.prefill_gate = Gate(open_=False)
    bench.send()
    bench.until(bench.engine.prefill_gate.reached.is_set)
    bench.window.composer.stopClicked.emit()
    bench.until(lambda: not bench.app.chat.reply.running)
    reply = bench.thread()[-1]
    assert (reply.text, reply.state) == ("", MessageState.STOPPED)
    bench.engine.prefill_gate = Gate()
    assert bench.send_and_wait("Again").text == REPLY


def test_stop_in_mid_reply_keeps_what_was_decided_and_shows_nothing_later(bench: Bench) -> None:
    bench.engine.round_gate = Gate(open_=False)
    bench.send()
    bench.until(lambda: shown(bench) and bench.app.chat.reply.message.text)
    bench.window.composer.stopClicked.emit()
    bench.until(lambda: not bench.app.chat.reply.running)
    reply = bench.thread()[-1]
    assert (reply.text, reply.state) == ("A hash table is", MessageState.STOPPED)
    assert shown(bench)[-1] == ("assistant", "A hash table is")


def test_an_engine_that_raises_at_token_5_keeps_the_text_and_the_next_message_works(
    bench: Bench,
) -> None:
    bench.engine.raise_at_round = 1
    reply = bench.send_and_wait()
    assert (reply.text, reply.state) == ("A hash table is", MessageState.FAILED)
    assert "boom" not in reply.error
    assert reply.error
    bench.engine.raise_at_round = None
    assert bench.send_and_wait("Again").state == MessageState.COMPLETE


def test_regenerating_keeps_the_old_version_beside_the_new_one(bench: Bench) -> None:
    first = bench.send_and_wait()
    bench.engine.rounds = (make_round(0, ["Another", " answer", "."]),)
    bench.until_replied(lambda: bench.window.transcript.regenerateClicked.emit(first.id))
    second = bench.thread()[-1]
    assert (second.text, second.version, second.versions) == ("Another answer.", 2, 2)
    bench.window.transcript.versionClicked.emit(second.id, -1)
    assert bench.thread()[-1].text == REPLY
    assert shown(bench)[-1] == ("assistant", REPLY)


def test_after_thirty_turns_and_two_regenerations_a_reload_shows_and_sends_the_same(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    for turn in range(30):
        bench.send_and_wait(f"Turn {turn}")
    last = bench.thread()[-1]
    for target in (last, bench.thread()[5]):
        bench.engine.rounds = (make_round(0, ["New", f" {target.id}"]),)
        bench.until_replied(
            lambda target=target: bench.window.transcript.regenerateClicked.emit(target.id)
        )
    short = shown(bench)
    assert len(short) == 6
    assert short[-1][1].startswith("New")
    bench.close()
    again = make_bench(FakeEngine())
    assert shown(again) == short
    again.send_and_wait("And then?")
    sent = again.engine.requests[-1].messages
    assert sent == (*short, ("user", "And then?"))
    branch = again.thread()[5]
    again.window.transcript.versionClicked.emit(branch.id, -1)
    assert len(shown(again)) == 60
    assert shown(again)[-1][1].startswith("New")


def test_a_reply_goes_on_and_is_stored_while_another_chat_is_open(bench: Bench) -> None:
    bench.engine.round_gate = Gate(open_=False)
    bench.send("First chat")
    bench.until(lambda: bench.app.chat.reply.message and bench.app.chat.reply.message.text)
    first = bench.app.chat.current
    bench.window.conversations.newClicked.emit()
    assert shown(bench) == []
    bench.engine.round_gate.open()
    bench.until(lambda: not bench.app.chat.reply.running)
    assert bench.store.thread(first)[-1].text == REPLY
    assert shown(bench) == []


def test_a_streaming_reply_is_whole_when_its_chat_is_opened_again(bench: Bench) -> None:
    bench.engine.round_gate = Gate(open_=False)
    bench.send("First chat")
    bench.until(lambda: bench.app.chat.reply.message and bench.app.chat.reply.message.text)
    first = bench.app.chat.current
    bench.window.conversations.newClicked.emit()
    bench.window.conversations.selected.emit(first)
    assert shown(bench)[-1] == ("assistant", "A hash table is")
    bench.engine.round_gate.open()
    bench.until(lambda: not bench.app.chat.reply.running)
    assert shown(bench)[-1] == ("assistant", REPLY)


def test_nothing_is_sent_in_a_second_chat_while_a_reply_streams_and_the_text_stays(
    bench: Bench,
) -> None:
    bench.engine.round_gate = Gate(open_=False)
    bench.send("First chat")
    bench.until(lambda: bench.app.chat.reply.running)
    bench.window.conversations.newClicked.emit()
    bench.send("Second chat")
    assert bench.window.composer.text() == "Second chat"
    assert len(bench.conversations()) == 1
    bench.engine.round_gate.open()
    bench.until(lambda: not bench.app.chat.reply.running)


def test_deleting_the_chat_that_streams_cancels_its_reply(bench: Bench) -> None:
    bench.engine.round_gate = Gate(open_=False)
    bench.send()
    bench.until(lambda: bench.app.chat.reply.message and bench.app.chat.reply.message.text)
    bench.window.conversations.deleted.emit(bench.app.chat.current)
    assert bench.conversations() == []
    assert shown(bench) == []
    bench.until(lambda: not bench.app.chat.reply.running)
    assert bench.conversations() == []
    bench.engine.round_gate.open()
    assert bench.send_and_wait("Again").text == REPLY


def test_renaming_and_searching_go_through_the_store(bench: Bench) -> None:
    bench.send_and_wait("About trees")
    current = bench.app.chat.current
    bench.window.conversations.renamed.emit(current, "Forest")
    assert bench.conversations()[0].title == "Forest"
    bench.window.conversations.renamed.emit(current, "  ")
    assert bench.conversations()[0].title == "Forest"


def test_a_partial_reply_is_saved_before_it_ends(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.controllers.reply.SAVE_INTERVAL_S", 0.0)
    bench.engine.round_gate = Gate(open_=False)
    bench.send()
    bench.until(lambda: bench.thread() and bench.thread()[-1].text == "A hash table is")
    assert bench.thread()[-1].state == MessageState.STREAMING
    bench.engine.round_gate.open()
    bench.until(lambda: not bench.app.chat.reply.running)


def test_a_disk_that_refuses_is_said_in_words_and_the_text_stays(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise UserError("The data folder cannot be written.", "Free some space.")

    monkeypatch.setattr(bench.store, "create", refuse)
    bench.send("Precious words")
    assert bench.window.composer.text() == "Precious words"
    assert not bench.app.chat.reply.running
    said = bench.window.transcript.findChild(ErrorBox).words
    assert "The data folder cannot be written." in said
    assert "Free some space." in said


def test_a_disk_that_fills_in_mid_reply_does_not_stop_the_stream(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise UserError("The disk is full.", "Free some space.")

    monkeypatch.setattr(bench.store, "finish_reply", refuse)
    bench.send()
    bench.until(lambda: not bench.app.chat.reply.running and shown(bench))
    assert shown(bench)[-1] == ("assistant", REPLY)
    assert "The disk is full." in bench.window.chat_bar.text()


def test_a_chat_longer_than_the_context_is_refused_before_sending_with_a_choice(
    bench: Bench,
) -> None:
    bench.send_and_wait("word " * 1000)
    bench.send_and_wait("word " * 1000)
    bench.send("word " * 200)
    bench.until(lambda: bench.window.chat_bar.text())
    assert "2,048" in bench.window.chat_bar.text()
    assert bench.window.composer.text() == "word " * 200
    assert len(bench.thread()) == 4
    bench.window.chat_bar.press("leave-out-oldest")
    bench.until(lambda: len(bench.engine.requests) == 3)
    bench.until(lambda: not bench.app.chat.reply.running)
    sent = bench.engine.requests[-1].messages
    assert len(sent) == 3
    assert len(bench.thread()) == 6
    assert any("left out" in str(text) for text in bench.thread()[-1].metrics["notices"])


def test_a_single_message_of_5000_words_is_refused_kept_and_can_be_edited(bench: Bench) -> None:
    bench.send("word " * 5000)
    bench.until(lambda: bench.window.chat_bar.text())
    assert bench.window.chat_bar.actions_shown() == ["keep-editing"]
    assert bench.window.composer.text() == "word " * 5000
    bench.window.chat_bar.press("keep-editing")
    assert bench.window.chat_bar.text() == ""
    assert bench.conversations() == []


def test_a_5000_word_paste_goes_through_where_it_fits(make_bench: MakeBench) -> None:
    bench = make_bench(FakeEngine(context_limit=8192))
    reply = bench.send_and_wait("word " * 5000)
    assert reply.text == REPLY


def test_typing_counts_the_tokens_of_the_whole_chat(bench: Bench) -> None:
    counted: list[int] = []
    bench.app.chat.counter.counted.connect(lambda used, limit: counted.append(used))
    bench.window.composer.set_text("one two three")
    bench.until(lambda: 7 in counted)


def test_a_notice_of_the_engine_is_shown_and_kept_with_the_reply(bench: Bench) -> None:
    bench.engine.before = [
        Notice(kind="system-role", message="The template has no system role."),
        Notice(kind="speculation-off", message="the draft context is full."),
    ]
    reply = bench.send_and_wait()
    assert reply.metrics["notices"] == [
        "The template has no system role.",
        "the draft context is full.",
    ]


def test_copying_puts_the_message_on_the_clipboard(bench: Bench, qapp: object) -> None:
    reply = bench.send_and_wait()
    bench.window.transcript.copyClicked.emit(reply.id)
    assert qapp.clipboard().text() == REPLY

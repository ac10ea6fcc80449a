"""What is kept of a reply while it streams and when it ends."""

from app.controllers.reply import ReplyRun, metrics_of
from app.engine.work import Generate, Job
from app.records import Message, MessageState
from app.storage.rounds import rounds_of
from core.cancel import CancelToken
from core.events import Failed, Finished
from core.metrics import summarise
from core.requests import GenerateRequest
from tests.helpers.fake_engine import DEFAULT_ROUNDS

TEXT = "A hash table is a kind of **shelf**."


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make_run(clock: Clock | None = None) -> ReplyRun:
    job = Job(1, Generate(GenerateRequest(messages=(("user", "Hi"),))), CancelToken())
    reply = Message(
        id=7,
        conversation_id=1,
        parent_id=6,
        role="assistant",
        text="",
        created_at=0.0,
        state=MessageState.STREAMING,
    )
    return ReplyRun(job, reply, clock or Clock())


def fed() -> ReplyRun:
    run = make_run()
    for round_ in DEFAULT_ROUNDS:
        run.add(round_)
    return run


def test_every_token_becomes_a_span_and_the_lengths_add_up() -> None:
    message = fed().snapshot()
    assert message.text == TEXT
    assert sum(span.length for span in message.spans) == len(TEXT)
    assert [span.origin for span in message.spans] == [
        "accepted",
        "accepted",
        "accepted",
        "bonus",
        "accepted",
        "resampled",
        "accepted",
        "accepted",
        "bonus",
    ]


def test_the_first_tokens_are_saved_at_once() -> None:
    run = make_run(Clock())
    run.add(DEFAULT_ROUNDS[0])
    assert run.save_due()
    run.add(DEFAULT_ROUNDS[1])
    assert not run.save_due()


def test_a_save_is_due_at_most_once_a_second_and_only_with_news() -> None:
    clock = Clock()
    run = make_run(clock)
    clock.now += 5
    assert not run.save_due()
    run.add(DEFAULT_ROUNDS[0])
    assert run.save_due()
    run.add(DEFAULT_ROUNDS[1])
    clock.now += 0.9
    assert not run.save_due()
    clock.now += 0.1
    assert run.save_due()
    assert not run.save_due()


def test_a_finished_reply_keeps_its_reason_numbers_and_rounds() -> None:
    message = fed().ended(Finished(reason="stop", text=TEXT, metrics=summarise(DEFAULT_ROUNDS)))
    assert message.state == MessageState.COMPLETE
    assert message.metrics["reason"] == "stop"
    assert message.metrics["tokens"] == 9
    assert [round_.accepted for round_ in rounds_of(message)] == [3, 1, 2]


def test_a_stopped_reply_is_marked_stopped() -> None:
    assert fed().ended(Finished(reason="cancelled", text=TEXT)).state == MessageState.STOPPED


def test_a_failed_reply_keeps_what_was_decided_and_its_sentence() -> None:
    message = fed().ended(Failed(kind="bug", message="It broke."))
    assert message.text == TEXT
    assert message.state == MessageState.FAILED
    assert message.error == "It broke."
    assert message.metrics["tokens"] == 9


def test_spans_follow_a_final_text_that_is_shorter_or_longer() -> None:
    short = fed().ended(Finished(reason="stop", text=TEXT[:8]))
    assert sum(span.length for span in short.spans) == 8
    longer = fed().ended(Finished(reason="stop", text=TEXT + "!!"))
    assert sum(span.length for span in longer.spans) == len(TEXT) + 2


def test_the_numbers_of_a_stored_reply_are_those_it_ended_with() -> None:
    ended = summarise(DEFAULT_ROUNDS, prompt_tokens=12, reused_tokens=2, prefill_ms=100.0)
    message = fed().ended(Finished(reason="stop", text=TEXT, metrics=ended))
    assert metrics_of(message, rounds_of(message)) == ended

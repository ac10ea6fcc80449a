"""What is sent to the engine is what is shown."""

from dataclasses import asdict

import pytest

from app.controllers.prompts import certainly_fits, frozen_settings, request_for
from app.records import Message, MessageState
from app.settings import Settings
from core.requests import GenerateRequest, SpeculationParams

SPECULATION = SpeculationParams(drafter="ngram", gamma=3)


def message(id_: int, role: str, text: str, **extra: object) -> Message:
    return Message(
        id=id_, conversation_id=1, parent_id=None, role=role, text=text, created_at=0.0, **extra
    )


def test_the_thread_becomes_the_messages_in_order_under_the_system_prompt() -> None:
    thread = (message(1, "user", "Hi"), message(2, "assistant", "Hello"), message(3, "user", "Go"))
    request = request_for(thread, Settings(system_prompt="Be kind."), SPECULATION)
    assert request.messages == (
        ("system", "Be kind."),
        ("user", "Hi"),
        ("assistant", "Hello"),
        ("user", "Go"),
    )


def test_a_blank_system_prompt_is_not_sent() -> None:
    request = request_for((message(1, "user", "Hi"),), Settings(system_prompt=" \n"), SPECULATION)
    assert request.messages == (("user", "Hi"),)


def test_a_reply_stopped_before_its_first_token_leaves_no_gap_in_the_roles() -> None:
    thread = (
        message(1, "user", "One"),
        message(2, "assistant", "", state=MessageState.STOPPED),
        message(3, "user", "Two"),
    )
    assert request_for(thread, Settings(), SPECULATION).messages == (("user", "One\n\nTwo"),)


def test_every_sampling_setting_reaches_the_request() -> None:
    settings = Settings(
        temperature=0.3,
        top_k=7,
        top_p=0.8,
        min_p=0.1,
        repetition_penalty=1.2,
        presence_penalty=0.4,
        frequency_penalty=0.5,
        seed=11,
        max_new_tokens=99,
        stop=("END",),
    )
    request = request_for((message(1, "user", "Hi"),), settings, SPECULATION)
    stored = frozen_settings(request, "Pair")
    assert stored["sampling"] == {
        "temperature": 0.3,
        "top_k": 7,
        "top_p": 0.8,
        "min_p": 0.1,
        "repetition_penalty": 1.2,
        "presence_penalty": 0.4,
        "frequency_penalty": 0.5,
        "seed": 11,
    }
    assert stored["speculation"] == asdict(SPECULATION)
    assert (stored["max_new_tokens"], stored["stop"], stored["pair"]) == (99, ["END"], "Pair")


@pytest.mark.parametrize(("text", "fits"), [("short", True), ("日" * 600, False)])
def test_bytes_bound_the_tokens(text: str, fits: bool) -> None:
    assert certainly_fits(GenerateRequest(messages=(("user", text),)), 1024) is fits

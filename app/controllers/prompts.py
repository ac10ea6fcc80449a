"""Turns what the person sees and chose into the request that the engine gets."""

from collections.abc import Sequence
from dataclasses import asdict

from app.controllers.force import head_of
from app.records import Message
from app.settings import Settings, sampling_params
from core.events import Loaded
from core.requests import GenerateRequest, SpeculationParams

_TOKENS_AROUND_A_MESSAGE = 16
_TOKENS_AROUND_A_CHAT = 256


def request_for(
    thread: Sequence[Message], settings: Settings, speculation: SpeculationParams
) -> GenerateRequest:
    """Return the request for the reply that follows ``thread``.

    Empty replies (stopped before the first token) are left out; user messages that then stand
    next to each other become one, because templates refuse two in a row.
    """
    messages: list[tuple[str, str]] = []
    if settings.system_prompt.strip():
        messages.append(("system", settings.system_prompt))
    for message in thread:
        if message.role == "assistant" and not message.text:
            continue
        if message.role == "user" and messages and messages[-1][0] == "user":
            messages[-1] = ("user", f"{messages[-1][1]}\n\n{message.text}")
        else:
            messages.append((message.role, message.text))
    return GenerateRequest(
        messages=tuple(messages),
        sampling=sampling_params(settings),
        speculation=speculation,
        max_new_tokens=settings.max_new_tokens,
        stop=settings.stop,
    )


def frozen_settings(
    request: GenerateRequest, pair: str, loaded: Loaded | None = None
) -> dict[str, object]:
    """Return what is stored beside a reply: every parameter that shaped it."""
    return {
        "pair": pair,
        "head": head_of(request.speculation, loaded),
        "device": loaded.device if loaded is not None else "",
        "precision": loaded.precision if loaded is not None else "",
        "sampling": asdict(request.sampling),
        "speculation": asdict(request.speculation),
        "max_new_tokens": request.max_new_tokens,
        "stop": list(request.stop),
    }


def certainly_fits(request: GenerateRequest, limit: int) -> bool:
    """Whether the prompt is below ``limit`` tokens without asking the tokenizer.

    No byte-level or byte-fallback tokenizer makes more tokens than there are bytes of UTF-8.
    """
    most = _TOKENS_AROUND_A_CHAT
    for _, text in request.messages:
        most += len(text.encode("utf-8")) + _TOKENS_AROUND_A_MESSAGE
    return most < limit

"""Plain records shared by storage, controllers and widgets. No Qt, no sqlite, no torch."""

from dataclasses import dataclass, field
from enum import StrEnum


class MessageState(StrEnum):
    """How a message came to its end."""

    COMPLETE = "complete"
    STREAMING = "streaming"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """Still streaming when the program ended; what was saved is shown."""


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """One token of a reply: it covers the next ``length`` characters of the message text.

    Lengths add up to the length of the text. ``origin`` is a value of core.events.Origin.
    """

    length: int
    origin: str
    token_id: int
    target_prob: float
    draft_prob: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, as stored and as shown.

    ``version`` of ``versions`` (from 1) counts the siblings under the same parent.
    ``metrics`` and ``settings`` are JSON objects of plain values (GenerationMetrics as a dict;
    the request's parameters). ``error`` is a sentence to show under a failed reply.
    """

    id: int
    conversation_id: int
    parent_id: int | None
    role: str
    text: str
    created_at: float
    state: str = MessageState.COMPLETE
    spans: tuple[TokenSpan, ...] = ()
    version: int = 1
    versions: int = 1
    metrics: dict[str, object] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation of the list. Times are seconds since the epoch."""

    id: int
    title: str
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class Choice:
    """An entry of a list to choose from; ``reason`` says why it is disabled."""

    value: str
    title: str
    detail: str = ""
    enabled: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class InForce:
    """What the running or next reply really uses; ``off_reason`` is set when nothing drafts.

    ``gamma`` is in words, such as "4" or "automatic (4 now)". ``head`` names the head that drafts
    and the model it is on, "" where none does.
    """

    pair: str = ""
    drafter: str = "off"
    gamma: str = "0"
    rule: str = "exact"
    lossy: bool = False
    device: str = ""
    precision: str = ""
    context_limit: int = 0
    off_reason: str = ""
    head: str = ""

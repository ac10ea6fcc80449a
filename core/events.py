"""What comes out of the engine: frozen plain values on one ordered channel.

A request yields PrefillProgress and Notice events, then Round events, and ends with exactly
one Finished or Failed, after which nothing follows. A cancelled request ends with
``Finished(reason="cancelled")``.
"""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from core.metrics import GenerationMetrics


class Origin(StrEnum):
    """Where a token of the reply came from."""

    ACCEPTED = "accepted"
    """Drafted, and accepted by the target."""
    RESAMPLED = "resampled"
    """The target's replacement at the first rejection."""
    BONUS = "bonus"
    """The target's extra token after it accepted the whole draft."""
    PLAIN = "plain"
    """Decoded without a draft in that round."""
    REJECTED = "rejected"
    """Drafted and not used; only among a round's rejected tokens, never in the reply."""


class FinishReason(StrEnum):
    """Why a reply ended."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token.

    ``text`` is what it adds to the reply; a token that only completes part of a character
    carries "" and the completing token carries the character. ``target_prob`` is the
    target's probability of the token (at temperature 0: of the unscaled logits),
    ``draft_prob`` the drafter's, None where nothing was drafted; 1.0 for a deterministic draft.
    """

    id: int
    text: str
    origin: str
    target_prob: float
    draft_prob: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProgress:
    """A step of loading; ``fraction`` is 0..1, or None while unknown."""

    stage: str
    detail: str = ""
    fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterOption:
    """A drafter of the loaded pair; ``reason`` says in words why it is not available."""

    kind: str
    available: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What is in force after a load. ``notices`` are sentences (e.g. why a draft was dropped).

    ``head`` names the head that can draft, and the model it is on.
    """

    target: str
    draft: str | None
    device: str
    precision: str
    context_limit: int
    drafters: tuple[DrafterOption, ...]
    head: str | None = None
    notices: tuple[str, ...] = ()
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillProgress:
    """How much of the prompt is read, in tokens; ``reused`` came from the last prompt's cache."""

    done: int
    total: int
    reused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something the person should know about this reply, said once.

    ``kind`` is a short stable name (``speculation-off``, ``draft-context``, ``system-role``).
    """

    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaBelief:
    """What an automatic controller goes by, for the source that drafted last.

    ``chosen`` is the longest draft that it allows this source now, 0 where drafting costs;
    ``acceptance`` by position, ``verify_ms`` by rows from 1 on, ``draft_ms`` a token, ``reason``
    a sentence on the choice.
    """

    source: str
    chosen: int = 0
    acceptance: tuple[float, ...]
    verify_ms: tuple[float, ...]
    draft_ms: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One propose, verify, commit cycle.

    ``gamma`` is the draft length asked for, ``proposed`` how many tokens were drafted and
    judged, ``accepted`` how many of them stand in the reply. ``rejected`` are drafted tokens
    that were not used. ``round_ms`` is the wall time of this round, of which ``draft_ms`` and
    ``verify_ms`` are parts; ``elapsed_ms`` is the time since the request began.
    ``context_length`` counts prompt and reply tokens after this round. With an automatic gamma,
    ``gamma`` is the length that was drafted and ``belief`` says what it went by.
    """

    index: int
    gamma: int
    proposed: int
    accepted: int
    tokens: tuple[Token, ...]
    rejected: tuple[Token, ...] = ()
    draft_ms: float = 0.0
    verify_ms: float = 0.0
    round_ms: float = 0.0
    elapsed_ms: float = 0.0
    context_length: int = 0
    belief: GammaBelief | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The reply is complete; ``text`` is the whole of it."""

    reason: str
    text: str
    metrics: GenerationMetrics = field(default_factory=GenerationMetrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The reply broke off.

    ``kind`` is "user" (the person can act; ``message`` says how) or "bug" (``detail`` holds the
    traceback for the log and a report). ``text`` is what had been decided before.
    """

    kind: str
    message: str
    detail: str = ""
    text: str = ""
    metrics: GenerationMetrics = field(default_factory=GenerationMetrics)


Event = LoadProgress | Loaded | PrefillProgress | Notice | Round | Finished | Failed


def to_json(event: Event) -> dict[str, Any]:
    """Return the event as plain values with its name under ``event``."""
    names = {
        LoadProgress: "load_progress",
        Loaded: "loaded",
        PrefillProgress: "prefill_progress",
        Notice: "notice",
        Round: "round",
        Finished: "finished",
        Failed: "failed",
    }
    return {"event": names[type(event)], **asdict(event)}

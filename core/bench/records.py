"""What a benchmark yields: frozen plain values."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.bench.machine import Machine
from core.events import Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A median between its quartiles; ``count`` values stand behind it."""

    median: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One reply: ``case`` and ``configuration`` by name, and its numbers.

    ``digest`` stands for the reply's text: equal texts, equal digests. ``proposed_at`` and
    ``accepted_at`` count rounds by draft position. ``resident_bytes`` is what the process held when
    the reply was complete. ``order`` is its place in the run.
    """

    order: int
    repeat: int
    suite: str
    case: str
    configuration: str
    reason: str
    digest: str
    prompt_tokens: int
    tokens: int
    rounds: int
    proposed: int
    accepted: int
    proposed_at: tuple[int, ...]
    accepted_at: tuple[int, ...]
    tokens_per_second: float | None
    time_to_first_token_ms: float | None
    decode_ms: float
    draft_ms: float
    verify_ms: float
    resident_bytes: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One configuration on one suite (``all`` is every suite together).

    ``speed_up`` is over plain decoding at the same temperature, each reply against the plain reply
    to the same prompt in the same repeat; None for plain decoding itself. ``same_text_share`` of
    the replies are the plain ones, letter by letter; None above temperature 0. The other shares
    are of the decode time. Acceptance is counted over all replies together.
    """

    suite: str
    configuration: str
    lossy: bool
    replies: int
    tokens: int
    tokens_per_second: Spread | None
    speed_up: Spread | None
    same_text_share: float | None
    mean_acceptance_length: float | None
    acceptance_by_position: tuple[float, ...]
    time_to_first_token_ms: Spread | None
    draft_share: float | None
    verify_share: float | None
    resident_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """A whole run. ``complete`` is False where it was stopped or broke off.

    ``peak_bytes`` is the most that the process ever held, loading included. ``heads`` are by the
    names that configurations give them, "" for the pair's own.
    """

    complete: bool
    target: str
    draft: str | None
    device: str
    precision: str
    machine: Machine
    seed: int
    repeats: int
    caches: str
    peak_bytes: int
    summaries: tuple[Summary, ...]
    measurements: tuple[Measurement, ...]
    heads: Mapping[str, str]
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """A reply that is not counted has begun."""

    index: int
    total: int
    configuration: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A reply was measured, ``index`` (from 1) of ``total``."""

    index: int
    total: int
    measurement: Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchEnded:
    """The last event; ``failure`` says what broke off the run. What was measured is kept."""

    result: BenchResult
    failure: Failed | None = None


BenchEvent = WarmUp | Measured | BenchEnded

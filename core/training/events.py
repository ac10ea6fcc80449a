"""What a training run says: frozen plain values, one JSON object a line for a parent process.

A run yields Started, DiskUse and Notice events, then for each stage StageStarted, Progress (in
training with the loss, and now and then an Evaluated; Earlier where it goes on), and Kept whenever
something is safe on the disk. It ends with exactly one Finished, Stopped or Failed.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Stage(StrEnum):
    """What a run does, in this order; a stage that is done already is passed over."""

    LOAD = "load"
    GENERATE = "generate"
    READ = "read"
    """A draft reads the target's text."""
    TRAIN = "train"
    EVALUATE = "evaluate"
    SAVE = "save"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStarted:
    """A stage begins; ``detail`` says of what, ``resumed`` that part of it is there already."""

    stage: str
    detail: str = ""
    resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUse:
    """Said before anything is written: what the run will take, and what is free."""

    folder: str
    needed_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a stage is.

    ``done`` of ``total`` count ``unit``: "tokens", "percent" of the loading, "steps" of the
    training. ``loss`` is the mean of the last steps; ``tokens_per_second`` of this run.
    """

    stage: str
    done: int
    total: int
    unit: str = "tokens"
    seconds_left: float | None = None
    tokens_per_second: float | None = None
    loss: float | None = None
    losses: tuple[float, ...] = ()
    """By step of the head, unweighted."""
    step: int = 0
    epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """Measured on held-out text.

    ``acceptance`` by position, each given that those before stood, ``length`` the mean number of
    tokens a round of a greedy reply would have made. ``tokens`` were looked at.
    """

    step: int
    acceptance: tuple[float, ...]
    length: float
    loss: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """How a training that goes on went before: the loss and the measured length by step."""

    loss_steps: tuple[int, ...]
    losses: tuple[float, ...]
    length_steps: tuple[int, ...]
    lengths: tuple[float, ...]

    @classmethod
    def of(
        cls, losses: Sequence[tuple[int, float]], lengths: Sequence[tuple[int, float]]
    ) -> "Earlier":
        """Return the event of two curves, each of (step, value)."""
        return cls(
            loss_steps=tuple(step for step, _ in losses),
            losses=tuple(loss for _, loss in losses),
            length_steps=tuple(step for step, _ in lengths),
            lengths=tuple(length for _, length in lengths),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Something is safe on the disk: ``kind`` is "text" or "checkpoint"."""

    kind: str
    path: str
    tokens: int = 0
    step: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something the person should know, said once; ``kind`` is a short stable name."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """The run waits; ``paused`` False says that it goes on."""

    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The head, or the draft model, is at ``path``."""

    path: str
    acceptance: tuple[float, ...] = ()
    length: float | None = None
    before: float | None = None
    """The same length before the training, where there was one."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The person stopped the run; the next one with the same choices goes on."""

    stage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The run broke off; ``kind`` is "user" (``message`` says how to mend it) or "bug"."""

    kind: str
    message: str
    detail: str = ""


TrainingEvent = (
    StageStarted
    | DiskUse
    | Progress
    | Evaluated
    | Earlier
    | Kept
    | Notice
    | Paused
    | Finished
    | Stopped
    | Failed
)

_NAMES = {
    StageStarted: "stage_started",
    DiskUse: "disk_use",
    Progress: "progress",
    Evaluated: "evaluated",
    Earlier: "earlier",
    Kept: "kept",
    Notice: "notice",
    Paused: "paused",
    Finished: "finished",
    Stopped: "stopped",
    Failed: "failed",
}


def to_json(event: TrainingEvent) -> dict[str, Any]:
    """Return the event as plain values with its name under ``event``."""
    return {"event": _NAMES[type(event)], **asdict(event)}


def from_json(values: dict[str, Any]) -> TrainingEvent:
    """Return the event of :func:`to_json`'s values. Raises ValueError for what is none."""
    fields = {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
    }
    name = fields.pop("event", None)
    kinds: dict[str, Callable[..., TrainingEvent]] = {known: kind for kind, known in _NAMES.items()}
    if name not in kinds:
        raise ValueError(f"no event of a training run: {name!r}")
    try:
        return kinds[name](**fields)
    except TypeError as error:
        raise ValueError(f"no event of a training run: {error}") from error

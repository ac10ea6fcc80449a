"""What a training is asked for in the window, and what is kept of one that is not finished.

Plain values. No Qt, no torch.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from core.errors import UserError
from core.models.mtp.card import MAX_DEPTH, HeadKind


class Budget(StrEnum):
    """What ends the writing of text: time, which the whole run keeps to, or an amount of text."""

    MINUTES = "minutes"
    TOKENS = "tokens"


class Phase(StrEnum):
    """Whether a training is at work in a process of its own."""

    IDLE = "idle"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"


LIMITS = {
    "depth": (1, MAX_DEPTH),
    "vocabulary": (16, 1 << 20),
    "minutes": (1, 100_000),
    "tokens": (100, 10**9),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingChoices:
    """A head to be trained; ``host`` is "target" or "draft" of the pair.

    ``pair`` and the paths are those of Settings. ``shipped`` takes the prompts that come with the
    program, ``files`` are the person's own. Raises UserError naming the field and its range.
    """

    pair: str
    target_path: str = ""
    draft_path: str = ""
    device: str = "auto"
    precision: str = "auto"
    host: str = "target"
    kind: str = HeadKind.SEQUENTIAL
    depth: int = 3
    vocabulary: int = 8192
    shipped: bool = True
    files: tuple[str, ...] = ()
    budget: str = Budget.MINUTES
    minutes: int = 60
    tokens: int = 600_000

    def __post_init__(self) -> None:
        texts = (self.pair, self.target_path, self.draft_path, self.device, self.precision)
        if not all(isinstance(text, str) for text in (*texts, *self.files)):
            raise UserError("A name of the training is no text.", "Choose it again.")
        known = {
            "host": ("target", "draft"),
            "kind": tuple(str(kind) for kind in HeadKind),
            "budget": tuple(Budget),
        }
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise UserError(
                    f"{name} is {getattr(self, name)!r}.", f"It must be one of: {values}."
                )
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise UserError(f"{name} is {value!r}.", f"It must be from {low:,} to {high:,}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFile:
    """A file of the person's prompts: how many it has, or why it cannot be used."""

    path: str
    prompts: int | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A training that can be gone on with. ``title`` names head and host, ``stage`` was its last.

    ``spent_s`` of its time were used, pauses left out.
    """

    choices: TrainingChoices
    title: str
    stage: str = ""
    fraction: float = 0.0
    spent_s: float = 0.0

    def __post_init__(self) -> None:
        if not (isinstance(self.title, str) and isinstance(self.stage, str)):
            raise UserError("The training has no name.", "Begin it anew.")
        for name, high in (("fraction", 1.0), ("spent_s", float("inf"))):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value <= high:
                raise UserError(f"{name} is {value!r}.", f"It must be from 0 to {high:g}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedHead:
    """What a finished training made: measured on held-out text, ``length`` in tokens a round."""

    path: str
    title: str
    choices: TrainingChoices
    acceptance: tuple[float, ...] = field(default_factory=tuple)
    length: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskPlan:
    """What a training takes of the disk of ``folder`` at most, and what is free there."""

    folder: str
    needed_bytes: int
    free_bytes: int

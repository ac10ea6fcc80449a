"""How far the training is that runs or can be gone on with, kept so that any end leaves it."""

from collections.abc import Callable
from dataclasses import replace

from app.storage.training import UnfinishedStore
from app.training_records import Unfinished
from core.errors import UserError
from core.training.events import Stage

STAGE_WORDS: dict[str, str] = {
    Stage.LOAD: "loading the model",
    Stage.GENERATE: "writing text",
    Stage.READ: "reading",
    Stage.TRAIN: "training",
    Stage.EVALUATE: "measuring",
    Stage.SAVE: "saving",
}


class TrainingProgress:
    """The training with its stage and the time it took; ``clock`` gives seconds. No Qt."""

    def __init__(self, store: UnfinishedStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._since_s: float | None = None
        """When the time that counts began to run; None while it does not."""
        self.run: Unfinished | None = store.load()
        self.stage, self.fraction = "", 0.0
        """What is under way; a training that is gone on with may be further in its record."""

    def begin(self, run: Unfinished) -> None:
        """A training begins or goes on. Raises UserError where that cannot be kept."""
        self._store.save(run)
        self.run = run
        self.stage, self.fraction = "", 0.0

    def forget(self) -> None:
        """There is nothing to go on with."""
        self._store.remove()
        self.run = None

    def reach(self, stage: str, fraction: float) -> None:
        """Note how far it is; going on begins with stages that are done already."""
        self.stage, self.fraction = stage, fraction
        if self.run is None:
            return
        before = self.run.stage
        if _place(stage) > _place(before) or (stage == before and fraction):
            self.run = replace(self.run, stage=stage, fraction=fraction)

    def count_time(self, runs: bool) -> None:
        """Count the time until now, and from now on where the training ``runs``."""
        now_s = self._clock()
        if self._since_s is not None and self.run is not None:
            self.run = replace(self.run, spent_s=self.run.spent_s + now_s - self._since_s)
        self._since_s = now_s if runs else None

    def keep(self) -> str:
        """Keep where the training is; return why that could not be done, "" where it could."""
        self.count_time(self._since_s is not None)
        if self.run is None:
            return ""
        try:
            self._store.save(self.run)
        except UserError as error:
            return str(error)
        return ""

    def nothing_made(self) -> bool:
        """Whether it has not come so far that something could be lost."""
        return self.run is None or self.run.stage in ("", Stage.LOAD)

    def words(self) -> str:
        """Return what is under way, in two or three words."""
        part = f" {self.fraction:.0%}" if self.fraction else ""
        return f"Head: {STAGE_WORDS.get(self.stage, 'starting')}{part}"


def how_far(run: Unfinished) -> str:
    """Return how far a training is, in a sentence."""
    where = STAGE_WORDS.get(run.stage, "")
    part = f" at {run.fraction:.0%}" if run.fraction else ""
    return f"{run.title}: stopped {f'while {where}{part}' if where else 'at its beginning'}."


def _place(stage: str) -> int:
    """Return which stage it is, from 0; -1 before the first."""
    stages = list(STAGE_WORDS)
    return stages.index(stage) if stage in stages else -1

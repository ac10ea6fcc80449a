"""What the stages of a run share: saying what happens, and stopping between two steps."""

import time
from collections.abc import Callable

from core.errors import Cancelled
from core.training.events import Progress, Stage, StageStarted, TrainingEvent

_PROGRESS_EVERY_S = 0.5

Emit = Callable[[TrainingEvent], None]


class Report:
    """The ear of a run, and the time it began. Used by one thread."""

    def __init__(self, emit: Emit, stopped: Callable[[], bool]) -> None:
        self.emit = emit
        self._stopped = stopped
        self._waited_s = 0.0
        self.stage = Stage.LOAD
        self.started_s = time.monotonic()
        self._progress_due_s = 0.0

    @property
    def seconds(self) -> float:
        """How long the run took so far, pauses left out."""
        return self.clock() - self.started_s

    def clock(self) -> float:
        """Return the time in seconds, on a clock that stands still while the run is paused."""
        return time.monotonic() - self._waited_s

    def stopped(self) -> bool:
        """Wait while the run is to pause; return whether the person wants it to stop."""
        before_s = time.monotonic()
        try:
            return self._stopped()
        finally:
            self._waited_s += time.monotonic() - before_s

    def begin(self, stage: Stage, detail: str, *, resumed: bool = False) -> None:
        """Say that a stage begins. Raises Cancelled."""
        self.check()
        self.stage = stage
        self._progress_due_s = 0.0
        self.emit(StageStarted(stage=stage, detail=detail, resumed=resumed))

    def check(self) -> None:
        """Raise Cancelled where the person wants the run to stop."""
        if self.stopped():
            raise Cancelled

    def progress(self, progress: Progress) -> None:
        """Say how far a stage is, a few times a second at the most; the end is always said."""
        if time.monotonic() >= self._progress_due_s or progress.done >= progress.total:
            self._progress_due_s = time.monotonic() + _PROGRESS_EVERY_S
            self.emit(progress)

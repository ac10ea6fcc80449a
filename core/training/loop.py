"""The loop of every training: steps, a look at held-out text now and then, and checkpoints."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from core.errors import Cancelled, UserError
from core.training.acceptance import Acceptance
from core.training.checkpoint import (
    Resumable,
    remove_checkpoint,
    restore_checkpoint,
    save_checkpoint,
)
from core.training.data import Batch, TextData
from core.training.events import Earlier, Evaluated, Kept, Stage
from core.training.meter import Meter
from core.training.report import Report

_CHECKPOINT_EVERY_S = 60.0
_EVALUATIONS = 12
"""How often a training is measured on the way."""
_EVALUATED_SEQUENCES = 32
"""About how many held-out replies are looked at on the way; all of them are at the end."""
_TIMED_STEPS = (3, 20)
"""Steps after which it is decided how many there is time for; the first ones take longer."""

Measure = Callable[[Iterable[Batch]], Acceptance]


class Trainable(Resumable, Protocol):
    """What the loop needs of a trainer beside its state."""

    total_steps: int

    @property
    def done(self) -> bool:
        """Whether all steps were taken."""

    @property
    def epoch(self) -> int:
        """How many times all of the text was seen."""

    def train_step(self) -> tuple[float, tuple[float, ...], int]:
        """Take one step; return the loss, its parts and the tokens seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A trainer with what it is measured by and on, and the folder of its checkpoint.

    ``fixed`` are plain values that a resumed run must share.
    """

    trainer: Trainable
    measure: Measure
    measured: TextData
    batch_tokens: int
    folder: Path
    fixed: dict[str, Any]
    report: Report

    def train(self, *, anew: bool, minutes: float | None = None) -> float:
        """Take all steps, or as many as the minutes allow since the run began; return the loss.

        Goes on where a training of the same choices stopped, unless ``anew``. Raises Cancelled
        with everything kept, and UserError.
        """
        trainer, report = self.trainer, self.report
        most = trainer.total_steps
        meter = Meter(trainer, report.clock)
        if anew:
            remove_checkpoint(self.folder)
        resumed = restore_checkpoint(self.folder, trainer, self.fixed, meter)
        steps = f"{trainer.total_steps} steps" if minutes is None else f"up to {most} steps"
        done = f", {trainer.step} of them taken" if trainer.step else ""
        report.begin(Stage.TRAIN, steps + done, resumed=resumed)
        if resumed:
            report.emit(Earlier.of(meter.curve, meter.measured))
        kept_s = time.monotonic()
        while not trainer.done:
            if report.stopped():
                self._keep(meter)
                raise Cancelled
            loss, by_step, tokens = trainer.train_step()
            if not math.isfinite(loss):
                raise UserError(
                    "The training has diverged: its loss is not a number any more.",
                    "Begin it anew with a lower --learning-rate.",
                )
            meter.after(loss, by_step, tokens)
            if minutes is not None and meter.steps in _TIMED_STEPS:
                left_s = max(0.0, minutes * 60 - report.seconds)
                fits = trainer.step + int(left_s / meter.seconds_a_step)
                trainer.total_steps = max(trainer.step + 1, min(most, fits))
            report.progress(meter.progress())
            if trainer.step % max(1, trainer.total_steps // _EVALUATIONS) == 0 and not trainer.done:
                found = self.evaluate(meter.loss, _EVALUATED_SEQUENCES)
                meter.measured.append((trainer.step, found.length))
            if time.monotonic() - kept_s > _CHECKPOINT_EVERY_S:
                self._keep(meter)
                kept_s = time.monotonic()
        self._keep(meter)
        return meter.loss

    def evaluate(self, loss: float, sequences: int | None = None) -> Acceptance:
        """Measure on about that many held-out replies, or on all, and say so."""
        plan = self.measured.plan(self.batch_tokens, None)
        every = 1 if sequences is None else max(1, round(len(self.measured) / sequences))
        # Sorted by length, so that every so many of them are of all lengths.
        found = self.measure(self.measured.batch(part) for part in plan[::every])
        self.report.emit(
            Evaluated(
                step=self.trainer.step,
                acceptance=found.by_step,
                length=found.length,
                loss=loss,
                tokens=found.tokens,
            )
        )
        return found

    def forget(self) -> None:
        """Remove the checkpoint: what was trained is kept elsewhere."""
        remove_checkpoint(self.folder)

    def _keep(self, meter: Meter) -> None:
        path = save_checkpoint(self.folder, self.trainer, self.fixed, meter)
        self.report.emit(Kept(kind="checkpoint", path=str(path), step=self.trainer.step))

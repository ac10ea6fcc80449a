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
from core.training.events import Evaluated, Kept, Notice, Stage
from core.training.meter import Meter
from core.training.report import Report

_CHECKPOINT_EVERY_S = 60.0
_EVALUATIONS = 12
"""How often a training is measured on the way."""
_EVALUATED_SEQUENCES = 32
"""About how many held-out replies are looked at on the way; all of them are at the end."""
_TIMED_STEPS = 20
"""Steps after which the speed is known."""

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

    def train(self, *, resume: bool, minutes: float | None = None) -> float:
        """Take all steps, or as many as the minutes allow since the run began; return the loss.

        Raises Cancelled with everything kept, and UserError.
        """
        trainer, report = self.trainer, self.report
        kept = self._begun(resume)
        report.begin(Stage.TRAIN, f"{trainer.total_steps} steps", resumed=kept is not None)
        meter = Meter(trainer, report.clock)
        meter.loss = (kept or {}).get("loss", 0.0)
        kept_s = time.monotonic()
        while not trainer.done:
            if report.stopped():
                self._keep(meter.loss)
                raise Cancelled
            loss, by_step, tokens = trainer.train_step()
            if not math.isfinite(loss):
                raise UserError(
                    "The training has diverged: its loss is not a number any more.",
                    "Begin it anew with a lower --learning-rate.",
                )
            meter.after(loss, by_step, tokens)
            if minutes is not None and trainer.step == _TIMED_STEPS:
                self._fit(meter, minutes)
            report.progress(meter.progress())
            if trainer.step % max(1, trainer.total_steps // _EVALUATIONS) == 0 and not trainer.done:
                self.evaluate(meter.loss, _EVALUATED_SEQUENCES)
            if time.monotonic() - kept_s > _CHECKPOINT_EVERY_S:
                self._keep(meter.loss)
                kept_s = time.monotonic()
        self._keep(meter.loss)
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

    def _fit(self, meter: Meter, minutes: float) -> None:
        """Take as many steps as there is time for, decided once."""
        left_s = minutes * 60 - self.report.seconds
        fits = _TIMED_STEPS + int(max(0.0, left_s) / meter.seconds_a_step)
        self.trainer.total_steps = max(_TIMED_STEPS + 1, min(self.trainer.total_steps, fits))

    def _begun(self, resume: bool) -> dict[str, Any] | None:
        """Go on with what is kept, or forget it; return its plain values where it goes on."""
        if resume:
            kept = restore_checkpoint(self.folder, self.trainer, self.fixed)
            if kept is None:
                message = "No training is kept that was begun with these choices: this one begins."
                self.report.emit(Notice(kind="nothing-to-resume", message=message))
            return kept
        if remove_checkpoint(self.folder):
            message = (
                "A training was begun with these choices before. This one begins anew, and what "
                "was kept of the other is gone; with --resume a training goes on instead."
            )
            self.report.emit(Notice(kind="begun-anew", message=message))
        return None

    def _keep(self, loss: float) -> None:
        path = save_checkpoint(self.folder, self.trainer, self.fixed, loss=loss)
        self.report.emit(Kept(kind="checkpoint", path=str(path), step=self.trainer.step))

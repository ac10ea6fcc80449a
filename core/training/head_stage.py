"""The stages that train a head, measure it and keep where it stands."""

import time
from pathlib import Path
from typing import Any

from core.errors import Cancelled
from core.training.acceptance import Acceptance, measure
from core.training.checkpoint import remove_checkpoint, restore_checkpoint, save_checkpoint
from core.training.data import TextData
from core.training.events import Evaluated, Kept, Stage
from core.training.meter import Meter
from core.training.mtp import Trainer
from core.training.report import Report
from core.training.request import short_hash

_CHECKPOINT_EVERY_S = 60.0
_EVALUATIONS = 12
"""How often a training is measured on the way."""
_EVALUATED_SEQUENCES = 32
"""About how many held-out replies are looked at on the way; all of them are at the end."""
_TIMED_STEPS = 20
"""Steps after which the speed is known."""


class HeadStage:
    """Trains a head with what it is measured on and where it is kept."""

    def __init__(self, trainer: Trainer, measured: TextData, folder: Path, report: Report) -> None:
        """``folder`` is that of the checkpoint."""
        self._trainer = trainer
        self._measured = measured
        self._folder = folder
        self._report = report
        self._fixed: dict[str, Any] = {
            **trainer.settings.fixed(),
            "vocabulary": short_hash(list(trainer.head.card.vocabulary)),
        }

    def train(self, *, resume: bool, minutes: float | None) -> float:
        """Take all steps, or as many as the minutes allow since the run began; return the loss.

        Raises Cancelled with everything kept, and UserError.
        """
        trainer, report = self._trainer, self._report
        resumed = resume and restore_checkpoint(self._folder, trainer, self._fixed)
        if not resume:
            remove_checkpoint(self._folder)
        report.begin(Stage.TRAIN, f"{trainer.total_steps} steps", resumed=resumed)
        meter = Meter(trainer)
        kept_s = time.monotonic()
        while not trainer.done:
            if report.stopped():
                self._keep()
                raise Cancelled
            meter.after(*trainer.train_step())
            if minutes is not None and trainer.step == _TIMED_STEPS:
                self._fit(meter, minutes)
            report.progress(meter.progress())
            if trainer.step % max(1, trainer.total_steps // _EVALUATIONS) == 0 and not trainer.done:
                self.evaluate(meter.loss, _EVALUATED_SEQUENCES)
            if time.monotonic() - kept_s > _CHECKPOINT_EVERY_S:
                self._keep()
                kept_s = time.monotonic()
        self._keep()
        return meter.loss

    def evaluate(self, loss: float, sequences: int | None = None) -> Acceptance:
        """Measure the head on about that many held-out replies, or on all, and say so."""
        trainer = self._trainer
        plan = self._measured.plan(trainer.settings.batch_tokens, None)
        every = 1 if sequences is None else max(1, round(len(self._measured) / sequences))
        # Sorted by length, so that every so many of them are of all lengths.
        batches = (self._measured.batch(part) for part in plan[::every])
        with trainer.averaged():
            found = measure(
                trainer.head,
                trainer.outputs,
                batches,
                trainer.teacher,
                len(trainer.settings.weights),
            )
        self._report.emit(
            Evaluated(
                step=trainer.step,
                acceptance=found.by_step,
                length=found.length,
                loss=loss,
                tokens=found.tokens,
            )
        )
        return found

    def _fit(self, meter: Meter, minutes: float) -> None:
        """Take as many steps as there is time for, decided once."""
        left_s = minutes * 60 - self._report.seconds
        fits = _TIMED_STEPS + int(max(0.0, left_s) / meter.seconds_a_step)
        self._trainer.total_steps = max(_TIMED_STEPS + 1, min(self._trainer.total_steps, fits))

    def _keep(self) -> None:
        path = save_checkpoint(self._folder, self._trainer, self._fixed)
        self._report.emit(Kept(kind="checkpoint", path=str(path), step=self._trainer.step))

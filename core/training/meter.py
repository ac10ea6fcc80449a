"""How a training goes: losses and speed of the last steps."""

import time
from collections.abc import Callable
from typing import Protocol

from core.training.events import Progress, Stage

_SHARE = 0.05
"""What a new loss weighs in the mean that is shown."""


class Steps(Protocol):
    """What is counted of a trainer."""

    step: int
    total_steps: int

    @property
    def epoch(self) -> int:
        """How many times all of the text was seen."""


class Meter:
    """Losses, as a mean that follows the last steps, and the speed since it was made.

    ``clock`` gives seconds.
    """

    def __init__(self, trainer: Steps, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._trainer = trainer
        self._first_step = trainer.step
        self._started_s = clock()
        self._tokens = 0
        self.loss = 0.0
        self._losses: tuple[float, ...] = ()

    @property
    def seconds_a_step(self) -> float:
        """How long a step takes."""
        return (self._clock() - self._started_s) / max(1, self._trainer.step - self._first_step)

    def after(self, loss: float, by_step: tuple[float, ...], tokens: int) -> None:
        """Count one step."""
        self._tokens += tokens
        if not self._losses:
            self.loss, self._losses = loss, by_step
        self.loss += _SHARE * (loss - self.loss)
        self._losses = tuple(
            mean + _SHARE * (new - mean) for mean, new in zip(self._losses, by_step, strict=True)
        )

    def progress(self) -> Progress:
        """Return how far the training is."""
        trainer = self._trainer
        taken = max(1, trainer.step - self._first_step)
        mean_tokens = self._tokens / taken
        spent_s = self._clock() - self._started_s
        return Progress(
            stage=Stage.TRAIN,
            done=round(trainer.step * mean_tokens),
            total=round(trainer.total_steps * mean_tokens),
            seconds_left=(trainer.total_steps - trainer.step) * self.seconds_a_step,
            tokens_per_second=self._tokens / max(1e-6, spent_s),
            loss=self.loss,
            losses=self._losses,
            step=trainer.step,
            epoch=trainer.epoch,
        )

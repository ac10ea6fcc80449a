"""How a training goes: losses and speed of the last steps, and the curve of its losses."""

import time
from collections.abc import Callable
from typing import Any, Protocol

from core.training.events import Progress, Stage

_SHARE = 0.05
"""What a new loss weighs in the mean that is shown."""
_POINTS = 512
"""Points of the curve that are kept; every second one goes where there are more."""


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
        self._sums: tuple[float, ...] = ()
        """Of the loss, and of the losses by step; what the first ones lack, ``_weight`` says."""
        self._weight = 0.0
        self.curve: list[tuple[int, float]] = []
        """Steps, each with the mean loss after it."""
        self.measured: list[tuple[int, float]] = []
        """Steps, each with the acceptance length that was measured after it."""
        self._every = 1

    @property
    def loss(self) -> float:
        """The mean loss of the last steps; 0 before the first."""
        return self._sums[0] / self._weight if self._sums else 0.0

    @property
    def steps(self) -> int:
        """How many were taken since it was made."""
        return self._trainer.step - self._first_step

    @property
    def seconds_a_step(self) -> float:
        """How long a step takes."""
        return (self._clock() - self._started_s) / max(1, self.steps)

    def after(self, loss: float, by_step: tuple[float, ...], tokens: int) -> None:
        """Count one step."""
        self._tokens += tokens
        new = (loss, *by_step)
        old = self._sums if len(self._sums) == len(new) else (0.0,) * len(new)
        self._sums = tuple(a + _SHARE * (b - a) for a, b in zip(old, new, strict=True))
        self._weight += _SHARE * (1 - self._weight)
        if self._trainer.step % self._every == 0:
            self.curve.append((self._trainer.step, self.loss))
        if len(self.curve) > _POINTS:
            del self.curve[::2]
            self._every *= 2

    def kept(self) -> dict[str, Any]:
        """Return plain values for :meth:`restore`."""
        return {
            "sums": list(self._sums),
            "weight": self._weight,
            "curve": [list(point) for point in self.curve],
            "every": self._every,
            "measured": [list(point) for point in self.measured],
        }

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on from :meth:`kept`, with the trainer at its step.

        Raises KeyError, TypeError and ValueError for other values.
        """
        self._first_step, self._started_s = self._trainer.step, self._clock()
        self._sums = tuple(map(float, kept["sums"]))
        self._weight, self._every = float(kept["weight"]), kept["every"]
        if type(self._every) is not int or self._every < 1:
            raise ValueError("a curve needs whole steps")
        if not (0 < self._weight <= 1 if self._sums else self._weight == 0):
            raise ValueError("a mean needs a weight")
        self.curve = [(int(step), float(loss)) for step, loss in kept["curve"]]
        self.measured = [(int(step), float(length)) for step, length in kept["measured"]]

    def progress(self) -> Progress:
        """Return how far the training is."""
        trainer = self._trainer
        spent_s = self._clock() - self._started_s
        return Progress(
            stage=Stage.TRAIN,
            unit="steps",
            done=trainer.step,
            total=trainer.total_steps,
            seconds_left=(trainer.total_steps - trainer.step) * self.seconds_a_step,
            tokens_per_second=self._tokens / max(1e-6, spent_s),
            loss=self.loss,
            losses=tuple(value / self._weight for value in self._sums[1:]),
            step=trainer.step,
            epoch=trainer.epoch,
        )

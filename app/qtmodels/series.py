"""What the plots draw of a running reply, one row a round, in bounded memory."""

import math
from dataclasses import dataclass

import numpy as np

from app.qtmodels.ring import Floats, RingBuffer
from core.events import Round

CAPACITY = 4096
"""Rounds kept for the plots. Older ones leave the picture, not the numbers."""

SPEED_MEMORY_MS = 1500.0
"""How far back the smoothed speed looks, in milliseconds of decoding."""

LENGTH_MEMORY = 12.0
"""How far back the smoothed acceptance length looks, in rounds."""

_FIELDS = 10


@dataclass(frozen=True, slots=True)
class Series:
    """Columns of equal length, one entry a round, oldest first.

    ``speed`` and ``speed_smooth`` are in tokens/s, ``length`` and ``length_smooth`` in tokens a
    round, ``draft_share`` and ``verify_share`` in 0..1 of the round's time.
    """

    index: Floats
    speed: Floats
    speed_smooth: Floats
    length: Floats
    length_smooth: Floats
    gamma: Floats
    proposed: Floats
    accepted: Floats
    draft_share: Floats
    verify_share: Floats

    def __len__(self) -> int:
        return len(self.index)


class RoundSeries:
    """Collects rounds for the plots.

    Smoothing is exponential: speed is decayed tokens over decayed time, so that a very short
    round cannot throw it; acceptance length is averaged over rounds.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._ring = RingBuffer(capacity, _FIELDS)
        self._count = 0
        self._tokens = self._ms = 0.0
        self._length = self._weight = 0.0
        self._speed = 0.0

    def __len__(self) -> int:
        return len(self._ring)

    @property
    def nbytes(self) -> int:
        """Memory taken, in bytes; it never grows."""
        return self._ring.nbytes

    def add(self, round_: Round) -> None:
        """Add one round."""
        self._count += 1
        tokens = len(round_.tokens)
        length = 1.0 + round_.accepted
        if round_.round_ms > 0:
            keep = math.exp(-round_.round_ms / SPEED_MEMORY_MS)
            self._tokens = self._tokens * keep + tokens
            self._ms = self._ms * keep + round_.round_ms
            self._speed = 1000.0 * self._tokens / self._ms
        keep = math.exp(-1.0 / LENGTH_MEMORY)
        self._length = self._length * keep + length
        self._weight = self._weight * keep + 1.0
        total_ms = max(round_.round_ms, round_.draft_ms + round_.verify_ms)
        self._ring.append(
            (
                self._count,
                1000.0 * tokens / round_.round_ms if round_.round_ms > 0 else self._speed,
                self._speed,
                length,
                self._length / self._weight,
                round_.gamma,
                round_.proposed,
                round_.accepted,
                round_.draft_ms / total_ms if total_ms > 0 else 0.0,
                round_.verify_ms / total_ms if total_ms > 0 else 0.0,
            )
        )

    def tail(self, count: int | None = None) -> Series:
        """Return the newest ``count`` rounds, or all that are kept."""
        return Series(*self._ring.tail(count))

    def clear(self) -> None:
        """Forget every round."""
        self._ring.clear()
        self._count = 0
        self._tokens = self._ms = self._length = self._weight = self._speed = 0.0


def thinned(x: Floats, y: Floats, limit: int) -> tuple[Floats, Floats]:
    """Return at most about ``limit`` points that keep every peak and dip of (``x``, ``y``).

    Groups of neighbours become their lowest and highest point, in that order.
    """
    group = math.ceil(2 * len(x) / limit) if limit > 0 else 1
    if group <= 2:
        return x, y
    whole = len(y) // group * group
    blocks = y[:whole].reshape(-1, group)
    ys = np.empty(2 * len(blocks))
    ys[0::2] = blocks.min(axis=1)
    ys[1::2] = blocks.max(axis=1)
    xs = np.repeat(x[:whole:group], 2)
    return np.concatenate((xs, x[whole:])), np.concatenate((ys, y[whole:]))


def averaged(x: Floats, y: Floats, limit: int) -> tuple[Floats, Floats]:
    """Return at most about ``limit`` points: groups of neighbours become their mean.

    The newest point stays as it is, so that the line ends where the numbers are.
    """
    group = math.ceil(len(x) / limit) if limit > 0 else 1
    if group <= 1:
        return x, y
    whole = len(y) // group * group
    xs = x[:whole].reshape(-1, group).mean(axis=1)
    ys = y[:whole].reshape(-1, group).mean(axis=1)
    return np.append(xs, x[-1]), np.append(ys, y[-1])

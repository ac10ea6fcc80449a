"""A whole curve in bounded memory: it gets coarser as it gets longer."""

import numpy as np

from app.qtmodels.ring import Floats

CAPACITY = 2048
"""Points of a curve; more than a plot has pixels."""


class Curve:
    """Points in the order of their coming. Where it is full, every second one goes.

    Unlike a ring it keeps its beginning, which is what a training's curve is looked at for. The
    newest point is always the last. Raises ValueError for a capacity below 4.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 4:
            raise ValueError("A curve needs at least four points.")
        self._points = np.zeros((2, capacity), dtype=np.float64)
        self._length = 0
        self._stride = 1
        self._since = 0

    def __len__(self) -> int:
        return self._length

    def append(self, x: float, y: float) -> None:
        """Add a point; between two that are kept, the newest takes the place of the one before."""
        self._since += 1
        if self._length >= 2 and self._since < self._stride:
            self._points[:, self._length - 1] = (x, y)
            return
        self._since = 0
        if self._length == self._points.shape[1]:
            kept = self._points[:, ::2].copy()
            self._length = kept.shape[1]
            self._points[:, : self._length] = kept
            self._stride *= 2
        self._points[:, self._length] = (x, y)
        self._length += 1

    def points(self) -> tuple[Floats, Floats]:
        """Return copies of all x and all y."""
        x, y = self._points[:, : self._length].copy()
        return x, y

    def clear(self) -> None:
        """Forget every point."""
        self._length, self._stride, self._since = 0, 1, 0

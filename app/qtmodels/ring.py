"""A bounded table of numbers: the newest rows stay, the oldest make room."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class RingBuffer:
    """Holds the last ``capacity`` rows of ``columns`` numbers in memory taken once.

    Raises ValueError for a capacity or a column count below 1.
    """

    def __init__(self, capacity: int, columns: int) -> None:
        if capacity < 1 or columns < 1:
            raise ValueError("A ring buffer needs at least one row and one column.")
        self._rows = np.zeros((columns, capacity), dtype=np.float64)
        self._next = 0
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def capacity(self) -> int:
        """The most rows held."""
        return self._rows.shape[1]

    @property
    def nbytes(self) -> int:
        """Memory taken for the rows, in bytes."""
        return self._rows.nbytes

    def append(self, row: Sequence[float]) -> None:
        """Add one row; when the buffer is full the oldest row goes."""
        self._rows[:, self._next] = row
        self._next = (self._next + 1) % self.capacity
        self._length = min(self._length + 1, self.capacity)

    def tail(self, count: int | None = None) -> Floats:
        """Return a copy of the newest ``count`` rows (all without it), oldest first.

        The result is [columns, rows] and stays as it is when rows are added later.
        """
        wanted = self._length if count is None else max(0, min(count, self._length))
        indices = np.arange(self._next - wanted, self._next) % self.capacity
        return self._rows[:, indices]

    def clear(self) -> None:
        """Forget every row; the memory stays."""
        self._next = 0
        self._length = 0

"""How many tokens to draft in the next round."""

from typing import Protocol


class GammaController(Protocol):
    """Chooses the draft length of each round and learns from what came of it."""

    def next(self) -> int:
        """Return the draft length to ask for, at least 0."""

    def observe(self, proposed: int, accepted: int, draft_ms: float, verify_ms: float) -> None:
        """Learn the outcome of a round."""


class FixedGamma:
    """The same draft length every round."""

    def __init__(self, gamma: int) -> None:
        self._gamma = gamma

    def next(self) -> int:
        """Return the fixed draft length."""
        return self._gamma

    def observe(self, proposed: int, accepted: int, draft_ms: float, verify_ms: float) -> None:
        """Ignore the outcome: the length is fixed."""

"""Whether drafting pays, said in one sentence where it does not. No Qt."""

from collections import deque
from typing import Final

from app.widgets.formats import is_slower
from core.events import GammaBelief, Round
from core.requests import AUTO_GAMMA

WINDOW_ROUNDS: Final = 32
_PROBES = 4
"""Drafts in a window that are probes of a source that is off, not a change of mind."""


class DraftingCost:
    """Follows the rounds of one reply with an automatic gamma."""

    def __init__(self) -> None:
        self.belief: GammaBelief | None = None
        self._drafted: deque[int] = deque(maxlen=WINDOW_ROUNDS)

    def add(self, round_: Round) -> None:
        """Take in one round."""
        if round_.belief is not None:
            self.belief = round_.belief
            self._drafted.append(round_.proposed)

    def note(self) -> str:
        """Return a sentence where the automatic gamma has settled at 0, else ""."""
        full = len(self._drafted) == WINDOW_ROUNDS
        if not full or self.belief is None or sum(map(bool, self._drafted)) > _PROBES:
            return ""
        if self.belief.chosen > 0:
            return ""  # it would draft, and finds nothing to propose
        return f"Automatic gamma has settled at 0. {self.belief.reason}"


def slower_note(speed_up: object, gamma: object, belief: GammaBelief | None) -> str:
    """Return a sentence where a reply was slower than plain decoding, else "".

    ``speed_up`` and ``gamma`` are as stored beside a reply, and may be anything there.
    """
    if not isinstance(speed_up, int | float) or not is_slower(speed_up):
        return ""
    sentence = f"Speculation is costing speed: this reply ran at {speed_up:.2f}× plain decoding."
    if gamma != AUTO_GAMMA:
        return f"{sentence} An automatic gamma drafts only what pays."
    return f"{sentence} {belief.reason}" if belief is not None else sentence

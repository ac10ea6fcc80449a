"""Rounds as an engine would tell them, for plots and numbers."""

import random
from collections.abc import Sequence

from core.events import Origin, Round, Token


def make_round(
    index: int,
    *,
    gamma: int = 4,
    accepted: int = 0,
    proposed: int | None = None,
    draft_ms: float = 10.0,
    verify_ms: float = 85.0,
    round_ms: float = 100.0,
    elapsed_ms: float = 0.0,
) -> Round:
    """One round whose tokens are the accepted ones and one of the target."""
    proposed = gamma if proposed is None else proposed
    last = Origin.BONUS if accepted == proposed else Origin.RESAMPLED
    origins = [Origin.ACCEPTED] * accepted + [last if proposed else Origin.PLAIN]
    return Round(
        index=index,
        gamma=gamma,
        proposed=proposed,
        accepted=accepted,
        tokens=tuple(
            Token(id=place, text="x", origin=origin, target_prob=0.5)
            for place, origin in enumerate(origins)
        ),
        draft_ms=draft_ms,
        verify_ms=verify_ms,
        round_ms=round_ms,
        elapsed_ms=elapsed_ms,
    )


def rounds_of(accepted: Sequence[int], *, gamma: int = 4) -> list[Round]:
    """One round for each number of accepted tokens, after a second of prefill."""
    return [
        make_round(place, gamma=gamma, accepted=count, elapsed_ms=1000.0 + 100.0 * (place + 1))
        for place, count in enumerate(accepted)
    ]


def many_rounds(count: int, *, gamma: int = 5, seed: int = 3) -> list[Round]:
    """A long reply with luck that comes and goes."""
    source = random.Random(seed)
    return rounds_of([source.randint(0, gamma) for _ in range(count)], gamma=gamma)

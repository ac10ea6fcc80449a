"""How fast to learn, by step."""

import math


def warm_cosine(step: int, total: int, warm_up: int, final: float) -> float:
    """Return the share of the highest rate: a linear start, then half a cosine to ``final``.

    The start takes a tenth of all steps at the most.
    """
    warm_up = min(warm_up, total // 10)
    if step < warm_up:
        return (step + 1) / (warm_up + 1)
    done = min(1.0, (step - warm_up) / max(1, total - warm_up))
    return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * done))

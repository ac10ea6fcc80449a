"""What a training takes of the disk, from plain numbers, so that it can be said before one begins.

Needs no torch.
"""

from core.models.mtp.card import HeadKind

DEFAULT_TOKENS = 600_000
"""Tokens of replies that are generated where nobody says how many."""
_REPLY_RATE = 300
"""Tokens a second that generation is taken to make before it began."""
_PROMPT_SHARE = 1.8
"""Tokens kept for one of a reply: prompts are kept, too."""


def thirds(layers: int) -> tuple[int, ...]:
    """Return after which layers the states are read: thirds of the way, and the end."""
    return tuple(sorted({max(1, layers // 3), max(1, 2 * layers // 3), layers}))


def states_kept(kind: str, layers: int) -> int:
    """Return how many states of a token are kept for a head of ``kind`` on that many layers."""
    return 1 if kind == HeadKind.PARALLEL else len(thirds(layers))


def planned_tokens(tokens: int | None, minutes: float | None, most: int | None = None) -> int:
    """Return about how many tokens of replies a budget makes.

    ``most`` is what all prompts give when each reply is as long as it may be: minutes make no more.
    """
    if tokens is None and minutes is not None:
        planned = round(minutes * 60 / 2 * _REPLY_RATE)
        return planned if most is None else min(planned, most)
    return tokens or DEFAULT_TOKENS


def text_bytes(reply_tokens: int, states: int, hidden: int) -> int:
    """Return what generated text takes with so many states of ``hidden`` numbers a token."""
    return round(reply_tokens * _PROMPT_SHARE) * (2 * states * hidden + 4)


def checkpoint_bytes(hidden: int) -> int:
    """Return what is kept of a head while it is trained, at most."""
    # Weights, their mean and two moments in float32, and the next of all before the last one goes.
    return 2 * 4 * 4 * 20 * hidden**2

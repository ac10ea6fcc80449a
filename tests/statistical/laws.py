"""What a rule does, measured: exactly from its uniforms, or from counts."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import product

import torch

from core.decoding.loop import AcceptanceRule

_BISECTIONS = 44
_ALMOST_ONE = 1.0 - 2.0**-53

Prefix = tuple[int, ...]


class Tables:
    """A distribution over the next token for every prefix of up to ``depth`` tokens."""

    def __init__(self, rows: dict[Prefix, torch.Tensor]) -> None:
        self.rows = rows
        self.vocab = len(next(iter(rows.values())))

    @classmethod
    def build(cls, vocab: int, depth: int, row: Callable[[Prefix], torch.Tensor]) -> "Tables":
        prefixes = (p for length in range(depth + 1) for p in product(range(vocab), repeat=length))
        return cls({prefix: row(prefix) for prefix in prefixes})

    def along(self, ids: Sequence[int], count: int) -> torch.Tensor:
        """The distributions [count, vocab] that follow the first 0, 1, ... ids."""
        return torch.stack([self.rows[tuple(ids[:position])] for position in range(count)])

    def prob(self, ids: Sequence[int], given: Sequence[int] = ()) -> float:
        """The probability of ``ids`` after ``given``."""
        result = 1.0
        for position, token in enumerate(ids):
            result *= float(self.rows[(*given, *ids[:position])][token])
        return result


def emitted_law(
    rule: AcceptanceRule, target: Tables, draft: Tables, gamma: int, *, deterministic: bool = False
) -> dict[Prefix, float]:
    """The exact law of gamma + 1 tokens of which one block comes from the rule.

    What the block leaves open is continued by the target, so a lossless rule gives the target's
    own law. Every draft and every region of the uniforms is summed up. A ``deterministic`` draft
    proposes its most likely tokens, and the rule is told so.
    """
    law: dict[Prefix, float] = defaultdict(float)
    for ids in product(range(draft.vocab), repeat=gamma):
        probs = draft.along(ids, gamma)
        if deterministic:
            weight = float(all(int(row.argmax()) == x for row, x in zip(probs, ids, strict=True)))
        else:
            weight = draft.prob(ids)
        if weight == 0.0:
            continue
        told = None if deterministic else probs
        outcomes = block_law(rule, ids, told, target.along(ids, gamma + 1))
        for block, share in outcomes.items():
            for rest in product(range(target.vocab), repeat=gamma + 1 - len(block)):
                law[block + rest] += weight * share * target.prob(rest, given=block)
    return law


def block_law(
    rule: AcceptanceRule,
    draft_ids: Sequence[int],
    draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor,
) -> dict[Prefix, float]:
    """The exact law of the block that a rule emits for one draft.

    The rule is a black box in which each position passes while its own uniform is below some
    threshold, whichever way the passes are then put together, and which draws the last token by
    the inverse of a cumulative sum; thresholds are found by bisection.
    """
    count = len(draft_ids)

    def ask(uniforms: list[float]) -> tuple[int, int]:
        verdict = rule(draft_ids, draft_probs, target_probs, uniforms)
        return verdict.accepted, verdict.next_id

    thresholds: list[float] = []
    for position in range(count):
        before, after = [0.0] * position, [_ALMOST_ONE] * (count - position - 1)
        thresholds.append(
            _threshold(lambda u: ask([*before, u, *after, 0.5])[0] > position)  # noqa: B023
        )
    shares: dict[int, float] = defaultdict(float)
    example: dict[int, list[float]] = {}
    for passes in product((True, False), repeat=count):
        chances = [t if ok else 1.0 - t for t, ok in zip(thresholds, passes, strict=True)]
        if math.prod(chances) == 0.0:
            continue
        uniforms = [
            0.5 * t if ok else 0.5 * (t + 1.0) for t, ok in zip(thresholds, passes, strict=True)
        ]
        accepted = ask([*uniforms, 0.5])[0]
        shares[accepted] += math.prod(chances)
        example.setdefault(accepted, uniforms)
    law: dict[Prefix, float] = defaultdict(float)
    for accepted, share in shares.items():
        uniforms = example[accepted]
        for token, part in _drawn_law(lambda u: ask([*uniforms, u])[1]):  # noqa: B023
            law[(*draft_ids[:accepted], token)] += share * part
    return law


def total_variation(one: dict[Prefix, float], other: dict[Prefix, float]) -> float:
    return 0.5 * sum(abs(one.get(x, 0.0) - other.get(x, 0.0)) for x in {*one, *other})


def largest_error(one: dict[Prefix, float], other: dict[Prefix, float]) -> float:
    return max(abs(one.get(x, 0.0) - other.get(x, 0.0)) for x in {*one, *other})


def chi_square_p_value(observed: torch.Tensor, expected: torch.Tensor, df: int) -> float:
    """How likely counts this far from the expected ones are, if those are right.

    Cells that expect fewer than five are put together, which takes as many degrees of freedom.
    A count where nothing is expected has probability zero.
    """
    if bool((observed[expected == 0] > 0).any()):
        return 0.0
    rare = expected < 5.0
    df -= max(int((rare & (expected > 0)).sum()) - 1, 0)
    cells = [(observed[~rare], expected[~rare])]
    if float(expected[rare].sum()) > 0:
        cells.append((observed[rare].sum()[None], expected[rare].sum()[None]))
    statistic = sum(float(((o - e) ** 2 / e).sum()) for o, e in cells)
    half = torch.tensor([df / 2.0, statistic / 2.0], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


def _threshold(holds: Callable[[float], bool], low: float = 0.0) -> float:
    """Where a condition that holds from ``low`` on ends to hold, up to 1."""
    if not holds(low):
        return low
    high = 1.0
    if holds(_ALMOST_ONE):
        return high
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def _drawn_law(draw: Callable[[float], int]) -> list[tuple[int, float]]:
    law: list[tuple[int, float]] = []
    low = 0.0
    while low < 1.0:
        token = draw(low)
        high = _threshold(lambda u: draw(u) == token, low)  # noqa: B023
        law.append((token, high - low))
        low = high
    return law

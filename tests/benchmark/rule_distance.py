"""How far each acceptance rule carries the reply from the target's own law, on a fixed toy pair.

Run: ``python -m tests.benchmark.rule_distance``. Prints the table of docs/rules.md: the total
variation between what gamma + 1 tokens are distributed as and what the target alone would give,
summed up exactly over every draft and every outcome, so that a second run prints the same.
"""

import sys
from functools import partial

import torch

from core.decoding.loop import AcceptanceRule
from core.decoding.verify import (
    verify_block,
    verify_ensemble,
    verify_exact,
    verify_target_prob,
    verify_typical,
)
from core.requests import SpeculationParams
from tests.statistical.laws import Prefix, Tables, emitted_law, total_variation

GAMMAS = (1, 2, 3)
_USUAL = SpeculationParams()
RULES: tuple[tuple[str, AcceptanceRule], ...] = (
    ("exact", verify_exact),
    ("block", verify_block),
    ("target-prob (lossy)", verify_target_prob),
    (
        f"typical (lossy), epsilon {_USUAL.typical_epsilon:g}, delta {_USUAL.typical_delta:g}",
        partial(verify_typical, epsilon=_USUAL.typical_epsilon, delta=_USUAL.typical_delta),
    ),
    (
        "typical (lossy), epsilon 0.3, delta 1",
        partial(verify_typical, epsilon=0.3, delta=1.0),
    ),
    (
        f"ensemble (lossy), weight {_USUAL.ensemble_weight:g}",
        partial(verify_ensemble, weight=_USUAL.ensemble_weight),
    ),
    ("ensemble (lossy), weight 0.9", partial(verify_ensemble, weight=0.9)),
)

# The next of three tokens by the token before it; the last row begins the text.
_TARGET = ((0.70, 0.20, 0.10), (0.05, 0.80, 0.15), (0.40, 0.30, 0.30), (0.50, 0.30, 0.20))
_DRAFT = ((0.55, 0.25, 0.20), (0.15, 0.60, 0.25), (0.30, 0.20, 0.50), (0.40, 0.45, 0.15))


def distances(rule: AcceptanceRule) -> list[float]:
    """Return the total variation of ``rule`` for each of GAMMAS."""
    result = []
    for gamma in GAMMAS:
        target, draft = _tables(_TARGET, gamma + 1), _tables(_DRAFT, gamma + 1)
        own = {ids: target.prob(ids) for ids in target.rows if len(ids) == gamma + 1}
        result.append(total_variation(emitted_law(rule, target, draft, gamma), own))
    return result


def table() -> str:
    """Return the distances of every rule as a Markdown table."""
    lines = [
        "| rule | " + " | ".join(f"gamma {gamma}" for gamma in GAMMAS) + " |",
        "|---" * (1 + len(GAMMAS)) + "|",
    ]
    for name, rule in RULES:
        lines.append(f"| {name} | " + " | ".join(f"{far:.3f}" for far in distances(rule)) + " |")
    return "\n".join(lines)


def _tables(rows: tuple[tuple[float, ...], ...], depth: int) -> Tables:
    def row(prefix: Prefix) -> torch.Tensor:
        return torch.tensor(rows[prefix[-1] if prefix else -1], dtype=torch.float64)

    return Tables.build(len(rows[0]), depth, row)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")

"""Which acceptance rule a request asks for."""

from functools import partial

from core.decoding.loop import AcceptanceRule
from core.decoding.verify import (
    verify_block,
    verify_ensemble,
    verify_exact,
    verify_target_prob,
    verify_typical,
)
from core.requests import Rule, SpeculationParams


def acceptance_rule(speculation: SpeculationParams) -> AcceptanceRule:
    """Return the rule with its parameters filled in."""
    rules: dict[str, AcceptanceRule] = {
        Rule.EXACT: verify_exact,
        Rule.BLOCK: verify_block,
        Rule.TARGET_PROB: verify_target_prob,
        Rule.TYPICAL: partial(
            verify_typical,
            epsilon=speculation.typical_epsilon,
            delta=speculation.typical_delta,
        ),
        Rule.ENSEMBLE: partial(verify_ensemble, weight=speculation.ensemble_weight),
    }
    return rules[speculation.rule]

"""The real pair: a draft of its own family is accepted in runs of several tokens."""

import pytest

from core.requests import GenerateRequest, SpeculationParams
from tests.helpers.tiny import finished, ids, run

PROMPT = (
    "Write a Python function that checks whether a string is a palindrome, "
    "with a docstring and tests."
)

pytestmark = pytest.mark.slow


@pytest.fixture
def engine(qwen):
    return qwen[0]


def ask(drafter, gamma, rule="exact"):
    return GenerateRequest(
        messages=(("user", PROMPT),),
        speculation=SpeculationParams(drafter=drafter, gamma=gamma, rule=rule),
        max_new_tokens=100,
    )


def test_a_draft_of_the_same_family_is_accepted_in_long_runs(engine):
    events = run(engine, ask("model", 4))
    assert finished(events).metrics.mean_acceptance_length > 3.0


def test_the_pairs_greedy_text_is_plain_text(engine):
    plain = ids(run(engine, ask("off", 0)))
    for drafter, gamma in (("model", 4), ("hybrid", 8), ("ngram", 5), ("hybrid", "auto")):
        assert ids(run(engine, ask(drafter, gamma))) == plain

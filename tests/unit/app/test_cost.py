"""When the window says that drafting does not pay."""

from dataclasses import replace

from app.controllers.cost import WINDOW_ROUNDS, DraftingCost, slower_note
from core.events import GammaBelief, Round
from tests.helpers.rounds import make_round

BELIEF = GammaBelief(
    source="model",
    acceptance=(0.3, 0.3),
    verify_ms=(20.0, 22.0, 24.0),
    draft_ms=15.0,
    reason="A draft costs more time than it saves.",
)
CHEAP = replace(BELIEF, source="ngram-3", chosen=5, reason="Drafts of 5 make the most.")


def rounds(lengths: list[int], belief: GammaBelief | None = BELIEF) -> list[Round]:
    return [
        replace(make_round(place, gamma=length), belief=belief)
        for place, length in enumerate(lengths)
    ]


def note(*parts: list[Round]) -> str:
    cost = DraftingCost()
    for part in parts:
        for round_ in part:
            cost.add(round_)
    return cost.note()


def test_a_gamma_that_settled_at_zero_is_said_with_the_reason() -> None:
    said = "Automatic gamma has settled at 0. A draft costs more time than it saves."
    assert note(rounds([0] * WINDOW_ROUNDS)) == said
    assert note(rounds([0] * 12 + [2] + [0] * 15 + [2] + [0] * 3)) == said


def test_nothing_is_said_while_it_drafts_or_before_it_has_settled() -> None:
    assert note(rounds([0] * (WINDOW_ROUNDS - 1))) == ""
    assert note(rounds([4, 0] * WINDOW_ROUNDS)) == ""
    assert note(rounds([0] * WINDOW_ROUNDS), rounds([4] * 5)) == ""


def test_a_lookup_that_finds_no_match_is_not_taken_for_one_that_does_not_pay() -> None:
    assert note(rounds([0] * WINDOW_ROUNDS, CHEAP)) == ""
    dear = replace(CHEAP, chosen=0)
    assert note(rounds([0] * WINDOW_ROUNDS, dear)) != ""


def test_a_fixed_gamma_believes_nothing_and_settles_nowhere() -> None:
    assert note(rounds([0] * WINDOW_ROUNDS, None)) == ""


def test_a_reply_slower_than_plain_decoding_is_said_with_what_to_do_or_why() -> None:
    fixed = slower_note(0.87, 4, None)
    assert fixed.startswith("Speculation is costing speed: this reply ran at 0.87×")
    assert "automatic gamma" in fixed
    assert slower_note(0.87, "auto", BELIEF).endswith(BELIEF.reason)
    assert slower_note(0.87, "auto", None).endswith("plain decoding.")


def test_a_reply_that_gained_or_was_not_measured_has_no_note() -> None:
    for speed_up in (None, 1.0, 2.1, "0.5"):
        assert slower_note(speed_up, "auto", BELIEF) == ""

"""The rounds of a reply, kept with it."""

from dataclasses import asdict

import pytest

from app.records import Message, MessageState, TokenSpan
from app.storage.conversations import ConversationStore
from app.storage.rounds import GAMMA_BELIEF, ROUND_LOG, round_log, rounds_of
from core.events import GammaBelief, Round, Token
from core.metrics import summarise


def test_the_rounds_of_a_reply_survive_a_reload(store: ConversationStore) -> None:
    rounds = (
        Round(
            index=0,
            gamma=4,
            proposed=4,
            accepted=1,
            tokens=(
                Token(id=1, text="He", origin="accepted", target_prob=0.5, draft_prob=0.25),
                Token(id=2, text="llo", origin="resampled", target_prob=0.75, draft_prob=0.5),
            ),
            draft_ms=1.25,
            verify_ms=2.5,
            round_ms=4.0,
            elapsed_ms=10.0,
            context_length=12,
        ),
        Round(
            index=1,
            gamma=4,
            proposed=0,
            accepted=0,
            tokens=(Token(id=3, text="!", origin="plain", target_prob=1.0),),
            verify_ms=2.5,
            round_ms=3.0,
            elapsed_ms=13.0,
            context_length=13,
        ),
    )
    spans = [
        TokenSpan(len(token.text), token.origin, token.id, token.target_prob, token.draft_prob)
        for round_ in rounds
        for token in round_.tokens
    ]
    begun = store.begin_reply(store.create("chat").id, None, {})
    metrics = {**asdict(summarise(rounds)), ROUND_LOG: round_log(rounds)}
    store.finish_reply(begun.id, "Hello!", spans, MessageState.COMPLETE, metrics)
    assert rounds_of(store.message(begun.id)) == rounds

    belief = GammaBelief(
        source="model", acceptance=(0.5,), verify_ms=(9.0, 10.0), draft_ms=3.0, reason="Because."
    )
    metrics[GAMMA_BELIEF] = asdict(belief)
    store.finish_reply(begun.id, "Hello!", spans, MessageState.COMPLETE, metrics)
    assert [each.belief for each in rounds_of(store.message(begun.id))] == [None, belief]


@pytest.mark.parametrize("stored", [None, [], {}, {"source": "model", "acceptance": 3}])
def test_a_damaged_belief_costs_no_round(store: ConversationStore, stored: object) -> None:
    round_ = Round(
        index=0,
        gamma=0,
        proposed=0,
        accepted=0,
        tokens=(Token(id=3, text="!", origin="plain", target_prob=1.0),),
    )
    begun = store.begin_reply(store.create("chat").id, None, {})
    metrics = {ROUND_LOG: round_log([round_]), GAMMA_BELIEF: stored}
    spans = [TokenSpan(1, "plain", 3, 1.0)]
    store.finish_reply(begun.id, "!", spans, MessageState.COMPLETE, metrics)
    assert rounds_of(store.message(begun.id)) == (round_,)


@pytest.mark.parametrize("log", [None, "x", [[1]], [[1, 1, 1, 99, 0, 0, 0, 0, 0]], [["a"] * 9]])
def test_a_round_log_that_does_not_fit_is_ignored(log: object) -> None:
    message = Message(
        id=1,
        conversation_id=1,
        parent_id=None,
        role="assistant",
        text="ab",
        created_at=0.0,
        spans=tuple(TokenSpan(1, "accepted", ord(char), 0.9, 0.5) for char in "ab"),
        metrics={ROUND_LOG: log},
    )
    assert rounds_of(message) == ()

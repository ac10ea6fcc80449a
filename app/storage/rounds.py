"""The rounds of a stored reply, kept small, for the acceptance strip after a reload."""

from collections.abc import Iterable
from dataclasses import replace

from app.records import Message
from core.events import GammaBelief, Round, Token

ROUND_LOG = "round_log"
"""The key under which a message's metrics hold what :func:`round_log` returned."""
GAMMA_BELIEF = "gamma_belief"
"""The key under which they hold what the automatic gamma believed at the end, as plain values."""


def round_log(rounds: Iterable[Round]) -> list[list[float]]:
    """Return one row of numbers a round, to be stored in the metrics of its reply.

    A row is gamma, proposed, accepted, number of tokens, draft_ms, verify_ms, round_ms,
    elapsed_ms, context_length.
    """
    return [
        [
            round_.gamma,
            round_.proposed,
            round_.accepted,
            len(round_.tokens),
            round(round_.draft_ms, 2),
            round(round_.verify_ms, 2),
            round(round_.round_ms, 2),
            round(round_.elapsed_ms, 2),
            round_.context_length,
        ]
        for round_ in rounds
    ]


def rounds_of(message: Message) -> tuple[Round, ...]:
    """Return the rounds of a stored reply with their tokens, as the engine had sent them.

    Times are rounded to 0.01 ms, rejected drafts are not kept, and of what an automatic gamma
    believed only the last word is, in the last round. Empty when the message holds
    no log, or one that does not fit its spans.
    """
    log = message.metrics.get(ROUND_LOG)
    if not isinstance(log, list):
        return ()
    tokens = _tokens(message)
    rounds: list[Round] = []
    start = 0
    try:
        for index, row in enumerate(log):
            gamma, proposed, accepted, count, draft, verify, whole, elapsed, context = row
            rounds.append(
                Round(
                    index=index,
                    gamma=int(gamma),
                    proposed=int(proposed),
                    accepted=int(accepted),
                    tokens=tokens[start : start + int(count)],
                    draft_ms=float(draft),
                    verify_ms=float(verify),
                    round_ms=float(whole),
                    elapsed_ms=float(elapsed),
                    context_length=int(context),
                )
            )
            start += int(count)
    except (TypeError, ValueError):
        # An imported file may hold anything here; the reply itself is still good.
        return ()
    if rounds:
        rounds[-1] = replace(rounds[-1], belief=_belief(message))
    return tuple(rounds) if start == len(tokens) else ()


def _belief(message: Message) -> GammaBelief | None:
    stored = message.metrics.get(GAMMA_BELIEF)
    if not isinstance(stored, dict):
        return None
    try:
        return GammaBelief(
            source=str(stored["source"]),
            chosen=int(stored.get("chosen", 0)),
            acceptance=tuple(float(chance) for chance in stored["acceptance"]),
            verify_ms=tuple(float(time_ms) for time_ms in stored["verify_ms"]),
            draft_ms=float(stored["draft_ms"]),
            reason=str(stored["reason"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _tokens(message: Message) -> tuple[Token, ...]:
    tokens: list[Token] = []
    start = 0
    for span in message.spans:
        tokens.append(
            Token(
                id=span.token_id,
                text=message.text[start : start + span.length],
                origin=span.origin,
                target_prob=span.target_prob,
                draft_prob=span.draft_prob,
            )
        )
        start += span.length
    return tuple(tokens)

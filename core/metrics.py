"""What is counted about a reply, from its rounds alone.

Definitions: mean acceptance length = 1 + accepted / rounds; acceptance rate = accepted /
proposed; position rate i = rounds that accepted position i / rounds that proposed it;
tokens/s = decoded tokens / decode time, prefill excluded.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.events import Round


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationMetrics:
    """The numbers of one reply. Rates are None where nothing was proposed or timed."""

    tokens: int = 0
    rounds: int = 0
    proposed: int = 0
    accepted: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    draft_ms: float = 0.0
    verify_ms: float = 0.0
    time_to_first_token_ms: float | None = None
    tokens_per_second: float | None = None
    prefill_tokens_per_second: float | None = None
    mean_acceptance_length: float | None = None
    acceptance_rate: float | None = None
    position_rates: tuple[float, ...] = ()
    histogram: tuple[tuple[int, int], ...] = ()
    """(accepted, rounds) pairs, ascending; rounds without a draft count under 0."""


class MetricsAccumulator:
    """Counts rounds as they come; :meth:`snapshot` is cheap enough for every repaint."""

    def __init__(
        self, *, prompt_tokens: int = 0, reused_tokens: int = 0, prefill_ms: float = 0.0
    ) -> None:
        self._prompt_tokens = prompt_tokens
        self._reused_tokens = reused_tokens
        self._prefill_ms = prefill_ms
        self._tokens = self._rounds = self._proposed = self._accepted = 0
        self._decode_ms = self._draft_ms = self._verify_ms = 0.0
        self._first_token_ms: float | None = None
        self._proposed_at: list[int] = []
        self._accepted_at: list[int] = []
        self._histogram: dict[int, int] = {}

    def add(self, round_: "Round") -> None:
        """Count one round."""
        self._rounds += 1
        self._tokens += len(round_.tokens)
        self._proposed += round_.proposed
        self._accepted += round_.accepted
        self._decode_ms += round_.round_ms
        self._draft_ms += round_.draft_ms
        self._verify_ms += round_.verify_ms
        if self._first_token_ms is None and round_.tokens:
            self._first_token_ms = round_.elapsed_ms
        while len(self._proposed_at) < round_.proposed:
            self._proposed_at.append(0)
            self._accepted_at.append(0)
        for position in range(round_.proposed):
            self._proposed_at[position] += 1
        for position in range(round_.accepted):
            self._accepted_at[position] += 1
        self._histogram[round_.accepted] = self._histogram.get(round_.accepted, 0) + 1

    def snapshot(self) -> GenerationMetrics:
        """Return the numbers so far."""
        new_prompt = self._prompt_tokens - self._reused_tokens
        return GenerationMetrics(
            tokens=self._tokens,
            rounds=self._rounds,
            proposed=self._proposed,
            accepted=self._accepted,
            prompt_tokens=self._prompt_tokens,
            reused_tokens=self._reused_tokens,
            prefill_ms=self._prefill_ms,
            decode_ms=self._decode_ms,
            draft_ms=self._draft_ms,
            verify_ms=self._verify_ms,
            time_to_first_token_ms=self._first_token_ms,
            tokens_per_second=_ratio(1000.0 * self._tokens, self._decode_ms),
            prefill_tokens_per_second=(
                _ratio(1000.0 * new_prompt, self._prefill_ms) if new_prompt > 0 else None
            ),
            mean_acceptance_length=1.0 + self._accepted / self._rounds if self._rounds else None,
            acceptance_rate=_ratio(self._accepted, self._proposed),
            position_rates=tuple(
                a / p for a, p in zip(self._accepted_at, self._proposed_at, strict=True)
            ),
            histogram=tuple(sorted(self._histogram.items())),
        )


def summarise(
    rounds: Iterable["Round"],
    *,
    prompt_tokens: int = 0,
    reused_tokens: int = 0,
    prefill_ms: float = 0.0,
) -> GenerationMetrics:
    """Return the numbers of a whole reply."""
    accumulator = MetricsAccumulator(
        prompt_tokens=prompt_tokens, reused_tokens=reused_tokens, prefill_ms=prefill_ms
    )
    for round_ in rounds:
        accumulator.add(round_)
    return accumulator.snapshot()


def together(replies: Sequence[GenerationMetrics]) -> GenerationMetrics:
    """Return the counts of several replies together, with the rates of one reply."""
    tokens = sum(reply.tokens for reply in replies)
    rounds = sum(reply.rounds for reply in replies)
    proposed = sum(reply.proposed for reply in replies)
    accepted = sum(reply.accepted for reply in replies)
    decode_ms = sum(reply.decode_ms for reply in replies)
    return GenerationMetrics(
        tokens=tokens,
        rounds=rounds,
        proposed=proposed,
        accepted=accepted,
        decode_ms=decode_ms,
        tokens_per_second=_ratio(1000 * tokens, decode_ms),
        mean_acceptance_length=1 + accepted / rounds if rounds else None,
        acceptance_rate=_ratio(accepted, proposed),
    )


def _ratio(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator > 0 else None

"""From measured replies to medians, spreads and pairs."""

import statistics
from collections.abc import Iterable, Iterator, Sequence

from core.bench.cases import ALL_SUITES
from core.bench.configuration import Configuration
from core.bench.records import Measurement, Spread, Summary


def spread(values: Iterable[float | None]) -> Spread | None:
    """Return the median and the quartiles (inclusive method); None where there is no value."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    if len(known) == 1:
        return Spread(median=known[0], low=known[0], high=known[0], count=1)
    low, median, high = statistics.quantiles(known, n=4, method="inclusive")
    return Spread(median=median, low=low, high=high, count=len(known))


def summarise(
    measurements: Sequence[Measurement],
    configurations: Sequence[Configuration],
    suites: Sequence[str],
) -> tuple[Summary, ...]:
    """Return a summary for each suite and configuration that has replies, in the order given.

    Several suites get one more, ``all``, after them.
    """
    groups: dict[str, Sequence[Measurement]] = {
        suite: [one for one in measurements if one.suite == suite] for suite in suites
    }
    if sum(map(bool, groups.values())) > 1:
        groups[ALL_SUITES] = measurements
    return tuple(
        _summary(suite, group, configuration)
        for suite, group in groups.items()
        for configuration in configurations
        if any(one.configuration == configuration.name for one in group)
    )


def speed_ups(
    measurements: Sequence[Measurement], configuration: Configuration
) -> tuple[float, ...]:
    """Return tokens/s over plain tokens/s, reply by reply.

    A reply is paired with the plain one to the same prompt in the same repeat, which ran shortly
    before or after it; one that lost its partner is left out.
    """
    return tuple(
        one.tokens_per_second / plain.tokens_per_second
        for plain, one in _pairs(measurements, configuration)
        if plain.tokens_per_second and one.tokens_per_second
    )


def same_text_share(
    measurements: Sequence[Measurement], configuration: Configuration
) -> float | None:
    """Return how many of the replies are plain decoding's, letter by letter, as a share.

    None where no two replies need to agree: above temperature 0, and for plain decoding itself.
    """
    if configuration.plain or configuration.temperature > 0:
        return None
    same = [plain.digest == one.digest for plain, one in _pairs(measurements, configuration)]
    return sum(same) / len(same) if same else None


def _pairs(
    measurements: Iterable[Measurement], configuration: Configuration
) -> Iterator[tuple[Measurement, Measurement]]:
    """Yield each reply with the plain one to the same prompt in the same repeat, plain first."""
    replies = {(one.configuration, one.case, one.repeat): one for one in measurements}
    for (name, case, repeat), one in replies.items():
        plain = replies.get((configuration.baseline.name, case, repeat))
        if name == configuration.name and plain is not None:
            yield plain, one


def _summary(suite: str, group: Sequence[Measurement], configuration: Configuration) -> Summary:
    replies = [one for one in group if one.configuration == configuration.name]
    rounds = sum(one.rounds for one in replies)
    decode_ms = sum(one.decode_ms for one in replies)
    return Summary(
        suite=suite,
        configuration=configuration.name,
        lossy=configuration.lossy,
        replies=len(replies),
        tokens=sum(one.tokens for one in replies),
        tokens_per_second=spread(one.tokens_per_second for one in replies),
        speed_up=None if configuration.plain else spread(speed_ups(group, configuration)),
        same_text_share=same_text_share(group, configuration),
        mean_acceptance_length=(
            1 + sum(one.accepted for one in replies) / rounds if rounds else None
        ),
        acceptance_by_position=_acceptance_by_position(replies),
        time_to_first_token_ms=spread(one.time_to_first_token_ms for one in replies),
        draft_share=sum(one.draft_ms for one in replies) / decode_ms if decode_ms else None,
        verify_share=sum(one.verify_ms for one in replies) / decode_ms if decode_ms else None,
        resident_bytes=max(one.resident_bytes for one in replies),
    )


def _acceptance_by_position(replies: Sequence[Measurement]) -> tuple[float, ...]:
    proposed = _column_sums([one.proposed_at for one in replies])
    accepted = _column_sums([one.accepted_at for one in replies])
    return tuple(a / p for a, p in zip(accepted, proposed, strict=True))


def _column_sums(rows: Sequence[Sequence[int]]) -> list[int]:
    width = max(map(len, rows), default=0)
    return [sum(row[column] for row in rows if column < len(row)) for column in range(width)]

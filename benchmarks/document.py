"""What a comparison says: the numbers by suite, the ratios, and how to make them again."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.contender import Reply
from core.bench.machine import Machine
from core.bench.report import describe_spread, markdown_table
from core.bench.summary import spread
from core.hub.files import format_bytes

OURS = "Paceline"

_EXPLANATION = (
    "Tokens/s and the time to the first token are medians over prompts and repeats, with quartiles "
    "in brackets. Tokens/s leave out the reading of the prompt, for all alike. Length: tokens a "
    "round, which is 1 in plain decoding. Replies are greedy. The weights differ in precision, as "
    "named above, so replies differ in their words."
)
_RATIOS = (
    "For each suite, each side's mode of most tokens/s. Their speeds on one prompt in one repeat "
    "are divided; the median of the quotients is shown, with quartiles."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One reply of a comparison with what it was a reply to."""

    contender: str
    mode: str
    suite: str
    case: str
    repeat: int
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What has to be known to make the numbers again."""

    pair: str
    machine: Machine
    commit: str
    date: str
    command: str
    threads: int
    seed: int
    about: tuple[tuple[str, str], ...]
    """What each contender says of itself."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """The best mode of ours against the best of a peer's on one suite, prompt by prompt."""

    suite: str
    ours: str
    peer: str
    peer_mode: str
    values: tuple[float, ...]


def best_mode(entries: Sequence[Entry], contender: str, suite: str) -> str | None:
    """Return the mode of most tokens/s at the median; None where the contender has no number."""
    speeds: dict[str, list[float]] = {}
    for entry in entries:
        if (entry.contender, entry.suite) == (contender, suite) and entry.reply.tokens_per_second:
            speeds.setdefault(entry.mode, []).append(entry.reply.tokens_per_second)
    medians = {mode: found.median for mode in speeds if (found := spread(speeds[mode]))}
    return max(medians, key=lambda mode: medians[mode], default=None)


def ratios(entries: Sequence[Entry]) -> tuple[Ratio, ...]:
    """Return best against best for each suite and peer, one value a prompt and repeat."""
    found = []
    peers = [name for name in dict.fromkeys(entry.contender for entry in entries) if name != OURS]
    for suite in dict.fromkeys(entry.suite for entry in entries):
        for peer in peers:
            our_mode, peer_mode = (best_mode(entries, name, suite) for name in (OURS, peer))
            if our_mode is None or peer_mode is None:
                continue
            ours = _speeds(entries, OURS, our_mode, suite)
            theirs = _speeds(entries, peer, peer_mode, suite)
            values = tuple(ours[key] / theirs[key] for key in theirs if key in ours)
            found.append(
                Ratio(suite=suite, ours=our_mode, peer=peer, peer_mode=peer_mode, values=values)
            )
    return tuple(found)


def to_document(setting: Setting, entries: Sequence[Entry]) -> str:
    """Return the page as Markdown."""
    machine = setting.machine
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions)
    lines = [
        "# Benchmarks",
        "",
        "Written by one command from one run on one machine.",
        "",
        f"- Models: {setting.pair}, the same files for all",
        f"- Machine: {machine.processor}, {machine.cores} cores, "
        f"{format_bytes(machine.memory_bytes)}, {machine.system}"
        + (f", {machine.gpu}" if machine.gpu else ""),
        f"- Threads: {setting.threads} each, one contender at a time",
        f"- Busy threads before: {machine.load_average:g}",
        f"- Versions: Python {machine.python}, {versions}",
        *(f"- {name}: {about}" for name, about in setting.about),
        f"- Commit: {setting.commit}, {setting.date}",
        f"- Command: `{setting.command}`",
        f"- Order: shuffled with seed {setting.seed}; all answer a prompt before the next one",
        *(f"- {note}" for note in setting.notes),
        "",
        _EXPLANATION,
    ]
    for suite in dict.fromkeys(entry.suite for entry in entries):
        lines += ["", f"## {suite}", "", *_suite_table(entries, suite)]
    lines += ["", "## Best against best", "", _RATIOS, "", *_ratio_table(entries)]
    return "\n".join(lines) + "\n"


def _suite_table(entries: Sequence[Entry], suite: str) -> list[str]:
    header = ("contender", "mode", "tokens/s", "length", "first token", "replies", "tokens")
    groups: dict[tuple[str, str], list[Reply]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.contender, entry.mode)):
        if entry.suite == suite:
            groups.setdefault((entry.contender, entry.mode), []).append(entry.reply)
    rows = []
    for (contender, mode), replies in groups.items():
        lengths = spread(reply.acceptance_length for reply in replies)
        rows.append(
            [
                contender,
                mode,
                describe_spread(spread(reply.tokens_per_second for reply in replies)),
                "-" if lengths is None else f"{lengths.median:.2f}",
                describe_spread(spread(r.first_token_ms for r in replies), 0.001, " s"),
                str(len(replies)),
                str(sum(reply.tokens for reply in replies)),
            ]
        )
    return markdown_table(header, rows)


def _ratio_table(entries: Sequence[Entry]) -> list[str]:
    rows = [
        [
            ratio.suite,
            f"{OURS} {ratio.ours}",
            f"{ratio.peer} {ratio.peer_mode}",
            describe_spread(spread(ratio.values), unit="x"),
        ]
        for ratio in ratios(entries)
    ]
    return markdown_table(("suite", "ours", "theirs", "ours over theirs"), rows)


def _speeds(
    entries: Sequence[Entry], contender: str, mode: str, suite: str
) -> dict[tuple[str, int], float]:
    return {
        (entry.case, entry.repeat): entry.reply.tokens_per_second
        for entry in entries
        if (entry.contender, entry.mode, entry.suite) == (contender, mode, suite)
        and entry.reply.tokens_per_second
    }

"""The reports of a benchmark: a table for the terminal, Markdown, CSV and JSON."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields

from rich.table import Table

from core.bench.records import BenchResult, Spread, Summary
from core.hub.files import format_bytes

COLUMNS = (
    "suite",
    "configuration",
    "tokens/s",
    "speed-up",
    "acceptance length",
    "accepted by position, %",
    "first token",
    "draft",
    "verify",
    "same text",
)
_NOTHING = "-"
_POSITIONS_SHOWN = 4
_SPREADS = ("tokens_per_second", "speed_up", "time_to_first_token_ms")
_SPREAD_PARTS = ("median", "low", "high")
CSV_COLUMNS = tuple(
    column
    for field in fields(Summary)
    for column in (
        [f"{field.name}_{part}" for part in _SPREAD_PARTS]
        if field.name in _SPREADS
        else [field.name]
    )
)

EXPLANATION = (
    "Medians, with quartiles in brackets. The speed-up of a reply is its tokens/s over that of the "
    "plain reply to the same prompt next to it; tokens/s leave out the reading of the prompt. "
    "Acceptance length: tokens a round. Accepted by position: of the drafts that were at least "
    "that long, how many stood that far. It can rise with the position, because longer drafts are "
    "made only where they are likely to stand. Draft and verify: shares of the decode time. Same "
    "text: replies that equal the plain one letter by letter."
)


def headline(result: BenchResult) -> tuple[str, ...]:
    """Return what was measured, where and how, as plain lines."""
    machine = result.machine
    pair = result.target + (f" with {result.draft}" if result.draft else "")
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions)
    place = [machine.processor, f"{machine.cores} cores", f"{machine.torch_threads} threads used"]
    place += [format_bytes(machine.memory_bytes), machine.system, *filter(None, [machine.gpu])]
    replies = f"{len(result.measurements)} replies"
    heads = [f"{f'{name}: ' if name else ''}{head}" for name, head in result.heads.items()]
    lines = (
        f"{pair}, {result.precision} on {result.device}",
        *([f"heads: {'; '.join(heads)}"] if heads else []),
        ", ".join(place),
        f"Python {machine.python}, {versions}; {machine.load_average:g} busy threads before",
        f"{replies}, repeats {result.repeats}, seed {result.seed}, caches {result.caches}",
        f"peak memory of the process, loading included: {format_bytes(result.peak_bytes)}",
    )
    return lines if result.complete else (*lines, "The run was not completed.")


def to_table(result: BenchResult) -> Table:
    """Return the summaries as a table for a terminal, some 110 columns wide."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(COLUMNS[1:]):
        words = number == 0 or name == "accepted by position, %"
        table.add_column(
            name.replace(" ", "\n", 1), justify="left" if words else "right", no_wrap=True
        )
    suite = ""
    for summary in result.summaries:
        if summary.suite != suite:
            suite = summary.suite
            table.add_row()
            table.add_row(suite, style="bold")
        configuration, *numbers = _cells(summary)[1:]
        table.add_row(f"  {configuration}", *numbers)
    return table


def to_markdown(result: BenchResult) -> str:
    """Return the whole report as Markdown."""
    lines = ["# Benchmark", "", *(f"- {line}" for line in headline(result)), ""]
    lines += markdown_table(COLUMNS, [_cells(summary) for summary in result.summaries])
    lines += ["", EXPLANATION, *_notices(result)]
    return "\n".join(lines) + "\n"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; bars inside cells are escaped."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(header), "|" + " --- |" * len(header), *map(line, rows)]


def to_csv(result: BenchResult) -> str:
    """Return one line a summary, spreads in three columns, positions joined by spaces."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for summary in result.summaries:
        flat = _flat(summary)
        writer.writerow([flat[column] for column in CSV_COLUMNS])
    return output.getvalue()


def to_json(result: BenchResult) -> str:
    """Return everything, every single reply included, as one JSON object."""
    return json.dumps(asdict(result), indent=2) + "\n"


def describe_spread(values: Spread | None, scale: float = 1.0, unit: str = "") -> str:
    """Return a median with its quartiles in brackets; one value alone has none."""
    if values is None:
        return _NOTHING
    median, low, high = (
        _round(scale * value) for value in (values.median, values.low, values.high)
    )
    return f"{median}{unit}" + (f" ({low}-{high})" if values.count > 1 else "")


def _round(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _cells(summary: Summary) -> list[str]:
    length = summary.mean_acceptance_length
    positions = [f"{100 * rate:.0f}" for rate in summary.acceptance_by_position[:_POSITIONS_SHOWN]]
    more = " ..." if len(summary.acceptance_by_position) > _POSITIONS_SHOWN else ""
    return [
        summary.suite,
        summary.configuration + (" (lossy)" if summary.lossy else ""),
        describe_spread(summary.tokens_per_second),
        describe_spread(summary.speed_up, unit="x"),
        _NOTHING if length is None else f"{length:.2f}",
        " ".join(positions) + more if positions else _NOTHING,
        describe_spread(summary.time_to_first_token_ms, scale=0.001, unit=" s"),
        _percent(summary.draft_share),
        _percent(summary.verify_share),
        _percent(summary.same_text_share),
    ]


def _percent(share: float | None) -> str:
    return _NOTHING if share is None else f"{100 * share:.0f}%"


def _notices(result: BenchResult) -> list[str]:
    return ["", *(f"- {notice}" for notice in result.notices)] if result.notices else []


def _flat(summary: Summary) -> dict[str, object]:
    """Return the plain values of a summary by column."""
    flat: dict[str, object] = {}
    for name, value in asdict(summary).items():
        if name in _SPREADS:
            parts = value or dict.fromkeys(_SPREAD_PARTS)
            flat |= {f"{name}_{part}": parts[part] for part in _SPREAD_PARTS}
        else:
            flat[name] = " ".join(map(str, value)) if isinstance(value, tuple) else value
    return flat

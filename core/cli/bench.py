"""``paceline bench``: the same prompts through several configurations, and a report."""

import argparse
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement as RichMeasurement

from core.bench.cases import load_cases, parse_suites
from core.bench.chart import draw_chart
from core.bench.configuration import (
    Configuration,
    default_configurations,
    parse_configurations,
    require_draft,
    require_head,
)
from core.bench.files import replace_file
from core.bench.records import BenchEnded, BenchEvent, BenchResult, WarmUp
from core.bench.report import EXPLANATION, headline, to_csv, to_json, to_markdown, to_table
from core.bench.runner import Plan, run_bench
from core.cancel import CancelToken
from core.cli.bench_arguments import STANDARD_OUTPUT
from core.cli.context import Context
from core.cli.exits import EXIT_DONE, EXIT_INTERRUPTED
from core.cli.interrupts import interrupt_cancels
from core.cli.loading import load, progress_line
from core.cli.options import load_request_of
from core.cli.reply import failure_of
from core.cli.style import can_redraw, make_console, say, sentence
from core.cli.tty import echo_off
from core.errors import BugError, UserError
from core.hub.heads import resolve_head
from core.requests import DrafterKind

_HEAD_NAME = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A report that was asked for; ``path`` None is standard output."""

    path: Path | None
    render: Callable[[BenchResult], str | bytes]


def run(args: argparse.Namespace, context: Context) -> int:
    """Run the benchmark of the arguments and write its reports; return the exit code."""
    outputs = outputs_of(args)
    heads = heads_of(args)
    asked = None if args.config is None else parse_configurations(args.config)
    for configuration in asked or ():
        require_head(configuration, {"", *heads})
    request = load_request_of(args)
    for configuration in asked or ():
        require_draft(configuration, has_draft=request.draft is not None)
    plan = Plan(
        cases=load_cases(
            parse_suites(args.suite), per_suite=args.prompts, max_new_tokens=args.max_new_tokens
        ),
        configurations=asked or (Configuration(drafter=DrafterKind.OFF),),
        repeats=args.repeats,
        seed=args.seed,
    )
    errors = make_console(context.stderr)
    with progress_line(errors) as on_progress:
        engine, loaded = load(context, request, on_progress)
        others = {
            name: load(context, replace(request, head=path), on_progress)
            for name, path in heads.items()
        }
    holds = [loaded, *(held for _, held in others.values())]
    for notice in dict.fromkeys(notice for held in holds for notice in held.notices):
        say(errors, notice)
    if asked is None:
        plan = replace(plan, configurations=default_configurations(loaded.drafters))
    cancel = CancelToken()
    with interrupt_cancels(cancel, even_if_ignored=True), _shown(errors) as show:
        ended = _follow(run_bench(engine, loaded, plan, cancel, heads=others), show)
    _write(ended.result, outputs, context)
    if ended.failure is not None:
        raise failure_of(ended.failure)
    return EXIT_DONE if ended.result.complete else EXIT_INTERRUPTED


def heads_of(args: argparse.Namespace) -> dict[str, str]:
    """Return the paths of further heads by name. Raises UserError for what names none."""
    heads: dict[str, str] = {}
    for text in args.also_head:
        name, _, head = text.partition("=")
        if not _HEAD_NAME.fullmatch(name) or not head or name in heads:
            raise UserError(
                f"--also-head {text!r} does not name a head.",
                "Write NAME=HEAD, with a name of letters, digits and dashes for each.",
            )
        heads[name] = head
    return {name: str(resolve_head(head)) for name, head in heads.items()}


def outputs_of(args: argparse.Namespace) -> tuple[Output, ...]:
    """Return the reports that were asked for, before minutes are spent on measuring.

    Raises UserError for a file that could not be written, and for two reports on one stream.
    """
    asked: list[tuple[str | None, Callable[[BenchResult], str | bytes]]] = [
        (args.json, to_json),
        (args.markdown, to_markdown),
        (args.csv, to_csv),
        (args.plot, draw_chart),
    ]
    outputs = tuple(
        Output(path=None if name == STANDARD_OUTPUT else _writable(name), render=render)
        for name, render in asked
        if name is not None
    )
    if args.plot == STANDARD_OUTPUT:
        raise UserError("A picture cannot be written to standard output.", "Name a file.")
    if sum(output.path is None for output in outputs) > 1:
        raise UserError(
            "Two reports cannot share standard output.", "Name a file for all but one of them."
        )
    return outputs


def _writable(name: str) -> Path:
    path = Path(name).expanduser()
    if path.is_dir() or not name:
        raise UserError(f"{name!r} is no file name.", "Name a file to write the report to.")
    if not path.absolute().parent.is_dir():
        raise UserError(f"There is no folder {path.parent}.", "Create it, or name another one.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise UserError(f"The folder {path.parent} cannot be written.", "Name another one.")
    return path


def _follow(events: Iterator[BenchEvent], show: Callable[[str], None]) -> BenchEnded:
    """Show the events and return the last one."""
    started = time.monotonic()
    for event in events:
        if isinstance(event, BenchEnded):
            return event
        if isinstance(event, WarmUp):
            show(f"warming up {event.index} of {event.total}: {event.configuration}")
            started = time.monotonic()
            continue
        one = event.measurement
        speed = "" if one.tokens_per_second is None else f"{one.tokens_per_second:.1f} tokens/s"
        left_s = (time.monotonic() - started) / event.index * (event.total - event.index)
        left = f"about {_duration(left_s)} left" if left_s else ""
        parts = [f"{event.index} of {event.total}: {one.case}", one.configuration, speed, left]
        show(", ".join(filter(None, parts)))
    raise BugError("A benchmark ended without a result.")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


@contextmanager
def _shown(console: Console) -> Iterator[Callable[[str], None]]:
    """Yield what shows progress: one changing line on a terminal, else a line each."""
    if not can_redraw(console):
        yield lambda text: console.print(sentence(text), style="dim")
        return
    with echo_off(console.file), console.status("") as status:
        yield lambda text: status.update(escape(sentence(text)))


def _write(result: BenchResult, outputs: tuple[Output, ...], context: Context) -> None:
    on_stdout = [output for output in outputs if output.path is None]
    for output in on_stdout:
        context.stdout.write(str(output.render(result)))
    if not on_stdout:
        _print_table(result, make_console(context.stdout))
    for output in outputs:
        if output.path is not None:
            replace_file(output.path, output.render(result))


def _print_table(result: BenchResult, console: Console) -> None:
    for line in headline(result):
        console.print(sentence(line), style="dim")
    if result.summaries:
        console.print()
        table = to_table(result)
        # In full even where the terminal is narrower: a line that goes on in the next one still
        # has all of its numbers.
        needed = RichMeasurement.get(console, console.options.update(max_width=1000), table)
        console.width = max(console.width, needed.maximum)
        console.print(table, crop=False, soft_wrap=False)
        console.print()
        console.print(EXPLANATION, style="dim")
    for notice in result.notices:
        say(console, notice)

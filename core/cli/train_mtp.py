"""``paceline train-mtp``: a head from prompts, on a terminal or as a child process."""

import argparse
import json
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from core.cancel import CancelToken
from core.cli.context import Context, quiet_libraries
from core.cli.exits import EXIT_DONE, EXIT_INTERRUPTED
from core.cli.interrupts import interrupt_cancels
from core.cli.options import load_request_of
from core.cli.style import can_redraw, make_console, sentence
from core.cli.tty import echo_off
from core.errors import UserError
from core.hub.files import format_bytes
from core.hub.library import data_root
from core.training import events
from core.training.control import Control

if TYPE_CHECKING:
    from core.training.request import TrainRequest

Show = Callable[[events.TrainingEvent], None]
Work = Callable[[Show, Callable[[], bool]], Path | None]
"""Does a training: hears of its events, and is told when to stop; returns what it made."""


def run(args: argparse.Namespace, context: Context) -> int:
    """Train the head of the arguments; return the exit code. Raises UserError."""

    def work(show: Show, stopped: Callable[[], bool]) -> Path | None:
        from core.training.run import run_training  # seconds of imports

        return run_training(request_of(args), show, stopped)

    return run_child(args, context, work, "The head is ready")


def run_child(args: argparse.Namespace, context: Context, work: Work, ready: str) -> int:
    """Do a training with its events shown, and see that they end with one that says how it went.

    ``args.json`` makes them lines and listens to words. ``ready`` begins the sentence on the
    result. Raises UserError.
    """
    if not context.debug:
        quiet_libraries()
    cancel = CancelToken()
    with interrupt_cancels(cancel, even_if_ignored=True), _shown(args, context, cancel) as show:
        control = Control(cancel, lambda paused: show(events.Paused(paused=paused)))
        if args.json:
            control.listen(context.stdin)
        path = _tried(work, show, control)
    if path is None:
        return EXIT_INTERRUPTED
    if not args.json:
        make_console(context.stdout).print(sentence(f"{ready}: {path}"))
    return EXIT_DONE


def _tried(work: Work, show: Show, control: Control) -> Path | None:
    try:
        return work(show, control.stopped)
    except UserError as error:
        show(events.Failed(kind="user", message=str(error)))
        raise
    except Exception as error:
        detail = "".join(traceback.format_exception(error))
        message = f"{type(error).__name__}: {error}"
        with suppress(OSError):  # writing itself may be what failed
            show(events.Failed(kind="bug", message=message, detail=detail))
        raise


def request_of(args: argparse.Namespace) -> "TrainRequest":
    """Return the training that the arguments ask for. Raises UserError."""
    from core.training.request import TrainRequest

    target = load_request_of(args)
    host, author = replace(target, draft=None), None
    if args.host == "draft":
        if target.draft is None:
            raise UserError("There is no draft model to train a head for.", "Name it with --draft.")
        host, author = replace(host, target=target.draft), host
    return TrainRequest(
        load=host,
        author=author,
        home=data_root(),
        kind=args.kind,
        depth=args.depth,
        layers=args.layers,
        vocabulary=args.vocabulary,
        data=tuple(args.data),
        own_only=args.own_only,
        tokens=args.tokens,
        minutes=args.minutes,
        epochs=args.epochs,
        temperatures=args.temperatures,
        fast=args.fast_text,
        # The draft does not say how the target goes on; the text does.
        loss=args.loss or ("kl" if author is None else "ce"),
        weights=args.weights,
        learning_rate=args.learning_rate,
        noise=args.noise,
        batch_tokens=args.batch_tokens,
        max_new_tokens=args.reply_tokens,
        lanes=args.lanes,
        seed=args.seed,
        out=None if args.out is None else args.out.expanduser().absolute(),
        packed=args.packed,
        anew=args.anew,
        text=None if args.text is None else (args.text[0], args.text[1]),
        command=shlex.join(["paceline", *sys.argv[1:]]),
    )


@contextmanager
def _shown(args: argparse.Namespace, context: Context, cancel: CancelToken) -> Iterator[Show]:
    if args.json:
        lines = _JsonLines(context.stdout, cancel)
        yield lines.show
        if lines.broken is not None:
            raise lines.broken
        return
    console = make_console(context.stderr)
    if not can_redraw(console):
        yield _Lines(console).show
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[numbers]}"))
    bars = Progress(*columns, console=console, transient=True)
    with echo_off(console.file), bars:
        yield _Bars(console, bars).show


class _JsonLines:
    """A line for everything. Where nobody reads them any more the run stops, with all kept."""

    def __init__(self, stream: TextIO, cancel: CancelToken) -> None:
        self._stream, self._cancel = stream, cancel
        self.broken: BrokenPipeError | None = None

    def show(self, event: events.TrainingEvent) -> None:
        if self.broken is not None:
            return
        try:
            self._stream.write(json.dumps(events.to_json(event)) + "\n")
            self._stream.flush()
        except BrokenPipeError as error:
            self.broken = error
            self._cancel.cancel()


class _Lines:
    """Without a terminal: a line for what happens, and one for each tenth of a stage."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tenth = ("", -1)

    def show(self, event: events.TrainingEvent) -> None:
        if isinstance(event, events.Progress):
            tenth = (event.stage, 10 * event.done // max(1, event.total))
            if event.unit == "percent" or tenth == self._tenth:
                return
            self._tenth = tenth
            self._console.print(sentence(f"{event.stage}: {numbers(event)}"))
        elif text := told(event):
            self._console.print(sentence(text))


class _Bars:
    """On a terminal: a bar for the stage, and lines above it for what happens."""

    def __init__(self, console: Console, bars: Progress) -> None:
        self._console, self._bars = console, bars
        self._task = bars.add_task("starting", total=None, numbers="")

    def show(self, event: events.TrainingEvent) -> None:
        if isinstance(event, events.Progress):
            self._bars.update(
                self._task, completed=event.done, total=event.total, numbers=numbers(event)
            )
            return
        if isinstance(event, events.StageStarted):
            self._bars.reset(self._task, description=sentence(event.stage), total=None, numbers="")
        if text := told(event):
            self._console.print(sentence(text))


def numbers(event: events.Progress) -> str:
    """Return the numbers of a stage on one line."""
    if event.unit == "percent":
        return f"{event.done}%"
    parts = [f"{event.done:,} of {event.total:,} {event.unit}"]
    if event.loss is not None:
        parts.append(f"loss {event.loss:.3f}")
    if event.tokens_per_second:
        parts.append(f"{event.tokens_per_second:.0f} tokens/s")
    if event.seconds_left is not None:
        parts.append(f"{_duration(event.seconds_left)} left")
    return ", ".join(parts)


def told(event: events.TrainingEvent) -> str:
    """Return an event that is no progress as a line, or "" for one that needs none."""
    match event:
        case events.StageStarted():
            again = ", going on" if event.resumed else ""
            return f"{event.stage}: {event.detail}{again}"
        case events.DiskUse():
            needed, free = format_bytes(event.needed_bytes), format_bytes(event.free_bytes)
            return f"needs up to {needed} on the disk of {event.folder}, which has {free} free"
        case events.Evaluated():
            rates = ", ".join(f"{100 * rate:.0f}%" for rate in event.acceptance)
            return (
                f"step {event.step:,}: mean acceptance length {event.length:.2f} on held-out "
                f"text, by position {rates}"
            )
        case events.Notice():
            return event.message
        case events.Paused():
            return "paused" if event.paused else "going on"
        case events.Stopped():
            return "stopped; what is finished is kept, and the same command goes on"
        case events.Finished():
            took = f"took {_duration(event.seconds)}"
            if event.length is None:
                return took
            before = "" if event.before is None else f" (before: {event.before:.2f})"
            return f"mean acceptance length {event.length:.2f}{before}, {took}"
        case _:
            return ""


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"

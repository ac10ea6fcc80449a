"""``paceline models``: what is here, fetching, checking and removing."""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from core.cancel import CancelToken
from core.cli.context import Context
from core.cli.exits import EXIT_DONE, EXIT_USER
from core.cli.interrupts import interrupt_cancels
from core.cli.listing import show_list
from core.cli.options import open_library
from core.cli.style import can_redraw, make_console, sentence
from core.cli.tty import echo_off
from core.errors import Cancelled, UserError
from core.hub.catalog import CatalogModel
from core.hub.download import DownloadProgress
from core.hub.files import format_bytes
from core.hub.library import Library, ModelState

JSON_INTERVAL_S = 0.1
PLAIN_STEPS = 10
"""Without a terminal, progress is one line a tenth."""

Show = Callable[[DownloadProgress], None]


def run(args: argparse.Namespace, context: Context) -> int:
    """Run one action on the models; return the exit code. Raises UserError and Cancelled."""
    library = open_library()
    match args.action:
        case "list":
            return show_list(args, context, library)
        case "get":
            return _get(args, context, library)
        case "check":
            return _check(args, context, library)
        case _:
            return _remove(args, context, library)


def _get(args: argparse.Namespace, context: Context, library: Library) -> int:
    with _terminal_event(args, context, "download"):
        models = library.catalog.members(args.id)
        cancel = CancelToken()
        with _stoppable(args, cancel), _progress(args, context, "download_progress") as show:
            paths = [_fetch(context, model, library, show, cancel) for model in models]
        found = [
            {"id": model.id, "path": str(path)} for model, path in zip(models, paths, strict=True)
        ]
        if args.json:
            _emit(context, "download_finished", models=found)
        for model, path in zip(models, paths, strict=True):
            _report(args, context, f"{model.id} is ready: {path}")
    return EXIT_DONE


def _fetch(
    context: Context, model: CatalogModel, library: Library, show: Show, cancel: CancelToken
) -> Path:
    try:
        return context.download(model, library, show, cancel)
    except UserError:
        # Ctrl+C reaches the transfer's own process too, which then seems to have failed.
        if cancel.cancelled:
            raise Cancelled from None
        raise


def _check(args: argparse.Namespace, context: Context, library: Library) -> int:
    with _terminal_event(args, context, "check"):
        models = library.catalog.members(args.id)
        cancel = CancelToken()
        verdicts: list[tuple[CatalogModel, bool]] = []
        with _stoppable(args, cancel), _progress(args, context, "check_progress") as show:
            for model in models:

                def on_bytes(done_bytes: int, model: CatalogModel = model) -> None:
                    show(
                        DownloadProgress(
                            model_id=model.id,
                            stage="checking",
                            done_bytes=done_bytes,
                            total_bytes=model.size_bytes,
                        )
                    )

                verdicts.append((model, library.check(model.id, on_bytes, cancel)))
        if args.json:
            results = [{"id": model.id, "ok": ok} for model, ok in verdicts]
            _emit(context, "check_finished", models=results)
    for model, ok in verdicts:
        verdict = (
            "is the published file"
            if ok
            else f"differs from the published file. Fetch it again: paceline models get {model.id}"
        )
        _report(args, context, f"{model.id} {verdict}")
    return EXIT_DONE if all(ok for _, ok in verdicts) else EXIT_USER


def _remove(args: argparse.Namespace, context: Context, library: Library) -> int:
    with _terminal_event(args, context, "remove"):
        models = library.catalog.members(args.id)
        here = [m for m in models if library.status(m.id).state is not ModelState.ABSENT]
        if here and not args.yes and not _confirmed(args, context, here):
            _report(args, context, "Nothing was deleted.")
            return EXIT_DONE
        for model in here:
            library.remove(model.id)
        if args.json:
            _emit(context, "remove_finished", models=[{"id": model.id} for model in here])
    for model in models:
        _report(args, context, f"{model.id} {'was removed' if model in here else 'is not here'}")
    return EXIT_DONE


def _confirmed(args: argparse.Namespace, context: Context, models: list[CatalogModel]) -> bool:
    names = " and ".join(model.title for model in models)
    if args.json or not context.stdin.isatty():
        raise UserError(f"{names} would be deleted.", "Say --yes to do it without being asked.")
    context.stderr.write(f"Delete {names} from this computer? [y/N] ")
    context.stderr.flush()
    return context.stdin.readline().strip().lower() in ("y", "yes")


def _stoppable(args: argparse.Namespace, cancel: CancelToken) -> AbstractContextManager[None]:
    # A program that reads the JSON stops the work by a signal, whatever it was started from.
    return interrupt_cancels(cancel, even_if_ignored=args.json)


@contextmanager
def _terminal_event(args: argparse.Namespace, context: Context, work: str) -> Iterator[None]:
    """With --json, see that the lines end with one that says how it went."""
    try:
        yield
    except UserError as error:
        if args.json:
            _emit(context, "failed", kind="user", message=str(error))
        raise
    except (Cancelled, KeyboardInterrupt):
        if args.json:
            _emit(context, f"{work}_cancelled")
        raise
    except OSError:
        raise  # writing itself may be what failed
    except Exception as error:
        if args.json:
            _emit(context, "failed", kind="bug", message=f"{type(error).__name__}: {error}")
        raise


@contextmanager
def _progress(args: argparse.Namespace, context: Context, event: str) -> Iterator[Show]:
    if args.json:
        yield _json_progress(context, event)
        return
    console = make_console(context.stderr)
    if not can_redraw(console):
        yield _plain_progress(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[numbers]}"))
    bars = Progress(*columns, console=console, transient=True)
    with echo_off(console.file), bars:
        yield _bar_progress(bars)


def _json_progress(context: Context, event: str) -> Show:
    last: tuple[str, str] = ("", "")
    due_s = 0.0

    def show(progress: DownloadProgress) -> None:
        nonlocal last, due_s
        key = (progress.model_id, progress.stage)
        complete = progress.done_bytes == progress.total_bytes
        if key == last and not complete and time.monotonic() < due_s:
            return
        last, due_s = key, time.monotonic() + JSON_INTERVAL_S
        _emit(context, event, **asdict(progress))

    return show


def _plain_progress(console: Console) -> Show:
    last: tuple[str, str, int] = ("", "", -1)

    def show(progress: DownloadProgress) -> None:
        nonlocal last
        step = PLAIN_STEPS * progress.done_bytes // progress.total_bytes
        if (progress.model_id, progress.stage, step) != last:
            last = (progress.model_id, progress.stage, step)
            console.print(f"{progress.stage} {progress.model_id}: {_numbers(progress)}")

    return show


def _bar_progress(bars: Progress) -> Show:
    tasks: dict[tuple[str, str], TaskID] = {}

    def show(progress: DownloadProgress) -> None:
        key = (progress.model_id, progress.stage)
        if key not in tasks:
            for task in tasks.values():
                bars.update(task, visible=False)
            title = f"{progress.stage} {progress.model_id}"
            tasks[key] = bars.add_task(title, total=progress.total_bytes, numbers="")
        bars.update(tasks[key], completed=progress.done_bytes, numbers=_numbers(progress))

    return show


def _numbers(progress: DownloadProgress) -> str:
    text = f"{format_bytes(progress.done_bytes)} of {format_bytes(progress.total_bytes)}"
    if progress.stage == "fetching":
        text += f", {format_bytes(progress.bytes_per_second)}/s"
    return text


def _report(args: argparse.Namespace, context: Context, text: str) -> None:
    if not args.json:
        make_console(context.stdout).print(sentence(text))


def _emit(context: Context, event: str, **fields: object) -> None:
    context.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    context.stdout.flush()

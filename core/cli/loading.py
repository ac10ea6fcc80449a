"""Loading a pair with its progress in sight."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from core.cancel import CancelToken
from core.cli.context import Context, EngineLike
from core.cli.style import can_redraw, sentence
from core.cli.tty import echo_off
from core.errors import UserError
from core.events import Loaded, LoadProgress
from core.requests import DrafterKind, LoadRequest


def load(
    context: Context, request: LoadRequest, on_progress: Callable[[LoadProgress], None]
) -> tuple[EngineLike, Loaded]:
    """Return an engine with the models of the request loaded; Ctrl+C raises KeyboardInterrupt.

    Raises UserError, also for a head that was asked for and cannot be used.
    """
    on_progress(LoadProgress(stage="Starting the engine"))
    engine = context.engine_factory()
    loaded = engine.load(request, on_progress, CancelToken())
    if request.head and loaded.head is None:
        raise UserError(
            f"{_refusal(Path(request.head).absolute().name, loaded)}.",
            "Choose another (paceline models lists them), or leave it out.",
        )
    return engine, loaded


def _refusal(name: str, loaded: Loaded) -> str:
    reasons = [option.reason for option in loaded.drafters if option.kind == DrafterKind.MTP]
    reason = "".join(reasons).rstrip(".") or "the models were loaded without it"
    if name in reason:
        return reason[:1].upper() + reason[1:]
    return f"The head {name} cannot be used: {reason}"


@contextmanager
def progress_line(console: Console) -> Iterator[Callable[[LoadProgress], None]]:
    """Yield what shows load progress: one changing line on a terminal, else a line a stage."""
    if can_redraw(console):
        with echo_off(console.file), console.status("") as status:
            yield lambda progress: status.update(escape(_describe(progress)))
        return
    shown: list[str] = []

    def on_progress(progress: LoadProgress) -> None:
        if progress.stage not in shown:
            shown.append(progress.stage)
            console.print(sentence(f"{progress.stage} {progress.detail}"), style="dim")

    yield on_progress


def _describe(progress: LoadProgress) -> str:
    percent = "" if progress.fraction is None else f" {100 * progress.fraction:.0f}%"
    return sentence(f"{progress.stage} {progress.detail}") + percent

"""Loading a pair with its progress in sight."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

from core.cancel import CancelToken
from core.cli.context import Context, EngineLike
from core.cli.style import can_redraw, sentence
from core.cli.tty import echo_off
from core.events import Loaded, LoadProgress
from core.requests import LoadRequest


def load(
    context: Context, request: LoadRequest, on_progress: Callable[[LoadProgress], None]
) -> tuple[EngineLike, Loaded]:
    """Return an engine with the models of the request loaded; Ctrl+C raises KeyboardInterrupt.

    Raises UserError.
    """
    on_progress(LoadProgress(stage="Starting the engine"))
    engine = context.engine_factory()
    return engine, engine.load(request, on_progress, CancelToken())


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

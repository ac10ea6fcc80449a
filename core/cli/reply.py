"""One reply from the engine to a terminal or a pipe."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.cells import chop_cells
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from core.cancel import CancelToken
from core.cli.context import EngineLike
from core.cli.crash import BugReport
from core.cli.interrupts import interrupt_cancels
from core.cli.style import ORIGIN_STYLES, harmless, say, speed
from core.cli.tty import echo_off
from core.errors import UserError
from core.events import Failed, Finished, FinishReason, Notice, PrefillProgress, Round
from core.metrics import GenerationMetrics, MetricsAccumulator
from core.requests import GenerateRequest

LIVE_MARGIN_ROWS = 4
"""Rows of the screen that a growing line leaves free, so that redrawing never scrolls."""


@dataclass(slots=True)
class Outcome:
    """How a reply ended; ``text`` is what there is of it. ``failure`` is set when it broke off."""

    text: str = ""
    reason: str = ""
    metrics: GenerationMetrics = field(default_factory=GenerationMetrics)
    notices: list[Notice] = field(default_factory=list)
    failure: UserError | BugReport | None = None

    @property
    def cancelled(self) -> bool:
        """Whether the person stopped it."""
        return self.reason == FinishReason.CANCELLED


class ReplyView(Protocol):
    """Where a reply is shown while it comes; a context manager around one reply."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def show_prefill(self, progress: PrefillProgress) -> None:
        """Show how much of the prompt is read."""

    def show_round(self, round_: Round, metrics: GenerationMetrics) -> None:
        """Show the tokens of a round and the numbers so far."""


def receive(
    engine: EngineLike, request: GenerateRequest, view: ReplyView, cancel: CancelToken
) -> Outcome:
    """Show one reply as it comes and return how it ended.

    Ctrl+C cancels the reply; a second one raises KeyboardInterrupt. Raises what writing raises.
    """
    outcome = Outcome()
    numbers = MetricsAccumulator()
    with view, interrupt_cancels(cancel):
        for event in engine.generate(request, cancel):
            match event:
                case PrefillProgress():
                    view.show_prefill(event)
                case Notice():
                    outcome.notices.append(event)
                case Round():
                    numbers.add(event)
                    view.show_round(event, numbers.snapshot())
                case Finished():
                    outcome.text, outcome.metrics = event.text, event.metrics
                    outcome.reason = event.reason
                case Failed():
                    outcome.text, outcome.metrics = event.text, event.metrics
                    outcome.failure = failure_of(event)
    return outcome


def say_notices(console: Console, outcome: Outcome) -> None:
    """Print what the person should know about a reply; why nothing drafts stands elsewhere."""
    for notice in outcome.notices:
        if notice.kind != "speculation-off":
            say(console, notice.message)


def failure_of(event: Failed) -> UserError | BugReport:
    """Return the exception that says what the event says."""
    if event.kind == "user":
        return UserError(event.message)
    return BugReport(event.message, event.detail)


class PlainReply:
    """The reply's own characters and nothing else, for pipes and files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._at_line_start = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._at_line_start and kind is not BrokenPipeError:
            self._write("\n")

    def show_prefill(self, progress: PrefillProgress) -> None:
        """Show nothing: the stream carries the reply alone."""

    def show_round(self, round_: Round, metrics: GenerationMetrics) -> None:
        """Write the text of the round at once."""
        self._write("".join(token.text for token in round_.tokens))

    def _write(self, text: str) -> None:
        if text:
            self._stream.write(text)
            self._stream.flush()
            self._at_line_start = text.endswith("\n")


class TerminalReply:
    """Text that flows on like typing, coloured by origin; nothing is ever redrawn."""

    def __init__(self, console: Console, *, colouring: bool = True) -> None:
        self._console = console
        self._colouring = colouring
        self._at_line_start = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._at_line_start:
            self._console.print()

    def show_prefill(self, progress: PrefillProgress) -> None:
        """Show nothing: there is no line of numbers here."""

    def show_round(self, round_: Round, metrics: GenerationMetrics) -> None:
        """Write the tokens of the round."""
        text = paint(round_, colouring=self._colouring)
        if text:
            self._console.print(text, end="")
            self._at_line_start = text.plain.endswith("\n")


class LiveReply:
    """A reply with a line of live numbers beneath it.

    Finished lines are printed for good, so scrolling back and copying work; only the unfinished
    line and the numbers are redrawn, and never more rows than the screen has. Prose is broken
    between words; lines of code are left to the terminal, so that they are copied whole.
    """

    def __init__(self, console: Console, *, colouring: bool = True) -> None:
        self._console = console
        self._colouring = colouring
        self._line = Text()
        self._in_code = False
        self._stack = ExitStack()
        self._live = Live(
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        self._stack.enter_context(echo_off(self._console.file))
        self._live.start()
        self._draw("reading the prompt")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:
            self._live.stop()
            if self._line:
                self._print_line(self._line)

    def show_prefill(self, progress: PrefillProgress) -> None:
        """Show how far the prompt is read."""
        self._draw(f"reading the prompt: {progress.done} of {progress.total} tokens")

    def show_round(self, round_: Round, metrics: GenerationMetrics) -> None:
        """Add the tokens of the round and renew the numbers."""
        self._line.append_text(paint(round_, colouring=self._colouring))
        *complete, self._line = self._line.split("\n", allow_blank=True)
        for line in complete:
            self._print_line(line)
        self._draw(speed(metrics))

    def _print_line(self, line: Text) -> None:
        fence = line.plain.lstrip().startswith("```")
        self._console.print(line, soft_wrap=self._in_code or fence)
        self._in_code ^= fence

    def _draw(self, status: str) -> None:
        width = self._console.width
        in_code = self._in_code
        rows = fold(self._line, width) if in_code else self._line.wrap(self._console, width)
        shown = rows[-max(1, self._console.height - LIVE_MARGIN_ROWS) :]
        numbers = Text(status, style="dim", no_wrap=True, overflow="crop", end="")
        self._live.update(Group(*(shown if self._line else ()), numbers), refresh=True)


def paint(round_: Round, *, colouring: bool) -> Text:
    """Return the text of a round, harmless, each token in the look of its origin."""
    text = Text()
    for token in round_.tokens:
        text.append(harmless(token.text), style=ORIGIN_STYLES[token.origin] if colouring else "")
    return text


def fold(line: Text, width: int) -> list[Text]:
    """Cut a line into rows where the terminal itself would, so that nothing jumps later."""
    line = line.copy()
    line.expand_tabs(8)
    offsets, offset = [], 0
    for row in chop_cells(line.plain, width)[:-1]:
        offset += len(row)
        offsets.append(offset)
    return list(line.divide(offsets)) if offsets else [line]

"""``paceline ask``: one prompt in, one reply out."""

import argparse
import json
import traceback
from collections.abc import Callable, Iterable

from core.cancel import CancelToken
from core.cli.context import Context
from core.cli.exits import EXIT_DONE, EXIT_INTERRUPTED
from core.cli.interrupts import interrupt_cancels
from core.cli.loading import load, progress_line
from core.cli.options import choices_of, load_request_of
from core.cli.reply import (
    PlainReply,
    ReplyView,
    TerminalReply,
    failure_of,
    receive,
    say_notices,
)
from core.cli.style import SEPARATOR, drafted, ending, in_force, make_console, say, speed
from core.errors import UserError
from core.events import Event, Failed, Finished, FinishReason, to_json


def run(args: argparse.Namespace, context: Context) -> int:
    """Answer the prompt of the arguments or of standard input; return the exit code."""
    if args.json:
        return _answer_json(args, context)
    return answer(args, context, _prompt_of(args, context))


def _prompt_of(args: argparse.Namespace, context: Context) -> str:
    text = " ".join(args.text)
    if text == "-" or not args.text:
        if not args.text and context.stdin.isatty():
            args.complain("there is no TEXT: give one, or pipe one in")
        return read_prompt(context)
    if not text.strip():
        raise UserError("TEXT is empty.", "Write a prompt, or pipe one in.")
    return text


def read_prompt(context: Context) -> str:
    """Return the whole of standard input as one prompt.

    Raises UserError when it is empty or not text.
    """
    try:
        text = context.stdin.read().strip()
    except UnicodeDecodeError:
        raise UserError(
            "Standard input is not UTF-8 text.", "Convert it to UTF-8 and try again."
        ) from None
    if not text:
        raise UserError("Standard input has no text.", "Pipe a prompt in, or give it as TEXT.")
    return text


def answer(args: argparse.Namespace, context: Context, text: str) -> int:
    """Write the reply to standard output and its numbers to standard error."""
    choices = choices_of(args)
    request = choices.request((("user", text),))
    errors = make_console(context.stderr)
    with progress_line(errors) as on_progress:
        engine, loaded = load(context, load_request_of(args), on_progress)
    for sentence in loaded.notices:
        say(errors, sentence)
    output = make_console(context.stdout)
    view: ReplyView = TerminalReply(output) if output.is_terminal else PlainReply(context.stdout)
    outcome = receive(engine, request, view, CancelToken())
    say_notices(errors, outcome)
    if outcome.failure is not None:
        raise outcome.failure
    numbers = speed(outcome.metrics) + drafted(choices.speculation, outcome.metrics)
    numbers += ending(outcome.reason)
    say(errors, f"{numbers}{SEPARATOR}{in_force(choices.speculation, loaded)}")
    return EXIT_INTERRUPTED if outcome.cancelled else EXIT_DONE


def _answer_json(args: argparse.Namespace, context: Context) -> int:
    def emit(event: Event) -> None:
        context.stdout.write(json.dumps(to_json(event)) + "\n")
        context.stdout.flush()

    try:
        request = choices_of(args).request((("user", _prompt_of(args, context)),))
        engine, loaded = load(context, load_request_of(args), emit)
        emit(loaded)
        cancel = CancelToken()
        with interrupt_cancels(cancel, even_if_ignored=True):
            last = _emit_all(engine.generate(request, cancel), emit)
    except UserError as error:
        emit(Failed(kind="user", message=str(error)))
        raise
    except KeyboardInterrupt:
        emit(Finished(reason=FinishReason.CANCELLED, text=""))
        raise
    except OSError:
        raise  # writing itself may be what failed
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        emit(Failed(kind="bug", message=message, detail=traceback.format_exc()))
        raise
    if isinstance(last, Failed):
        raise failure_of(last)
    cancelled = isinstance(last, Finished) and last.reason == FinishReason.CANCELLED
    return EXIT_INTERRUPTED if cancelled else EXIT_DONE


def _emit_all(events: Iterable[Event], emit: Callable[[Event], None]) -> Event | None:
    last = None
    for event in events:
        emit(event)
        last = event
    return last

"""The entry point: parse, run one command, turn what went wrong into one line and a code."""

import argparse
import errno
import logging
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TextIO

from core.cli import ask, bench, chat, distill, doctor, models, train_mtp
from core.cli.context import Context, standard_context
from core.cli.crash import BugReport, explain
from core.cli.exits import EXIT_BROKEN_PIPE, EXIT_BUG, EXIT_INTERRUPTED, EXIT_USER
from core.cli.parser import build_parser
from core.cli.style import sentence
from core.errors import Cancelled, UserError

_COMMANDS: Mapping[str, Callable[[argparse.Namespace, Context], int]] = MappingProxyType(
    {
        "ask": ask.run,
        "chat": chat.run,
        "bench": bench.run,
        "models": models.run,
        "train-mtp": train_mtp.run,
        "distill": distill.run,
        "doctor": doctor.run,
    }
)
_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def main(argv: Sequence[str] | None = None, context: Context | None = None) -> int:
    """Run the command line and return its exit code; no exception leaves.

    ``argv`` excludes the program's name; None takes the process's own. ``context`` None takes the
    process's streams and the real engine. Call it from the main thread, so that Ctrl+C stops a
    reply instead of the program.
    """
    try:
        args = build_parser().parse_args(argv)
    except SystemExit as exit_:  # argparse has said what it had to say
        return exit_.code if isinstance(exit_.code, int) else EXIT_USER
    if context is None:
        debug = args.debug or os.environ.get("PACELINE_DEBUG", "") not in ("", "0")
        context = standard_context(debug=debug)
    _set_up_logging(context)
    try:
        code = _COMMANDS[args.command](args, context)
        context.stdout.flush()
        return code
    except SystemExit as exit_:  # a command that missed something on its command line
        return exit_.code if isinstance(exit_.code, int) else EXIT_USER
    except UserError as error:
        return _complain(context, str(error), EXIT_USER)
    except (Cancelled, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard(context.stdout)
        return EXIT_BROKEN_PIPE
    except BugReport as bug:
        return _report(context, bug)
    except OSError as error:
        if error.errno not in _OUTPUT_ERRORS:
            return _report(context, _fault(error))
        _discard(context.stdout)
        return _complain(context, f"The output could not be written: {error.strerror}.", EXIT_USER)
    except Exception as error:  # noqa: BLE001 - the last line of defence: a code, never a traceback
        return _report(context, _fault(error))


def _set_up_logging(context: Context) -> None:
    if context.debug:
        logging.basicConfig(level=logging.DEBUG, stream=context.stderr)
    elif not logging.getLogger().handlers:  # or Python prints the warnings of loggers to stderr
        logging.getLogger().addHandler(logging.NullHandler())


def _complain(context: Context, message: str, code: int) -> int:
    _say(context.stderr, message)
    if context.debug:
        traceback.print_exc(file=context.stderr)
    return code


def _fault(error: Exception) -> BugReport:
    detail = "".join(traceback.format_exception(error))
    return BugReport(f"{type(error).__name__}: {error}", detail)


def _report(context: Context, bug: BugReport) -> int:
    if context.debug:
        context.stderr.write(bug.detail)
    _say(context.stderr, explain(bug))
    return EXIT_BUG


def _say(stream: TextIO, message: str) -> None:
    stream.write(f"paceline: {sentence(message)}\n")
    stream.flush()


def _discard(stream: TextIO) -> None:
    """Point the process's output at nothing, so that the interpreter's last flush is quiet."""
    if stream is sys.stdout:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)

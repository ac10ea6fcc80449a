"""The terminal's own line discipline."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

if sys.platform != "win32":
    import termios


def read_line(prompt: str) -> str:
    """Show the prompt and return a line of standard input; raises EOFError at its end.

    On a terminal the line can be edited and the arrow keys bring back the lines before it, of
    this run only: what a person writes is kept nowhere else.
    """
    if sys.stdin.isatty() and sys.stdout.isatty():  # elsewhere it may write a sequence of its own
        with suppress(ImportError):  # Windows edits lines by itself
            import readline  # noqa: F401 - input() uses it from now on
    return input(prompt)


@contextmanager
def echo_off(stream: IO[str]) -> Iterator[None]:
    """Keep what is typed, ^C included, from being echoed into lines that are being redrawn.

    What is typed is not lost: it is read afterwards. Nothing happens where ``stream`` is no
    terminal of this kind.
    """
    if sys.platform == "win32":  # the console does not echo while nothing reads it
        yield
        return
    try:
        number = stream.fileno()
        saved = termios.tcgetattr(number)
    except (OSError, ValueError, termios.error):  # no file at all, or not a terminal
        yield
        return
    silent = list(saved)
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(number, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, saved)

"""How the program starts itself for work in a process of its own."""

import os
import signal
import sys

from PySide6.QtCore import QProcess


def paceline_command(*arguments: str) -> list[str]:
    """Return the command line of this program with ``arguments``, frozen or not."""
    if getattr(sys, "frozen", False):
        return [sys.executable, *arguments]
    return [sys.executable, "-m", "paceline", *arguments]


def interrupt(process: QProcess) -> None:
    """Ask a child to end as Ctrl+C would, so that it also ends what it started itself."""
    pid = process.processId()
    if os.name == "posix" and pid > 0:
        os.kill(pid, signal.SIGINT)
    else:
        process.terminate()

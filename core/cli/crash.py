"""What is kept about a fault of the program."""

import os
import tempfile
import time
from pathlib import Path

import platformdirs

from core.errors import BugError, UserError
from core.hub.library import data_root

LOG_NAME = "faults.log"


class BugReport(BugError):
    """A fault that the engine caught; ``detail`` is its traceback."""

    def __init__(self, summary: str, detail: str) -> None:
        super().__init__(summary)
        self.summary = summary
        self.detail = detail


def explain(failure: UserError | BugReport) -> str:
    """Return what a person is told about a failure; a fault is kept in the log besides."""
    if isinstance(failure, UserError):
        return str(failure)
    place = write_report(failure.detail)
    where = f"The details are in {place}." if place else "--debug shows the details."
    return f"A fault in Paceline: {failure.summary.rstrip('.')}. {where}"


def write_report(detail: str) -> Path | None:
    """Append a traceback to the log of faults, which only its owner reads; return the file.

    Where the log cannot be written, a new file in the temporary folder takes its place, and
    where that cannot be written either, nothing is kept and None returned.
    """
    entry = f"{time.strftime('%Y-%m-%d %H:%M:%S')}\n{detail.rstrip()}\n\n"
    try:
        folder = log_dir()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / LOG_NAME
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        try:
            number, name = tempfile.mkstemp(prefix="paceline-fault-", suffix=".log")
        except OSError:
            return None
        path = Path(name)
    with open(number, "a", encoding="utf-8", errors="replace") as file:
        file.write(entry)
    return path


def log_dir() -> Path:
    """Return where logs are kept: beside everything else when PACELINE_HOME is set."""
    if os.environ.get("PACELINE_HOME"):
        return data_root() / "logs"
    return platformdirs.user_log_path("paceline", appauthor=False)

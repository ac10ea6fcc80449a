"""What is kept about a fault of the program."""

import tempfile
import time
from pathlib import Path

from core.errors import BugError, UserError
from core.hub.library import data_root


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
    """Append a traceback to the log in the data folder, or in the temporary folder where that
    cannot be written; return the file, or None where neither can."""
    for folder in (data_root() / "logs", Path(tempfile.gettempdir())):
        path = folder / "paceline-faults.log"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}\n{detail.rstrip()}\n\n")
        except OSError:
            continue
        return path
    return None

"""The log file: what happened, never what was said.

Prompts and replies are logged at DEBUG only. Exceptions are logged with where they happened;
their messages only for kinds that do not quote the values they met.
"""

import logging
import os
import re
import sqlite3
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from traceback import extract_tb
from types import TracebackType

from core.errors import PacelineError

LOG_NAME = "paceline.log"
MAX_LOG_BYTES = 2**20
KEPT_LOGS = 3

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
_CHATTY = ("asyncio", "filelock", "httpcore", "httpx", "huggingface_hub", "urllib3")
_TOKEN = re.compile(r"\bhf_\w{4,}|(?i:\bbearer\s+)\S+")

_PLAIN_SPOKEN = (
    PacelineError,
    AttributeError,
    ImportError,
    MemoryError,
    NameError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    sqlite3.Error,
)
"""Errors whose messages speak of code. ValueError, KeyError and others quote what they met."""


class LogFile:
    """The rotating log file of this run, attached to the root logger until closed.

    ``debug`` also writes DEBUG lines, with the text of prompts. The file is readable by its
    owner only. Raises OSError when the folder cannot be written.
    """

    def __init__(self, folder: Path, *, debug: bool = False) -> None:
        self.path = folder / LOG_NAME
        self._handler = _PrivateHandler(
            self.path,
            maxBytes=MAX_LOG_BYTES,
            backupCount=KEPT_LOGS,
            encoding="utf-8",
            errors="backslashreplace",
        )
        self._handler.setFormatter(_Formatter(_FORMAT))
        root = logging.getLogger()
        self._root_level = root.level
        root.addHandler(self._handler)
        root.setLevel(logging.DEBUG if debug else logging.INFO)
        for name in _CHATTY:
            # They log every request at INFO; what matters of them is an error.
            logging.getLogger(name).setLevel(logging.WARNING)

    def tail(self, lines: int = 40) -> str:
        """Return the last lines, for a report."""
        self._handler.flush()
        text = self.path.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def close(self) -> None:
        """Detach and close the file."""
        root = logging.getLogger()
        root.removeHandler(self._handler)
        root.setLevel(self._root_level)
        self._handler.close()


def describe(error: BaseException) -> str:
    """Return kind and place of an error and its causes, without values that it met.

    The home folder is written as ``~``.
    """
    parts = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        stack = "".join(extract_tb(current.__traceback__).format())
        parts.append(f"Traceback (most recent call last):\n{stack}{summary(current)}")
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
    return without_private("\n\nwhich came of:\n\n".join(parts))


def summary(error: BaseException) -> str:
    """Return one line: the kind of the error, and its message where that quotes no values."""
    kind = type(error).__name__
    if isinstance(error, UnicodeError):
        return kind
    if isinstance(error, OSError):
        return f"{kind}: {error.strerror}" if error.strerror else kind
    if isinstance(error, _PLAIN_SPOKEN) and str(error):
        return f"{kind}: {str(error)[:500]}"
    return kind


def without_private(text: str) -> str:
    """Return ``text`` with access tokens masked and the home folder as ``~``."""
    return _TOKEN.sub("***", text.replace(str(Path.home()), "~"))


class _Formatter(logging.Formatter):
    def formatException(self, ei: _ExcInfo) -> str:
        return describe(ei[1]) if ei[1] is not None else ""

    def format(self, record: logging.LogRecord) -> str:
        # Another handler may have left its own rendering, with the message, in the record.
        record.exc_text = None
        try:
            return _TOKEN.sub("***", super().format(record))
        finally:
            record.exc_text = None


class _PrivateHandler(RotatingFileHandler):
    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return open(descriptor, "a", encoding=self.encoding, errors=self.errors)

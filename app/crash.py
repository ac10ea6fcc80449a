"""Errors that nobody caught: logged, and offered to the person as a report without prompts."""

import faulthandler
import importlib.metadata
import logging
import platform
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TextIO

from app.logs import describe, without_private
from core.errors import UserError

FAULT_NAME = "fault.log"
PREVIOUS_FAULT_NAME = "fault-previous.log"
_PACKAGES = ("paceline", "torch", "transformers", "PySide6-Essentials")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashReport:
    """What the window shows: ``sentence``, and ``text`` to send if the person wants to.

    ``is_bug`` is False for a UserError that nobody caught; it needs no report.
    """

    sentence: str
    text: str
    is_bug: bool = True


class CrashHandler:
    """Catches what reaches the top of any thread, from :meth:`install` to :meth:`uninstall`.

    ``on_crash`` is called in the thread that failed, once for each place that fails: a window
    must hand the report over to its own thread. Crashes below Python (a broken driver) leave
    their stack in ``fault.log`` in ``folder``; the next start finds it in ``previous_fault``.
    Only the one running program (app.single_instance) may install it: the file is its own.
    """

    def __init__(self, folder: Path, on_crash: Callable[[CrashReport], None]) -> None:
        self._folder = folder
        self._on_crash = on_crash
        self._reported: set[str] = set()
        self._fault_file: TextIO | None = None
        self.previous_fault: CrashReport | None = None

    def install(self) -> None:
        """Take over the hooks. Raises OSError when the folder cannot be written."""
        self.previous_fault = self._collect_previous_fault()
        self._fault_file = open(self._folder / FAULT_NAME, "w", encoding="utf-8")  # noqa: SIM115
        self._faults_were_shown = faulthandler.is_enabled()
        faulthandler.enable(self._fault_file)
        self._hooks = (sys.excepthook, threading.excepthook)
        sys.excepthook = self._uncaught
        threading.excepthook = self._uncaught_in_thread

    def uninstall(self) -> None:
        """Give the hooks back and remove the empty fault file."""
        if self._fault_file is None:
            return
        sys.excepthook, threading.excepthook = self._hooks
        faulthandler.disable()
        if self._faults_were_shown and sys.__stderr__ is not None:
            faulthandler.enable(sys.__stderr__)
        self._fault_file.close()
        self._fault_file = None
        (self._folder / FAULT_NAME).unlink(missing_ok=True)

    def _uncaught(
        self,
        kind: type[BaseException],
        error: BaseException,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            self._report(error, threading.current_thread().name)
        self._hooks[0](kind, error, traceback)

    def _uncaught_in_thread(self, args: threading.ExceptHookArgs) -> None:
        if isinstance(args.exc_value, Exception):
            self._report(args.exc_value, args.thread.name if args.thread else "unknown")
        self._hooks[1](args)

    def _report(self, error: Exception, thread: str) -> None:
        _log.error("uncaught in thread %s", thread, exc_info=error)
        stack = describe(error)
        # A fault in painting comes again with every frame; the person is told once.
        if stack in self._reported:
            return
        self._reported.add(stack)
        if isinstance(error, UserError):
            report = CrashReport(sentence=str(error), text="", is_bug=False)
        else:
            report = CrashReport(
                sentence="Something in Paceline went wrong. Your conversations are kept.",
                text=f"{_versions()}\nThread: {thread}\n\n{stack}\n",
            )
        try:
            self._on_crash(report)
        except Exception as failure:  # noqa: BLE001 (nothing is above this)
            _log.error("the crash report could not be shown", exc_info=failure)

    def _collect_previous_fault(self) -> CrashReport | None:
        left = self._folder / FAULT_NAME
        try:
            text = left.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        if not text.strip():
            return None
        left.replace(self._folder / PREVIOUS_FAULT_NAME)
        return CrashReport(
            sentence="Paceline ended unexpectedly the last time. Your conversations are kept.",
            text=f"{_versions()}\n\n{without_private(text)}",
        )


def _versions() -> str:
    lines = [f"Python {platform.python_version()} on {platform.platform()}"]
    for package in _PACKAGES:
        try:
            lines.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            # Frozen programs carry no metadata for some packages.
            lines.append(f"{package} (version unknown)")
    return "\n".join(lines)

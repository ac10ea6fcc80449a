"""Fetches a catalog model in a child process, which speaks JSON lines."""

import json
import logging
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

from app.engine.command import interrupt, paceline_command

logger = logging.getLogger(__name__)

STOP_TIMEOUT_MS = 2000


def models_get_command(name: str) -> list[str]:
    """Return the command that fetches a model or pair and reports in JSON lines."""
    return paceline_command("models", "get", name, "--json")


class ModelFetch(QObject):
    """One fetch at a time; each ends with exactly one of finished, failed and cancelled.

    What was fetched is kept by the child, so that the next fetch goes on where this one ended.
    Lives on the window thread.
    """

    progressed = Signal(str, str, float, float)
    """Model id, stage ("fetching" or "assembling"), fraction 0..1, bytes per second."""
    finished = Signal()
    failed = Signal(str)
    cancelled = Signal()

    def __init__(
        self,
        command: Callable[[str], Sequence[str]] = models_get_command,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._command = command
        self._process: QProcess | None = None
        self._unread = b""
        self._error = ""
        self._stopping = False

    @property
    def running(self) -> bool:
        """Whether a child is at work."""
        return self._process is not None

    def start(self, name: str) -> None:
        """Fetch a model or all models of a pair; ignored while a fetch runs."""
        if self._process is not None:
            return
        self._unread, self._error, self._stopping = b"", "", False
        program, *arguments = self._command(name)
        process = QProcess(self)
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONUNBUFFERED", "1")
        process.setProcessEnvironment(environment)
        process.readyReadStandardOutput.connect(self._read)
        process.errorOccurred.connect(self._broke)
        process.finished.connect(self._ended)
        self._process = process
        process.start(program, arguments)

    def cancel(self) -> None:
        """Stop the fetch; ``cancelled`` follows."""
        if self._process is not None:
            self._stopping = True
            interrupt(self._process)

    def close(self) -> None:
        """Stop the fetch and wait for the child to be gone; emits nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        process.blockSignals(True)
        interrupt(process)
        if not process.waitForFinished(STOP_TIMEOUT_MS):
            process.kill()
            process.waitForFinished(STOP_TIMEOUT_MS)

    def _read(self) -> None:
        if self._process is None:
            return
        self._unread += self._process.readAllStandardOutput().data()
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            kind = event["event"]
            if kind == "download_progress":
                fraction = event["done_bytes"] / max(1, event["total_bytes"])
                self.progressed.emit(
                    event["model_id"], event["stage"], fraction, event["bytes_per_second"]
                )
            elif kind == "failed":
                self._error = event["message"]
        except (ValueError, KeyError, TypeError):
            logger.warning("the fetching process wrote a line that is no event")

    def _broke(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._error = "The program that fetches models could not be started."
            self._ended(1, QProcess.ExitStatus.CrashExit)

    def _ended(self, code: int, status: QProcess.ExitStatus) -> None:
        process = self._process
        if process is None:
            return
        self._read()
        self._process = None
        faults = bytes(process.readAllStandardError().data()).decode("utf-8", "replace").strip()
        process.deleteLater()
        if code == 0 and status == QProcess.ExitStatus.NormalExit:
            self.finished.emit()
        elif self._stopping:
            self.cancelled.emit()
        else:
            if faults:
                logger.error("fetching a model failed:\n%s", faults)
            self.failed.emit(self._error or "The model could not be fetched. Try again.")

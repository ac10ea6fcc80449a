"""Trains a head in a child process, which speaks JSON lines and reads words."""

import json
import logging
import os
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

from app.engine.command import paceline_command
from core.training.events import (
    Failed,
    Finished,
    Stopped,
    TrainingEvent,
    from_json,
)

logger = logging.getLogger(__name__)

STOP_TIMEOUT_MS = 4000
"""How long a closing window waits for the child to keep what it has."""
_FAULT_BYTES = 64 << 10
"""The most that is kept of what a child writes to standard error."""
_NICENESS = 10
_KILLED = 9
_BROKE_OFF = "The training broke off. What was made is kept, and it can be gone on with."
_NO_START = "The program that trains could not be started."


def train_command(arguments: Sequence[str]) -> list[str]:
    """Return the command that trains a head and reports in JSON lines."""
    return paceline_command("train-mtp", "--json", *arguments)


class TrainingProcess(QObject):
    """One training at a time; each ends with exactly one ``ended``.

    ``happened`` carries every event of the child but its last one, ``ended`` that one: Finished,
    Stopped, or Failed, which is made up where the child said nothing. By then the child is gone.
    Lives on the window thread.
    """

    happened = Signal(object)
    ended = Signal(object)

    def __init__(
        self,
        command: Callable[[Sequence[str]], Sequence[str]] = train_command,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._command = command
        self._process: QProcess | None = None
        self._unread = b""
        self._faults = b""
        self._last: TrainingEvent | None = None

    @property
    def running(self) -> bool:
        """Whether a child is at work."""
        return self._process is not None

    def start(self, arguments: Sequence[str]) -> None:
        """Train with the arguments of ``paceline train-mtp``; ignored while a training runs."""
        if self._process is not None:
            return
        self._unread, self._faults, self._last = b"", b"", None
        program, *rest = self._command(arguments)
        process = QProcess(self)
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONUNBUFFERED", "1")
        environment.insert("PYTHONIOENCODING", "utf-8")
        process.setProcessEnvironment(environment)
        process.readyReadStandardOutput.connect(self._read)
        process.readyReadStandardError.connect(self._read_faults)
        process.errorOccurred.connect(self._broke)
        process.finished.connect(self._ended)
        process.started.connect(self._step_back)
        self._process = process
        process.start(program, rest)

    def pause(self) -> None:
        """Let the training wait after its present step."""
        self._say("pause")

    def resume(self) -> None:
        """Let a paused training go on."""
        self._say("resume")

    def cancel(self) -> None:
        """Stop the training after its present step, with everything kept; ``ended`` follows."""
        self._say("cancel")

    def close(self) -> TrainingEvent | None:
        """Stop the training, wait for the child to be gone, and return how it ended.

        None where it did not say. Emits nothing. A child that does not end in time is killed,
        which costs what it made since it last kept something.
        """
        process = self._process
        if process is None:
            return None
        self.blockSignals(True)
        self._say("cancel")
        if not process.waitForFinished(STOP_TIMEOUT_MS):
            process.kill()
            process.waitForFinished(STOP_TIMEOUT_MS)
        self._process = None
        return self._last

    def _say(self, word: str) -> None:
        if self._process is not None:
            self._process.write(f"{word}\n".encode())

    def _step_back(self) -> None:
        """Let the window and its replies go first. Threads of the child inherit this."""
        if self._process is None or os.name != "posix":
            return
        try:
            os.setpriority(os.PRIO_PROCESS, self._process.processId(), _NICENESS)
        except OSError as error:
            logger.info("the training keeps its priority: %s", error.strerror)

    def _read(self) -> None:
        if self._process is None:
            return
        self._unread += self._process.readAllStandardOutput().data()
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            values = json.loads(line)
            if not isinstance(values, dict):
                raise ValueError("no object")
            event = from_json(values)
        except ValueError:
            logger.warning("the training process wrote a line that is no event")
            return
        if isinstance(event, Finished | Stopped | Failed):
            self._last = event
        else:
            self.happened.emit(event)

    def _read_faults(self) -> None:
        if self._process is not None:
            faults = self._faults + self._process.readAllStandardError().data()
            self._faults = faults[-_FAULT_BYTES:]

    def _broke(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._last = Failed(kind="user", message=_NO_START)
            self._ended(1, QProcess.ExitStatus.CrashExit)

    def _ended(self, code: int, status: QProcess.ExitStatus) -> None:
        process = self._process
        if process is None:
            return
        self._read()
        self._read_faults()
        self._process = None
        process.deleteLater()
        faults = self._faults.decode("utf-8", "replace").strip()
        if self._last is None:
            crashed = status == QProcess.ExitStatus.CrashExit
            logger.error("the training process ended with %s:\n%s", code, faults)
            # On Linux this is what a system does to a process that takes all memory.
            hint = " The system may have run out of memory." if crashed and code == _KILLED else ""
            self._last = Failed(kind="user", message=f"{_BROKE_OFF}{hint}")
        elif isinstance(self._last, Failed) and self._last.kind == "bug":
            logger.error("a training failed: %s\n%s", self._last.message, self._last.detail)
        self.ended.emit(self._last)

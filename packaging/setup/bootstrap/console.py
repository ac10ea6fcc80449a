"""What set-up shows: numbered steps and one progress line, on standard error.

Standard output stays free for the answer of ``echo "Hello" | make run``.
"""

import shutil
from typing import TextIO


class SetupError(Exception):
    """Something the person can mend: one sentence, and what to do about it."""

    def __init__(self, message: str, action: str) -> None:
        super().__init__(f"{message} {action}")


class Console:
    """Writes steps, notes and progress; on a terminal progress rewrites its own line."""

    def __init__(self, stream: TextIO, *, steps: int, quiet: bool = False) -> None:
        """Write to ``stream``; ``quiet`` leaves the steps out and keeps the notes."""
        self._stream = stream
        self._steps = steps
        self.is_quiet = quiet
        self._step = 0
        self._progress_shown = False

    @property
    def is_terminal(self) -> bool:
        """Whether progress may rewrite its line."""
        return self._stream.isatty()

    def step(self, text: str) -> None:
        """Begin the next step."""
        self._step += 1
        if not self.is_quiet:
            self._line(f"[{self._step}/{self._steps}] {text}")

    def note(self, text: str) -> None:
        """Write a line below the step."""
        self._line(f"      {text}")

    def progress(self, text: str) -> None:
        """Show ``text`` until the next line; only for a terminal."""
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r\x1b[K      {text}"[: width + 4])
        self._stream.flush()
        self._progress_shown = True

    def _line(self, text: str) -> None:
        if self._progress_shown:
            self._stream.write("\r\x1b[K")
            self._progress_shown = False
        self._stream.write(f"{text}\n")
        self._stream.flush()

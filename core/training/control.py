"""Pause, resume and cancel: words on standard input, or signals, to a run that works.

A parent process writes one word a line. The run looks between two steps, so a word takes effect
within one.
"""

import threading
from collections.abc import Callable
from typing import TextIO

from core.cancel import CancelToken

_POLL_S = 0.2


class Control:
    """What a run is asked to do. Words come from any thread, the run looks from its own."""

    def __init__(self, cancel: CancelToken, on_pause: Callable[[bool], None]) -> None:
        """``on_pause`` is called on the run's thread, with True and later with False."""
        self._cancel = cancel
        self._on_pause = on_pause
        self._running = threading.Event()
        self._running.set()

    def say(self, word: str) -> None:
        """Take a word; what is no word is ignored."""
        match word.strip().lower():
            case "pause":
                self._running.clear()
            case "resume":
                self._running.set()
            case "cancel":
                self._cancel.cancel()
                self._running.set()

    def stopped(self) -> bool:
        """Wait while the run is to pause; return whether it is to stop."""
        if not self._running.is_set() and not self._cancel.cancelled:
            self._on_pause(True)
            # A signal cancels without a word.
            while not self._running.wait(_POLL_S) and not self._cancel.cancelled:
                pass
            self._on_pause(False)
        return self._cancel.cancelled

    def listen(self, stream: TextIO) -> None:
        """Take the words of a stream as they come, until it ends; returns at once.

        A run that is paused when it ends is stopped: nobody is left who could let it go on.
        """
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: TextIO) -> None:
        try:
            for line in stream:
                self.say(line)
        except (OSError, ValueError):
            pass  # closed
        if not self._running.is_set():
            self.say("cancel")

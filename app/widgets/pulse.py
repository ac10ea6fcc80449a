"""A calm pulse for the caret of a reply that is being written."""

import math

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal
from PySide6.QtWidgets import QApplication

_STEP_MS = 80
_REST_MS = 200
"""Longer than from one frame of streamed text to the next, with which it then steps."""
_PERIOD_MS = 1600


class Pulse(QObject):
    """Emits an opacity 0.25..1; a steady 1 where the system asks for no blinking."""

    changed = Signal(float)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._clock = QElapsedTimer()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._step)

    def start(self) -> None:
        """Begin to pulse."""
        if not self._timer.isActive():
            self._clock.start()
            self._timer.start(_STEP_MS)

    def step(self) -> None:
        """Take a step now, with what is painted anyway, in place of the next ones."""
        if self._timer.isActive():
            self._timer.start(_REST_MS)
            self._emit()

    def stop(self) -> None:
        """Stop pulsing."""
        self._timer.stop()

    @property
    def running(self) -> bool:
        """Whether it pulses."""
        return self._timer.isActive()

    def _step(self) -> None:
        if self._timer.interval() != _STEP_MS:
            self._timer.start(_STEP_MS)
        self._emit()

    def _emit(self) -> None:
        if QApplication.cursorFlashTime() <= 0:
            self.changed.emit(1.0)
            return
        wave = (1.0 + math.cos(2.0 * math.pi * self._clock.elapsed() / _PERIOD_MS)) / 2.0
        self.changed.emit(0.25 + 0.75 * wave)

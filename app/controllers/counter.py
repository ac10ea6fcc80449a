"""Counts the prompt's tokens while the person types, on the engine's thread."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine.pump import EventPump
from app.engine.work import CountTokens, Job, TokensCounted
from core.errors import UserError
from core.requests import GenerateRequest

DELAY_MS = 250


class PromptCounter(QObject):
    """Asks for a count once the typing rests; only the newest question is answered.

    ``request`` returns what would be sent now, or None while nothing can be counted.
    ``counted(tokens, limit)`` carries the answer.
    """

    counted = Signal(int, int)

    def __init__(
        self,
        pump: EventPump,
        request: Callable[[], GenerateRequest | None],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._pump = pump
        self._request = request
        self._job: Job | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(DELAY_MS)
        self._timer.timeout.connect(self._ask)
        pump.eventsArrived.connect(self._on_events)

    def schedule(self) -> None:
        """Count soon; an older question is dropped."""
        self.cancel()
        self._timer.start()

    def cancel(self) -> None:
        """Drop the question that is waiting or under way."""
        self._timer.stop()
        if self._job is not None:
            self._job.cancel.cancel()
            self._job = None

    def _ask(self) -> None:
        try:
            request = self._request()
        except UserError:
            return  # a setting is out of range; sending says so
        if request is not None:
            self._job = self._pump.submit(CountTokens(request))

    def _on_events(self, job_id: int, events: tuple[object, ...]) -> None:
        if self._job is None or job_id != self._job.id:
            return
        self._job = None
        answer = events[-1]
        if isinstance(answer, TokensCounted):
            self.counted.emit(answer.tokens, answer.limit)

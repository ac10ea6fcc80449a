"""Carries the worker thread's events onto the window thread, about twelve times a second."""

import time

from PySide6.QtCore import QObject, QTimer, Signal

from app.engine.work import Job, JobEvent, Work
from app.engine.worker import EngineThread

INTERVAL_MS = 80
"""What comes is painted in the same turn: one picture of the window for each."""
TICK_BUDGET_S = 0.012
BATCH = 32
"""Events handed over at once; between batches the budget is looked at."""


class EventPump(QObject):
    """Submits jobs and drains their events while any job is unfinished.

    ``eventsArrived(job_id, events)`` carries a non-empty tuple of events of one job, in order.
    Lives on the window thread. What one tick cannot hand over within its budget waits for the
    next; nothing is dropped.
    """

    eventsArrived = Signal(int, object)

    def __init__(self, thread: EngineThread, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thread = thread
        self._jobs: dict[int, Job] = {}
        self._timer = QTimer(self)
        self._timer.setInterval(INTERVAL_MS)
        self._timer.timeout.connect(self._tick)

    @property
    def running(self) -> bool:
        """Whether any job has not ended yet."""
        return bool(self._jobs)

    def submit(self, work: Work) -> Job:
        """Hand ``work`` to the thread and start draining."""
        job = self._thread.submit(work)
        self._jobs[job.id] = job
        if not self._timer.isActive():
            self._timer.start()
        return job

    def stop(self) -> None:
        """Stop draining for good; used while closing."""
        self._timer.stop()
        self._jobs.clear()

    def drain(self) -> None:
        """Hand over everything that is waiting, whatever it takes; used while closing."""
        while batch := self._next_batch():
            self.eventsArrived.emit(*batch)

    def _tick(self) -> None:
        deadline = time.perf_counter() + TICK_BUDGET_S
        while batch := self._next_batch():
            self.eventsArrived.emit(*batch)
            if time.perf_counter() > deadline:
                return
        if not self._jobs:
            self._timer.stop()

    def _next_batch(self) -> tuple[int, tuple[JobEvent, ...]] | None:
        waiting = self._thread.events
        if not waiting:
            return None
        job_id = waiting[0][0]
        events: list[JobEvent] = []
        # Only this thread takes from the left, so what was seen there stays there.
        while waiting and waiting[0][0] == job_id and len(events) < BATCH:
            event = waiting.popleft()[1]
            events.append(event)
            job = self._jobs.get(job_id)
            if job is not None and job.ends_with(event):
                del self._jobs[job_id]
        return job_id, tuple(events)

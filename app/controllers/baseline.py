"""The speed of plain decoding with the loaded target, to compare drafting with."""

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.controllers.views import Notices, Status
from app.engine.pump import EventPump
from app.engine.work import Generate, Job, JobEvent
from app.widgets.formats import speed
from core.events import Failed, Finished, FinishReason, Loaded, Round
from core.metrics import GenerationMetrics
from core.requests import DrafterKind, GenerateRequest, LoadRequest, SamplingParams

DISMISS = "dismiss-model-notice"
MEASURED_TOKENS = 64
_STEP = 8
"""Tokens between two words on how far it is: the processor that shows them also decodes."""
ENOUGH_TOKENS = 16
"""A plain reply shorter than this says nothing about the machine's speed."""
_TOO_GOOD = 1.2
"""What two honest speeds may differ by beyond the tokens of a round."""
_MEASURING = "Measuring the plain speed"
_TOO_SHORT = (
    "The answer was too short to measure the plain speed. Ask for a longer one, and measure again."
)
_PROMPT = "Explain in a few paragraphs how a bicycle stays upright."


class Baseline(QObject):
    """Remembers plain tokens/s for each target, device and precision, and measures when asked.

    Draft models and heads take no part in plain decoding, so that loading others forgets nothing.
    ``changed`` follows a new value, and the beginning and end of a measurement; how far that is
    and what it found are shown. Lives on the window thread.
    """

    changed = Signal()

    def __init__(
        self, pump: EventPump, status: Status, notices: Notices, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._pump = pump
        self._status = status
        self._notices = notices
        self._values: dict[tuple[str, ...], float] = {}
        self._pair: tuple[str, ...] | None = None
        self._last: GenerateRequest | None = None
        self._job: Job | None = None
        self._tokens = 0
        pump.eventsArrived.connect(self._on_events)

    @property
    def value(self) -> float | None:
        """Plain tokens/s with the loaded target, or None while unknown."""
        return self._values.get(self._pair) if self._pair is not None else None

    @property
    def measuring(self) -> bool:
        """Whether a measurement runs."""
        return self._job is not None

    def set_pair(self, request: LoadRequest, loaded: Loaded) -> None:
        """Say what is loaded now."""
        self._pair = (request.target, loaded.device, loaded.precision)
        self.changed.emit()

    def note(self, request: GenerateRequest, event: Finished | Failed) -> None:
        """Learn from a reply: a plain one that is long enough gives the speed."""
        metrics = event.metrics
        if metrics.tokens >= ENOUGH_TOKENS:
            self._last = request
        enough = metrics.tokens >= ENOUGH_TOKENS and metrics.proposed == 0
        if enough and metrics.tokens_per_second is not None and self._pair is not None:
            self._values[self._pair] = metrics.tokens_per_second
            self.changed.emit()

    def speed_up(self, metrics: GenerationMetrics) -> float | None:
        """Return how much faster than plain decoding a drafted reply was; None where nobody knows.

        A round costs no less than a plain one, so that drafting cannot bring more than the tokens
        of a round. Where it seems to, the plain speed is of a busier time, and is forgotten.
        """
        speed, length = metrics.tokens_per_second, metrics.mean_acceptance_length
        if self._pair is None or not self.value or not speed or not metrics.proposed:
            return None
        found = speed / self.value
        if length is not None and found > _TOO_GOOD * length:
            del self._values[self._pair]
            self.changed.emit()
            return None
        return found

    def measure(self) -> None:
        """Answer the last prompt again without drafting; nothing of it is shown or stored."""
        if self._job is not None or self._pair is None:
            return
        request = self._last or GenerateRequest(
            messages=(("user", _PROMPT),), sampling=SamplingParams(temperature=0.0)
        )
        self._tokens = 0
        plain = replace(request.speculation, drafter=DrafterKind.OFF)
        self._job = self._pump.submit(
            Generate(
                replace(request, speculation=plain, max_new_tokens=MEASURED_TOKENS, stop=()),
                leave_out_oldest=True,
            )
        )
        self._status.set_progress(0.0, _MEASURING)
        self.changed.emit()

    def cancel(self) -> None:
        """Give up a measurement."""
        if self._job is not None:
            self._job.cancel.cancel()
            self._status.clear_progress()

    def _on_events(self, job_id: int, events: tuple[JobEvent, ...]) -> None:
        if self._job is None or job_id != self._job.id:
            return
        last = events[-1]
        if isinstance(last, Finished | Failed):
            work, self._job = self._job.work, None
            if isinstance(work, Generate):
                self.note(self._last or work.request, last)
            self._tell(last)
            self.changed.emit()
            return
        before = self._tokens // _STEP
        self._tokens += sum(len(event.tokens) for event in events if isinstance(event, Round))
        if self._tokens // _STEP > before and not self._job.cancel.cancelled:
            self._status.set_progress(self._tokens / MEASURED_TOKENS, _MEASURING)

    def _tell(self, end: Finished | Failed) -> None:
        if isinstance(end, Finished) and end.reason == FinishReason.CANCELLED:
            return
        self._status.clear_progress()
        self._status.set_state("Ready")
        found = end.metrics.tokens_per_second
        words = f"Plain decoding makes {speed(found)} with this model."
        failed = isinstance(end, Failed) or found is None or end.metrics.tokens < ENOUGH_TOKENS
        if failed:
            words = end.message if isinstance(end, Failed) else _TOO_SHORT
        self._notices.show_notice(words, ((DISMISS, "OK"),), error=failed)

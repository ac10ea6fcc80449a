"""Counts a long message before it is sent, and offers a choice where it does not fit."""

from PySide6.QtCore import QObject, Signal

from app.controllers.views import Notices
from app.engine.pump import EventPump
from app.engine.work import CountTokens, Job, JobEvent, TokensCounted
from core.errors import UserError
from core.events import Failed
from core.requests import GenerateRequest

LEAVE_OUT = "leave-out-oldest"
KEEP_EDITING = "keep-editing"


class LengthGate(QObject):
    """Lets one message at a time pass, or says why not. Lives on the window thread.

    ``fits(text)`` follows when the prompt leaves room for a reply, else ``refused``: with a
    UserError when it could not be counted, with None when the notice offers the choice.
    """

    fits = Signal(str)
    refused = Signal(object)

    def __init__(self, pump: EventPump, notices: Notices, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pump = pump
        self._notices = notices
        self._job: Job | None = None
        self._text = ""
        self._can_leave_out = False
        pump.eventsArrived.connect(self._on_events)

    @property
    def busy(self) -> bool:
        """Whether a message waits for its count."""
        return self._job is not None

    def check(self, text: str, request: GenerateRequest, *, can_leave_out: bool) -> None:
        """Count ``request``, whose last message is ``text``.

        ``can_leave_out`` says whether there are earlier messages to do without.
        """
        self.drop()
        self._text, self._can_leave_out = text, can_leave_out
        self._job = self._pump.submit(CountTokens(request))

    def drop(self) -> None:
        """Forget the message that waits."""
        if self._job is not None:
            self._job.cancel.cancel()
            self._job = None

    def _on_events(self, job_id: int, events: tuple[JobEvent, ...]) -> None:
        if self._job is None or job_id != self._job.id:
            return
        self._job = None
        answer = events[-1]
        if isinstance(answer, TokensCounted):
            if answer.tokens < answer.limit:
                self.fits.emit(self._text)
                return
            self._offer(answer)
            self.refused.emit(None)
        elif isinstance(answer, Failed):
            self.refused.emit(UserError(answer.message))
        else:
            self.refused.emit(None)

    def _offer(self, answer: TokensCounted) -> None:
        said = (
            f"With this message the chat takes {answer.tokens:,} tokens and the model reads at "
            f"most {answer.limit:,}, so it was not sent."
        )
        if self._can_leave_out:
            self._notices.show_notice(
                f"{said} Shorten it, or leave out the oldest messages of this chat.",
                ((LEAVE_OUT, "Leave out the oldest"), (KEEP_EDITING, "Keep editing")),
                error=True,
            )
        else:
            self._notices.show_notice(
                f"{said} Shorten it.", ((KEEP_EDITING, "Keep editing"),), error=True
            )

"""The one reply that may be streaming: from its request to its last event, stored and shown."""

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.controllers.cost import DraftingCost, slower_note
from app.controllers.models import ModelController
from app.controllers.prompts import frozen_settings
from app.controllers.reply import ReplyRun, metrics_of, speed_up_of
from app.controllers.views import ChatViews
from app.engine.pump import EventPump
from app.engine.work import Generate, JobEvent
from app.records import Message, MessageState
from app.storage.conversations import ConversationStore
from app.storage.rounds import rounds_of
from core.errors import UserError
from core.events import Failed, Finished, GammaBelief, Notice, PrefillProgress, Round, Token
from core.requests import GenerateRequest

DISMISS = "dismiss"
CONTEXT_INTERVAL_S = 0.25
"""The length of the context changes with every round; shown more often it could not be read."""

_ENDINGS = {
    "stop": "Ready",
    "length": "Max tokens reached",
    "context": "The context is full",
    "cancelled": "Stopped",
}


class ReplyController(QObject):
    """Streams one reply into the store and, while its conversation is open, into the transcript.

    ``shows(message_id)`` says whether the transcript shows that message now. Lives on the window
    thread; a failure of the disk or the engine ends as a sentence in the window.
    """

    ended = Signal(object)
    """The final Message of the reply."""
    contextGrew = Signal(int)
    """Tokens of the context that the reply which is shown has come to."""

    def __init__(
        self,
        *,
        store: ConversationStore,
        pump: EventPump,
        models: ModelController,
        views: ChatViews,
        shows: Callable[[int], bool],
        clock: Callable[[], float] = time.monotonic,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._pump = pump
        self._models = models
        self._views = views
        self._shows = shows
        self._clock = clock
        self._run: ReplyRun | None = None
        self._cost = DraftingCost()
        self._save_failed = False
        self._context_at = float("-inf")
        pump.eventsArrived.connect(self._on_events)

    @property
    def running(self) -> bool:
        """Whether a reply is being written."""
        return self._run is not None

    @property
    def message(self) -> Message | None:
        """The reply as it stands, or None."""
        return self._run.snapshot() if self._run is not None else None

    def start(
        self, parent: Message, request: GenerateRequest, *, leave_out_oldest: bool
    ) -> Message:
        """Store an empty reply under ``parent``, ask the engine for it, and return it.

        Raises UserError when it cannot be stored; nothing was started then.
        """
        reply = self._store.begin_reply(
            parent.conversation_id,
            parent.id,
            frozen_settings(request, self._models.pair_title, self._models.loaded),
        )
        job = self._pump.submit(Generate(request, leave_out_oldest))
        self._run = ReplyRun(job, reply, self._clock)
        self._cost = DraftingCost()
        self._save_failed = False
        self._context_at = float("-inf")
        self._views.metrics.start_reply()
        self._models.reply_started(request)
        self._views.status.set_state("Reading the prompt")
        return reply

    def stop(self) -> None:
        """Ask the engine to stop; what was decided stays."""
        if self._run is not None and not self._run.job.cancel.cancelled:
            self._run.job.cancel.cancel()
            self._views.status.set_state("Stopping")

    def show_numbers(self, message: Message | None) -> None:
        """Show the plots and numbers of a stored reply, unless one is being written."""
        if self._run is not None:
            return
        self._views.metrics.clear()
        self._models.show_plotted(message)
        if self._models.ready:
            self._views.status.set_state(_ending(message))
        rounds = rounds_of(message) if message is not None else ()
        if message is None or not rounds:
            return
        self._views.metrics.start_reply()
        for round_ in rounds:
            self._views.metrics.add_round(round_)
        self._views.metrics.finish_reply(metrics_of(message, rounds), speed_up=speed_up_of(message))
        self._views.metrics.set_note(_slower(message, rounds[-1].belief))

    def discard(self, conversation_id: int) -> None:
        """Cancel the reply if it belongs to a conversation that is about to be deleted."""
        run = self._run
        if run is not None and run.message.conversation_id == conversation_id:
            run.discarded = True
            run.job.cancel.cancel()

    def close(self) -> None:
        """Store a reply that the engine did not end; call after the thread was shut down."""
        run, self._run = self._run, None
        if run is not None and not run.discarded:
            self._store_end(run.interrupted())

    def _on_events(self, job_id: int, events: tuple[JobEvent, ...]) -> None:
        run = self._run
        if run is None or job_id != run.job.id:
            return
        visible = self._shows(run.message.id)
        tokens: list[Token] = []
        for event in events:
            if isinstance(event, Round):
                run.add(event)
                tokens.extend(event.tokens)
                self._views.metrics.add_round(event)
                self._cost.add(event)
            elif isinstance(event, PrefillProgress) and visible:
                self._views.transcript.set_prefill(event.done, event.total)
            elif isinstance(event, Notice):
                self._notice(run, event, visible)
        if tokens and visible:
            self._views.transcript.append_tokens(run.message.id, tokens)
        last = events[-1]
        if isinstance(last, Finished | Failed):
            self._finish(run, last, visible)
            return
        if isinstance(last, Round) and not run.job.cancel.cancelled:
            self._views.status.set_state("Writing")
            if visible:
                self._tell_context(last.context_length)
            self._models.drafted(last.proposed)
            self._views.metrics.set_note(self._cost.note())
        if not run.discarded and run.save_due():
            self._save(lambda: self._store.save_partial(run.message.id, run.text, run.spans))

    def _tell_context(self, tokens: int) -> None:
        now = self._clock()
        if now - self._context_at >= CONTEXT_INTERVAL_S:
            self._context_at = now
            self.contextGrew.emit(tokens)

    def _finish(self, run: ReplyRun, event: Finished | Failed, visible: bool) -> None:
        self._run = None
        message = run.ended(event)
        metrics = run.metrics(event)
        speed_up = self._models.speed_up(metrics)
        if speed_up is not None:
            message.metrics["speed_up"] = speed_up
        if not run.discarded:
            self._store_end(message)
        self._views.metrics.finish_reply(metrics, speed_up=speed_up_of(message))
        self._views.metrics.set_note(_slower(message, self._cost.belief) or self._cost.note())
        self._models.reply_finished(event)
        if visible:
            self._views.transcript.finish_message(message)
        self._models.show_plotted(message)
        self._views.status.set_state(_ending(message))
        self.ended.emit(message)

    def _store_end(self, message: Message) -> None:
        self._save_failed = False
        self._save(
            lambda: self._store.finish_reply(
                message.id,
                message.text,
                message.spans,
                message.state,
                message.metrics,
                message.error,
            )
        )

    def _save(self, action: Callable[[], object]) -> None:
        """Save, and say once a reply when the disk refuses; the stream goes on."""
        try:
            action()
        except UserError as error:
            if not self._save_failed:
                self._save_failed = True
                self._views.notices.show_notice(str(error), ((DISMISS, "OK"),), error=True)

    def _notice(self, run: ReplyRun, notice: Notice, visible: bool) -> None:
        run.notices.append(notice.message)
        if notice.kind.startswith("speculation"):
            self._models.speculation_broke_off(notice.message)
        elif visible:
            self._views.notices.show_notice(notice.message, ((DISMISS, "OK"),))


def _ending(message: Message | None) -> str:
    if message is None:
        return "Ready"
    if message.state == MessageState.FAILED:
        return "The reply failed"
    return _ENDINGS.get(str(message.metrics.get("reason")), "Ready")


def _slower(message: Message, belief: GammaBelief | None) -> str:
    speculation = message.settings.get("speculation")
    gamma = speculation.get("gamma") if isinstance(speculation, dict) else None
    return slower_note(message.metrics.get("speed_up"), gamma, belief)

"""One reply while it is being written: its text, its spans, and when to save it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from app.engine.work import Job
from app.records import Message, MessageState, TokenSpan
from app.storage.rounds import GAMMA_BELIEF, ROUND_LOG, round_log
from core.events import Failed, Finished, FinishReason, Round
from core.metrics import GenerationMetrics, summarise

SAVE_INTERVAL_S = 1.0


class ReplyRun:
    """Collects the rounds of one job into a message. No Qt, no storage."""

    def __init__(
        self, job: Job, message: Message, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.job = job
        self.message = message
        self.discarded = False
        """Whether the conversation was deleted under it; its events are then ignored."""
        self.notices: list[str] = []
        self._clock = clock
        self._parts: list[str] = []
        self._spans: list[TokenSpan] = []
        self._rounds: list[Round] = []
        self._saved_at = float("-inf")  # so that a kill cannot take the first tokens
        self._unsaved = False

    @property
    def text(self) -> str:
        """The reply so far."""
        return "".join(self._parts)

    @property
    def spans(self) -> tuple[TokenSpan, ...]:
        """One span a token, over :attr:`text`."""
        return tuple(self._spans)

    def add(self, round_: Round) -> None:
        """Take in the tokens of one round."""
        for token in round_.tokens:
            self._parts.append(token.text)
            self._spans.append(
                TokenSpan(
                    len(token.text), token.origin, token.id, token.target_prob, token.draft_prob
                )
            )
        self._rounds.append(round_)
        self._unsaved = True

    def save_due(self) -> bool:
        """Whether something is unsaved for a second; saying so starts the next second."""
        now = self._clock()
        if not self._unsaved or now - self._saved_at < SAVE_INTERVAL_S:
            return False
        self._saved_at, self._unsaved = now, False
        return True

    def snapshot(self) -> Message:
        """Return the message as it stands, still streaming."""
        return replace(self.message, text=self.text, spans=self.spans)

    def metrics(self, event: Finished | Failed) -> GenerationMetrics:
        """Return the numbers of the reply, counted here where the engine could not send them."""
        return event.metrics if event.metrics.rounds else summarise(self._rounds)

    def ended(self, event: Finished | Failed) -> Message:
        """Return the message in its final state."""
        text, spans = self._settle(event.text or self.text)
        metrics: dict[str, object] = asdict(self.metrics(event))
        metrics[ROUND_LOG] = round_log(self._rounds)
        belief = next((each.belief for each in reversed(self._rounds) if each.belief), None)
        if belief is not None:
            metrics[GAMMA_BELIEF] = asdict(belief)
        if self.notices:
            metrics["notices"] = list(self.notices)
        if isinstance(event, Failed):
            state, error = MessageState.FAILED, event.message
        else:
            metrics["reason"] = str(event.reason)
            stopped = event.reason == FinishReason.CANCELLED
            state, error = MessageState.STOPPED if stopped else MessageState.COMPLETE, ""
        return replace(
            self.message, text=text, spans=spans, state=state, metrics=metrics, error=error
        )

    def interrupted(self) -> Message:
        """Return the message for a program that ends before the engine answered."""
        return replace(self.snapshot(), state=MessageState.INTERRUPTED)

    def _settle(self, text: str) -> tuple[str, tuple[TokenSpan, ...]]:
        """Cut or drop spans so that their lengths add up to the length of ``text``."""
        left = len(text)
        spans: list[TokenSpan] = []
        for span in self._spans:
            spans.append(span if span.length <= left else replace(span, length=left))
            left -= spans[-1].length
        if left and spans:
            spans[-1] = replace(spans[-1], length=spans[-1].length + left)
        return text, tuple(spans)


def metrics_of(message: Message, rounds: Sequence[Round]) -> GenerationMetrics:
    """Return the numbers of a stored reply, counted again from its rounds."""

    def stored(name: str) -> float:
        value = message.metrics.get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    return summarise(
        rounds,
        prompt_tokens=int(stored("prompt_tokens")),
        reused_tokens=int(stored("reused_tokens")),
        prefill_ms=stored("prefill_ms"),
    )


def speed_up_of(message: Message) -> float | None:
    """Return the speed-up that was measured of a stored reply; None where none was."""
    value = message.metrics.get("speed_up")
    return float(value) if isinstance(value, int | float) else None

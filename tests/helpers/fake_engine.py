"""A scripted engine: real events, no models, and gates in place of time."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from core.cancel import CancelToken
from core.errors import UserError
from core.events import (
    DrafterOption,
    Event,
    Finished,
    FinishReason,
    Loaded,
    LoadProgress,
    Origin,
    PrefillProgress,
    Round,
    Token,
)
from core.metrics import summarise
from core.requests import GenerateRequest, LoadRequest

GATE_TIMEOUT_S = 60.0


class Gate:
    """Holds the worker until the test opens it, or until the job is cancelled."""

    def __init__(self, *, open_: bool = True) -> None:
        self._event = threading.Event()
        self.reached = threading.Event()
        if open_:
            self._event.set()

    def open(self) -> None:
        self._event.set()

    def close(self) -> None:
        self.reached.clear()
        self._event.clear()

    def wait(self, cancel: CancelToken) -> None:
        self.reached.set()
        for _ in range(int(GATE_TIMEOUT_S / 0.005)):
            if self._event.wait(0.005) or cancel.cancelled:
                return
        raise TimeoutError("a gate of the test was never opened")


def make_round(
    index: int,
    words: Sequence[str],
    *,
    gamma: int = 4,
    accepted: int | None = None,
    rejected: int = 0,
    ms: float = 20.0,
) -> Round:
    """A round whose last token is the target's; gamma 0 makes it a plain round."""
    accepted = len(words) - 1 if accepted is None else accepted
    last = Origin.PLAIN if gamma == 0 else (Origin.RESAMPLED if rejected else Origin.BONUS)
    tokens = tuple(
        Token(
            id=1000 + index * 20 + i,
            text=word,
            origin=Origin.ACCEPTED if i < accepted else last,
            target_prob=0.8,
            draft_prob=0.7 if i < accepted else None,
        )
        for i, word in enumerate(words)
    )
    drops = tuple(
        Token(id=5000 + i, text=" no", origin=Origin.ACCEPTED, target_prob=0.1, draft_prob=0.6)
        for i in range(rejected)
    )
    return Round(
        index=index,
        gamma=gamma,
        proposed=accepted + rejected,
        accepted=accepted,
        tokens=tokens,
        rejected=drops,
        draft_ms=ms / 4,
        verify_ms=ms / 2,
        round_ms=ms,
        elapsed_ms=(index + 1) * ms,
        context_length=20 + (index + 1) * len(words),
    )


DEFAULT_ROUNDS = (
    make_round(0, ["A", " hash", " table", " is"]),
    make_round(1, [" a", " kind"], rejected=2),
    make_round(2, [" of", " **shelf**", "."]),
)


@dataclass
class FakeEngine:
    """What the window sees as an engine; every knob is public."""

    rounds: tuple[Round, ...] = DEFAULT_ROUNDS
    drafters: tuple[DrafterOption, ...] = (
        DrafterOption(kind="ngram", available=True),
        DrafterOption(kind="hybrid", available=True),
        DrafterOption(kind="model", available=False, reason="This pair has no draft model."),
    )
    context_limit: int = 2048
    raise_at_round: int | None = None
    raise_with: Exception = field(default_factory=lambda: RuntimeError("boom at token 5"))
    load_error: Exception | None = None
    notices: tuple[str, ...] = ()
    head: str | None = None
    target: str = "fake-135m"
    before: list[Event] = field(default_factory=list)
    load_gate: Gate = field(default_factory=Gate)
    prefill_gate: Gate = field(default_factory=Gate)
    round_gate: Gate = field(default_factory=Gate)
    gate_at_round: int = 1
    requests: list[GenerateRequest] = field(default_factory=list)
    load_requests: list[LoadRequest] = field(default_factory=list)
    closed: int = 0
    cleared: int = 0
    loaded: Loaded | None = None

    def load(
        self,
        request: LoadRequest,
        on_progress: Callable[[LoadProgress], None],
        cancel: CancelToken,
    ) -> Loaded:
        self.load_requests.append(request)
        on_progress(LoadProgress(stage="Reading the weights", fraction=0.25))
        self.load_gate.wait(cancel)
        if cancel.cancelled:
            raise UserError("The load was cancelled.")
        if self.load_error is not None:
            raise self.load_error
        on_progress(LoadProgress(stage="Warming up", fraction=0.9))
        self.loaded = Loaded(
            target=self.target,
            draft=None,
            device="cpu",
            precision="int8",
            context_limit=self.context_limit,
            drafters=self.drafters,
            head=self.head,
            notices=self.notices,
            memory_bytes=600_000_000,
        )
        return self.loaded

    def unload(self) -> None:
        self.loaded = None

    def clear_caches(self) -> None:
        self.cleared += 1

    def count_prompt_tokens(self, request: GenerateRequest) -> int:
        return sum(len(text.split()) + 4 for _, text in request.messages)

    def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
        self.requests.append(request)
        total = self.count_prompt_tokens(request)
        done: list[Round] = []

        def finished(reason: str) -> Finished:
            text = "".join(token.text for round_ in done for token in round_.tokens)
            metrics = summarise(done, prompt_tokens=total, prefill_ms=10.0)
            return Finished(reason=reason, text=text, metrics=metrics)

        try:
            yield from self.before
            yield PrefillProgress(done=0, total=total)
            self.prefill_gate.wait(cancel)
            if cancel.cancelled:
                yield finished(FinishReason.CANCELLED)
                return
            yield PrefillProgress(done=total, total=total)
            for round_ in self.rounds:
                if round_.index == self.gate_at_round:
                    self.round_gate.wait(cancel)
                if cancel.cancelled:
                    yield finished(FinishReason.CANCELLED)
                    return
                if round_.index == self.raise_at_round:
                    raise self.raise_with
                done.append(round_)
                yield round_
            yield finished(FinishReason.STOP)
        finally:
            self.closed += 1

"""Question 6: what does a second thread cost that drains the events at the window's pace?"""

import threading
import time
from collections import deque

import torch

from benchmarks.gpu.models import free, synthetic_pair
from benchmarks.gpu.replies import random_ids
from benchmarks.gpu.report import Part
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.tokenizer import SpelledIds
from core.cancel import CancelToken
from core.engine import Engine
from core.events import Event, Failed, Finished, Round
from core.requests import GenerateRequest, SamplingParams, SpeculationParams

_INTERVAL_S = 0.033


class _Drain(threading.Thread):
    """Takes events as the window's pump does, and builds the text from them."""

    def __init__(self, events: "deque[Event]") -> None:
        super().__init__(name="drain")
        self._events = events
        self._ended = threading.Event()
        self.text = ""

    def run(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            self._take()
        self._take()

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _take(self) -> None:
        while self._events:
            event = self._events.popleft()
            if isinstance(event, Round):
                self.text += "".join(token.text for token in event.tokens)


def run(setting: Setting, part: Part) -> None:
    """Compare tokens a second with and without it, in turn."""
    pair = synthetic_pair(
        setting.draft if setting.on_cuda else setting.target,
        setting.pair_layers,
        0.8,
        setting.device,
        torch.bfloat16,
    )
    engine = Engine.from_parts(
        target=pair.target, tokenizer=SpelledIds(pair.target.config.vocab_size), draft=pair.draft
    )
    request = GenerateRequest(
        prompt_ids=tuple(random_ids(pair.target.config.vocab_size, 32, seed=8)),
        sampling=SamplingParams(temperature=1.0, seed=9),
        speculation=SpeculationParams(gamma=4),
        max_new_tokens=2 * setting.reply_tokens,
    )
    _reply(engine, request, drained=False)
    speeds: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(2 * setting.turns):
        if not setting.budget.has(5 if setting.on_cuda else 0):
            part.leave_out("more turns: no time was left")
            break
        drained = turn % 2 == 1
        speeds[drained].append(_reply(engine, request, drained=drained))
    engine.unload()
    del pair
    free()
    if not speeds[True]:
        return
    alone, with_thread = max(speeds[False]), max(speeds[True])
    part.row(
        "Window, small model, best of turns",
        {"tokens/s alone": alone, "drained at 30 Hz": with_thread, "ratio": with_thread / alone},
    )


def _reply(engine: Engine, request: GenerateRequest, *, drained: bool) -> float:
    events: deque[Event] = deque()
    drain = _Drain(events) if drained else None
    if drain is not None:
        drain.start()
    started, last = time.perf_counter(), None
    try:
        for event in engine.generate(request, CancelToken()):
            last = event
            events.append(event)
    finally:
        if drain is not None:
            drain.end()
    if isinstance(last, Failed):
        raise RuntimeError(last.message)
    tokens = last.metrics.tokens if isinstance(last, Finished) else 0
    return tokens / (time.perf_counter() - started)

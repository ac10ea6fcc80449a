"""Text of the target's own with the states behind it, from prompts into shards on the disk."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.models.lean.model import LeanModel
from core.training.eager_decode import decode_eagerly
from core.training.jobs import GenerationSettings, Job
from core.training.lean_decode import decode_leanly
from core.training.shards import Pass, ShardStore


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationProgress:
    """How far a run is; tokens are those of replies, and ``flushed`` says that a shard was kept."""

    done_jobs: int
    total_jobs: int
    tokens: int
    """Of replies at work, too, until the last report."""
    total_tokens: int
    """Estimated from what was made so far, or the number asked for."""
    seconds_left: float | None
    flushed: bool


def generate(
    model: Any,
    jobs: Sequence[Job],
    *,
    ends: frozenset[int],
    settings: GenerationSettings,
    store: ShardStore,
    on_progress: Callable[[GenerationProgress], None],
    stop: Callable[[], bool],
    cut: Callable[[], bool] = lambda: False,
    max_tokens: int | None = None,
) -> bool:
    """Make what is missing of the jobs; return whether all that was asked for is there.

    ``model`` is a LeanModel or a transformers causal LM; ``ends`` are the ids that end a reply.
    Ends with what is finished kept when ``stop()`` is true, or when the store holds ``max_tokens``
    of replies. When ``cut()`` is true what is at work is kept, too, as far as it came.
    ``on_progress`` is called after every pass. Raises UserError where the disk refuses.
    """
    done = store.done
    missing = [
        job
        for job in jobs
        if job.key not in done and len(job.prompt_ids) <= settings.max_prompt_tokens
    ]
    total = len(missing)
    meter = _Meter(store, total, settings.max_new_tokens, max_tokens)
    ended = True
    for made in _decode(model, missing, ends, settings, cut):
        flushed = False
        for sequence in made.finished:
            store.add(sequence)
            if store.waiting_tokens >= settings.shard_tokens:
                store.flush()
                flushed = True
        on_progress(meter.after(made, flushed))
        enough = max_tokens is not None and store.tokens >= max_tokens
        if enough or stop():
            ended = enough
            break
    store.flush()
    if ended:
        on_progress(meter.end())
    return ended


def _decode(
    model: Any,
    jobs: Sequence[Job],
    ends: frozenset[int],
    settings: GenerationSettings,
    cut: Callable[[], bool],
) -> Iterator[Pass]:
    if not jobs:
        return iter(())
    if isinstance(model, LeanModel):
        return decode_leanly(model, jobs, ends, settings, cut)
    return decode_eagerly(model, jobs, ends, settings, cut)


class _Meter:
    """Counts tokens as they are made, also those of replies that are not finished."""

    def __init__(self, store: ShardStore, total: int, longest: int, max_tokens: int | None) -> None:
        self._store = store
        self._total = total
        self._longest = longest
        self._max_tokens = max_tokens
        self._started_s = time.monotonic()
        self._before = store.tokens
        self._made = 0
        self._done = 0

    def after(self, made: Pass, flushed: bool) -> GenerationProgress:
        self._made += made.tokens
        self._done += len(made.finished)
        # Short replies end first: those at work say that the mean is longer than they were.
        mean = min(self._longest, self._made / max(1, self._done))
        expected = self._before + round(mean * self._total)
        if self._max_tokens is not None:
            expected = min(expected, self._max_tokens)
        return self._progress(self._before + self._made, expected, flushed)

    def end(self) -> GenerationProgress:
        return self._progress(self._store.tokens, self._store.tokens, False)

    def _progress(self, tokens: int, expected: int, flushed: bool) -> GenerationProgress:
        elapsed_s = time.monotonic() - self._started_s
        left = max(0, expected - tokens)
        return GenerationProgress(
            done_jobs=self._done,
            total_jobs=self._total,
            tokens=tokens,
            total_tokens=max(expected, tokens),
            seconds_left=left * elapsed_s / self._made if self._made and elapsed_s > 0 else None,
            flushed=flushed,
        )

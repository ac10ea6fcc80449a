"""Text of the target's own with the states behind it, from prompts into shards on the disk."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.models.lean.model import LeanModel
from core.training.eager_decode import decode_eagerly
from core.training.jobs import GenerationSettings, Job
from core.training.lean_decode import decode_leanly
from core.training.shards import Generated, ShardStore


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationProgress:
    """How far a run is; tokens are those of replies, and ``flushed`` says that a shard was kept."""

    done_jobs: int
    total_jobs: int
    tokens: int
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
    max_tokens: int | None = None,
) -> bool:
    """Make what is missing of the jobs; return whether all that was asked for is there.

    ``model`` is a LeanModel or a transformers causal LM; ``ends`` are the ids that end a reply.
    Ends with what is finished kept when ``stop()`` is true, or when the store holds ``max_tokens``
    of replies. Raises UserError where the disk refuses.
    """
    done = store.done
    missing = [
        job
        for job in jobs
        if job.key not in done and len(job.prompt_ids) <= settings.max_prompt_tokens
    ]
    total = len(missing)
    meter = _Meter(store, total, max_tokens)
    for finished in _decode(model, missing, ends, settings):
        flushed = False
        for sequence in finished:
            store.add(sequence)
            if store.waiting_tokens >= settings.shard_tokens:
                store.flush()
                flushed = True
        if finished:
            on_progress(meter.after(len(finished), flushed))
        enough = max_tokens is not None and store.tokens >= max_tokens
        if enough or stop():
            store.flush()
            return enough
    store.flush()
    return True


def _decode(
    model: Any, jobs: Sequence[Job], ends: frozenset[int], settings: GenerationSettings
) -> Iterator[list[Generated]]:
    if not jobs:
        return iter(())
    if isinstance(model, LeanModel):
        return decode_leanly(model, jobs, ends, settings)
    return decode_eagerly(model, jobs, ends, settings)


class _Meter:
    def __init__(self, store: ShardStore, total: int, max_tokens: int | None) -> None:
        self._store = store
        self._total = total
        self._max_tokens = max_tokens
        self._started_s = time.monotonic()
        self._before = store.tokens
        self._done = 0

    def after(self, count: int, flushed: bool) -> GenerationProgress:
        self._done += count
        made = self._store.tokens - self._before
        expected = self._before + made * self._total // self._done
        if self._max_tokens is not None:
            expected = min(expected, self._max_tokens)
        elapsed_s = time.monotonic() - self._started_s
        left = max(0, expected - self._store.tokens)
        return GenerationProgress(
            done_jobs=self._done,
            total_jobs=self._total,
            tokens=self._store.tokens,
            total_tokens=max(expected, self._store.tokens),
            seconds_left=left * elapsed_s / made if made and elapsed_s > 0 else None,
            flushed=flushed,
        )

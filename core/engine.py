"""The engine: loads a pair and turns requests into events. Orchestration only.

One thread owns an engine; nothing in it is shared. A terminal chat, a benchmark, a window and a
test consume the same iterator.
"""

import contextlib
import gc
import logging
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import torch

from core.cancel import CancelToken
from core.decoding.loop import Limits, decode
from core.decoding.reply import ReplyAssembler
from core.decoding.rules import acceptance_rule
from core.decoding.sampling import Sampler
from core.drafting.base import Drafter
from core.errors import Cancelled, UserError, clause
from core.events import (
    Event,
    Failed,
    Finished,
    FinishReason,
    Loaded,
    LoadProgress,
    Notice,
    PrefillProgress,
)
from core.metrics import MetricsAccumulator
from core.models.mtp.find import HeadSearch
from core.models.mtp.modules import Head
from core.parts import Parts, assemble
from core.prompt import Rendered, render
from core.requests import GenerateRequest, LoadRequest
from core.warmup import needs_warming, warm_up

_LOG = logging.getLogger(__name__)


class Engine:
    """Owns the models of one pair and their caches. Used by one thread."""

    def __init__(self, *, prepared_dir: Path | None = None) -> None:
        self._prepared_dir = prepared_dir
        self._parts: Parts | None = None
        self._running: Generator[Event, None, None] | None = None

    @classmethod
    def from_parts(
        cls,
        *,
        target: Any,
        tokenizer: Any,
        draft: Any = None,
        drafter: Drafter | None = None,
        head: Head | None = None,
    ) -> "Engine":
        """Build an engine from transformers causal models that share ``tokenizer``.

        ``drafter`` takes the place of every drafter but "off"; ``head`` is one for the target or
        the draft. Raises UserError for a head that is for neither.
        """
        engine = cls()
        engine._parts = assemble(
            target=target,
            tokenizer=tokenizer,
            draft=draft,
            custom=drafter,
            heads=head,
            names=(type(target).__name__, type(draft).__name__ if draft is not None else None),
        )
        return engine

    @property
    def loaded(self) -> Loaded | None:
        """What is in force, or None before a load."""
        return self._parts.loaded if self._parts is not None else None

    def load(
        self,
        request: LoadRequest,
        on_progress: Callable[[LoadProgress], None],
        cancel: CancelToken,
    ) -> Loaded:
        """Load a pair in place of the one before, which is unloaded first.

        Raises UserError with what to do, Cancelled when ``cancel`` was set; nothing is loaded then.
        """
        # Reading checkpoints pulls in half of transformers; from_parts does without it.
        from core.hub.heads import head_folders
        from core.hub.library import data_root
        from core.models.loader import LoadedModel, load_pair
        from core.models.pairing import check_pair

        self.unload()
        pair = load_pair(
            request,
            prepared_dir=self._prepared_dir or data_root() / "prepared",
            on_progress=on_progress,
            cancel=cancel,
        )
        target, draft, notices, no_draft = pair.target, pair.draft, pair.notices, ""
        if request.draft is not None and draft is None:
            no_draft = "the draft model was left out when the pair was loaded"
        if draft is not None:
            verdict = check_pair(
                target.tokenizer, draft.tokenizer, target.vocab_size, draft.vocab_size
            )
            if not verdict.compatible:
                no_draft = f"{draft.name} does not fit: {clause(verdict.reason)}"
                notices += (f"The draft model was left out: {clause(verdict.reason)}.",)
                draft = None

        heads = HeadSearch(
            path=Path(request.head).expanduser() if request.head else None,
            folders=head_folders(),
        )

        def build(draft: LoadedModel | None, notices: tuple[str, ...], no_draft: str) -> Parts:
            return assemble(
                target=target.model,
                tokenizer=target.tokenizer,
                draft=draft.model if draft is not None else None,
                names=(target.name, draft.name if draft is not None else None),
                precision=target.precision,
                context_limit=target.context_limit,
                notices=notices,
                no_draft=no_draft,
                heads=heads,
            )

        parts = build(draft, notices, no_draft)
        if needs_warming(parts):
            on_progress(LoadProgress(stage="Measuring the models"))
            if not warm_up(parts, cancel.is_cancelled) and draft is not None:
                left_out = f"there is not enough memory to run {draft.name} beside {target.name}"
                del parts, pair, draft
                _free_memory()
                notices += (f"The draft model was left out: {left_out}.",)
                parts = build(None, notices, left_out)
                warm_up(parts, cancel.is_cancelled)
            if cancel.cancelled:
                raise Cancelled
        self._parts = parts
        return parts.loaded

    def unload(self) -> None:
        """Drop the models and give their memory back."""
        self._close_running()
        self._parts = None
        _free_memory()

    def clear_caches(self) -> None:
        """Forget every prompt that was read, so that the next one is read from its start."""
        self._close_running()
        self._clear_caches()

    def count_prompt_tokens(self, request: GenerateRequest) -> int:
        """Return how many tokens the request's prompt takes. Raises UserError before a load."""
        return len(_rendered(self._ready(), request).ids)

    def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
        """Yield the events of one reply; the last one is Finished or Failed, and nothing raises.

        Cancelling takes at most one round or one prefill chunk. Closing the iterator early leaves
        the engine ready for the next request. An engine makes one reply at a time: an iterator
        that was left unfinished is closed when this is called.
        """
        self._close_running()
        self._running = self._reply(request, cancel)
        return self._running

    def _close_running(self) -> None:
        # Left to the garbage collector it would put the caches back in the middle of a later reply.
        if self._running is not None:
            self._running.close()
            self._running = None

    def _reply(self, request: GenerateRequest, cancel: CancelToken) -> Generator[Event, None, None]:
        reply: ReplyAssembler | None = None
        try:
            started = time.perf_counter()
            parts = self._ready()
            prompt = _prompt(parts, request)
            drafter, off_reason = parts.choose_drafter(request.speculation)
            yield from prompt.notices
            if off_reason:
                yield Notice(kind="speculation-off", message=off_reason)
            ids = list(prompt.ids)
            reused = yield from self._prefill(parts, request, ids, cancel)
            reply = ReplyAssembler(
                tokenizer=parts.tokenizer,
                stop=request.stop,
                started=started,
                metrics=MetricsAccumulator(
                    prompt_tokens=len(ids),
                    reused_tokens=reused,
                    prefill_ms=1000.0 * (time.perf_counter() - started),
                ),
            )
            reason = yield from self._decode(parts, request, ids, drafter, cancel, reply)
            yield Finished(reason=reason, text=reply.text, metrics=reply.metrics())
        except UserError as error:
            yield _failed("user", str(error), reply)
        except (MemoryError, torch.OutOfMemoryError):
            self._clear_caches()
            yield _failed(
                "user",
                "Memory ran out during this reply. "
                "Shorten the conversation, or load a smaller model.",
                reply,
            )
        except Exception as error:  # noqa: BLE001 - here faults become the last event
            _LOG.exception("a reply broke off")
            self._clear_caches()
            yield _failed(
                "bug",
                f"The engine failed ({type(error).__name__}). The next message will work.",
                reply,
                detail=traceback.format_exc(),
            )

    def _prefill(
        self, parts: Parts, request: GenerateRequest, ids: list[int], cancel: CancelToken
    ) -> Generator[Event, None, int]:
        """Read all of the prompt but its newest token, which is the first round's input.

        Returns how many tokens the last prompt had in common with this one.
        """
        total = len(ids) - 1
        reused: int | None = None
        for done in parts.target.prefill(ids[:total], cancel.is_cancelled):
            reused = done if reused is None else reused
            yield PrefillProgress(done=done, total=total, reused=reused)
        for reader in parts.readers_for(request.speculation):
            if cancel.cancelled:
                break
            for _ in reader.prefill(ids[:total], cancel.is_cancelled):
                yield PrefillProgress(done=total, total=total, reused=reused or 0)
        return reused or 0

    def _decode(
        self,
        parts: Parts,
        request: GenerateRequest,
        ids: list[int],
        drafter: Drafter | None,
        cancel: CancelToken,
        reply: ReplyAssembler,
    ) -> Generator[Event, None, str]:
        """Yield the rounds of the reply and return why it ended; ``ids`` grows by the reply."""
        runner = parts.target.runner
        readers = parts.readers_for(request.speculation)
        if drafter is not None:
            drafter.reset()
        rounds = decode(
            target=parts.target,
            drafter=drafter,
            gamma=parts.gamma_controller(request.speculation),
            rule=acceptance_rule(request.speculation),
            sampler=Sampler(
                request.sampling,
                vocab_size=runner.vocab_size,
                prompt_ids=ids,
                device=runner.device,
            ),
            ids=ids,
            limits=Limits(
                max_new_tokens=request.max_new_tokens,
                context_limit=runner.context_limit,
                stop_ids=parts.stop_ids,
            ),
            cancelled=cancel.is_cancelled,
        )
        reason: str = FinishReason.CANCELLED
        with contextlib.closing(rounds):
            for round_ids in rounds:
                yield from reply.add(round_ids)
                if reply.stopped:
                    return FinishReason.STOP
                reason = round_ids.reason or reason
                for reader in readers:
                    if (notice := reader.take_notice()) is not None:
                        yield notice
        yield from reply.flush()
        return FinishReason.STOP if reply.stopped else reason

    def _clear_caches(self) -> None:
        if self._parts is not None:
            self._parts.clear_caches()

    def _ready(self) -> Parts:
        if self._parts is None:
            raise UserError("No model is loaded.", "Load a model first.")
        return self._parts


def _free_memory() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _failed(kind: str, message: str, reply: ReplyAssembler | None, detail: str = "") -> Failed:
    if reply is None:
        return Failed(kind=kind, message=message, detail=detail)
    return Failed(
        kind=kind, message=message, detail=detail, text=reply.text, metrics=reply.metrics()
    )


def _prompt(parts: Parts, request: GenerateRequest) -> Rendered:
    """Return the ids of the request's prompt. Raises UserError where they do not fit."""
    prompt = _rendered(parts, request)
    limit = parts.target.runner.context_limit
    if len(prompt.ids) >= limit:
        raise UserError(
            f"The conversation takes {len(prompt.ids):,} tokens and the model holds {limit:,}.",
            "Shorten the message, or start a new chat.",
        )
    return prompt


def _rendered(parts: Parts, request: GenerateRequest) -> Rendered:
    if not request.prompt_ids:
        return render(parts.tokenizer, request.messages)
    width = parts.target.runner.width
    for token in request.prompt_ids:
        if not 0 <= token < width:
            raise UserError(
                f"The prompt holds the token id {token}.", f"Ids go from 0 to {width - 1}."
            )
    return Rendered(ids=request.prompt_ids)

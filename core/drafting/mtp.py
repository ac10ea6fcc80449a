"""A trained head as drafter: on the target, or on a draft model that it carries on."""

import time
from collections.abc import Callable, Iterator, Sequence

import torch

from core.decoding.sampling import has_valid_numbers
from core.drafting.base import Draft, DraftContext, limit_of
from core.drafting.growing import GrowingDraft
from core.drafting.model import ModelDrafter
from core.errors import BugError
from core.events import Notice
from core.models.cache import PREFILL_CHUNK, TokenCache
from core.models.mtp.inference import ParallelRunner, SequentialRunner
from core.models.mtp.native import NativeRunner
from core.prompt import common_prefix_length
from core.requests import DrafterKind

_SOURCE = DrafterKind.MTP

StepRunner = SequentialRunner | NativeRunner
"""A head that goes on step by step and keeps what it has read."""


class MtpDrafter:
    """Drafts with a head from the hidden states of its host.

    On the target (``model`` None) the states are those of the pass that verified the last round, so
    a draft costs the head alone. On a draft model, that model gives the first token in one pass
    and the head the following ones. ``host`` is the cache of the host; from now on it keeps the
    states that the head reads. A sequential head goes on as far as it is asked to, a parallel
    one to its depth.
    """

    def __init__(
        self,
        head: StepRunner | ParallelRunner,
        host: TokenCache,
        *,
        vocab_size: int,
        model: ModelDrafter | None = None,
    ) -> None:
        if model is not None and model.cache is not host:
            raise BugError("The head of a draft model needs that model's cache.")
        host.keep_states(head.state_layers)
        self._head = head
        self._host = host
        self._vocab_size = vocab_size
        self._model = model
        self._ids: list[int] = []
        """What the head's cache is made of: one token more than it has entries."""
        self._known = 0
        self._stopped = False
        self._notice: Notice | None = None

    def take_notice(self) -> Notice | None:
        """Return why it stopped drafting in this reply, once."""
        if self._model is not None and (notice := self._model.take_notice()) is not None:
            return notice
        notice, self._notice = self._notice, None
        return notice

    def prefill(self, ids: Sequence[int], stop: Callable[[], bool]) -> Iterator[int]:
        """Read a prompt that the target has read; yields progress, ends early on stop()."""
        if self._model is not None:
            yield from self._model.prefill(ids, stop)
        if not isinstance(self._head, ParallelRunner):
            entries = min(len(ids) - 1, len(self._host))
            for done, _ in self._absorb(self._head, ids, entries, 0):
                yield done
                if stop():
                    return

    def propose(self, context: Sequence[int], gamma: int) -> Draft | None:
        """Draft up to ``gamma`` tokens; declines where there is nothing to draft from."""
        if not isinstance(context, DraftContext) or context.sampler is None:
            raise BugError("A head needs a DraftContext with a sampler.")
        gamma = limit_of(context, _SOURCE, gamma)
        ahead = 0 if self._model is None else 1
        if isinstance(self._head, ParallelRunner):
            gamma = min(gamma, self._head.card.depth + ahead)
        if self._model is not None:
            if gamma <= 0 or not self._model.can_follow(context):
                return None
            gamma = min(gamma, self._model.runner.context_limit - len(context))
        if gamma <= 0 or self._stopped or len(context) + ahead < 2:
            return None
        if self._model is None and len(self._host) < len(context) - 1:
            return None
        draft = GrowingDraft(context, _SOURCE, gamma, self._vocab_size)
        if self._model is None or self._begin(draft, context, self._model):
            self._go_on(draft, context)
        return draft.finished()

    def commit(self, accepted: int, committed_ids: Sequence[int]) -> None:
        """Nothing to learn: the next proposal compares what was read with its context."""

    def reset(self) -> None:
        """Compare all that was read with the next context, which may be unrelated."""
        self._known = 0
        self._stopped = False
        self._notice = None
        if self._model is not None:
            self._model.reset()

    def clear(self) -> None:
        """Give the caches back, but for the target's, which is not the head's own."""
        self._known = 0
        self._ids.clear()
        if not isinstance(self._head, ParallelRunner):
            self._head.crop(0)
        if self._model is not None:
            self._model.clear()

    def _begin(self, draft: GrowingDraft, context: DraftContext, model: ModelDrafter) -> bool:
        """Draw the first token from the draft model; return whether the head should go on."""
        started = time.perf_counter()
        logits = model.read(context)
        draft.steps = 1
        if not self._is_valid(logits, "draft model"):
            return False
        draft.fixed_ms = 1000.0 * (time.perf_counter() - started)
        return draft.add(logits)

    def _go_on(self, draft: GrowingDraft, context: DraftContext) -> None:
        """Draw the tokens that the head gives."""
        head = self._head
        entries = len(context) + len(draft.ids) - 1
        if isinstance(head, ParallelRunner):
            self._draw_at_once(head, draft, entries)
            return
        ids = context[self._known :] + draft.ids
        *_, (_, output) = self._absorb(head, ids, entries, self._known)
        self._known = len(context)
        while True:
            draft.steps += 1
            logits = head.logits(output)
            if not self._is_valid(logits) or not draft.add(logits, head.vocabulary.ids):
                break
            output = head.advance(output, self._host.runner.embed(draft.ids[-1:]))

    def _absorb(
        self, head: StepRunner, ids: Sequence[int], entries: int, known: int
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Bring the head's cache to so many entries of true tokens, in chunks.

        ``ids`` are the tokens from place ``known`` on, one more than the entries; those before are
        as they were. What the head drafted itself is dropped. Yields the entries so far and the
        output [1, hidden] of the last one, which is always made anew.
        """
        same = known + common_prefix_length(self._ids[known:], ids)
        del self._ids[same:]
        self._ids.extend(ids[same - known : entries + 1 - known])
        head.crop(max(min(head.length, same - 1, entries - 1), 0))
        done = head.length
        while done < entries:
            end = min(done + PREFILL_CHUNK, entries)
            states = self._host.states(done)[: end - done]
            output = head.absorb(states, self._host.runner.embed(self._ids[done + 1 : end + 1]))
            done = end
            yield done, output

    def _draw_at_once(self, head: ParallelRunner, draft: GrowingDraft, entries: int) -> None:
        started = time.perf_counter()
        state = self._host.states(entries - 1)[:1]
        rows = head.logits(state, head.card.depth)
        draft.steps += 1
        if not self._is_valid(rows):
            return
        draft.fixed_ms += 1000.0 * (time.perf_counter() - started)
        for row in torch.split(rows, 1):
            if not draft.add(row, head.vocabulary.ids):
                break

    def _is_valid(self, logits: torch.Tensor, whose: str = "head") -> bool:
        if not has_valid_numbers(logits):
            self._stopped = True
            self._notice = Notice(
                kind="draft-broken",
                message=f"The {whose} gives no valid numbers, so it stops drafting here; the "
                "reply goes on without it.",
            )
        return not self._stopped

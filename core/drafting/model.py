"""A small causal language model as drafter."""

from collections.abc import Callable, Iterator, Sequence

import torch

from core.drafting.base import Draft, DraftContext, limit_of
from core.drafting.steps import draft_by_steps
from core.errors import BugError
from core.events import Notice
from core.models.cache import PREFILL_CHUNK, TokenCache
from core.models.runner import Runner
from core.requests import DrafterKind


class ModelDrafter:
    """Drafts with a second model that shapes and draws exactly as the target does."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.cache = TokenCache(runner)
        self._known = 0
        self._stopped = False
        self._notice: Notice | None = None

    @property
    def runner(self) -> Runner:
        """The draft model's own runner."""
        return self._runner

    def take_notice(self) -> Notice | None:
        """Return why it stopped drafting in this reply, once."""
        notice, self._notice = self._notice, None
        return notice

    def prefill(self, ids: Sequence[int], stop: Callable[[], bool]) -> Iterator[int]:
        """Read a prompt in chunks; yields how many tokens are cached, ends early on stop()."""
        return self.cache.prefill(ids[: self._runner.context_limit], stop)

    def propose(self, context: Sequence[int], gamma: int) -> Draft | None:
        """Draft up to ``gamma`` tokens.

        Declines past the draft's own context, and after tokens that the draft does not know.
        """
        if not isinstance(context, DraftContext):
            raise BugError("A model drafter needs a DraftContext.")
        gamma = limit_of(context, DrafterKind.MODEL, gamma)
        if gamma <= 0 or not self.can_follow(context):
            return None
        gamma = min(gamma, self._runner.context_limit - len(context))
        draft, valid = draft_by_steps(
            context,
            gamma,
            DrafterKind.MODEL,
            self.read(context),
            lambda token: self.cache.feed([token], 1),
        )
        if not valid:
            self._stop("draft-broken", "The draft model gives no valid numbers")
        return draft

    def commit(self, accepted: int, committed_ids: Sequence[int]) -> None:
        """Nothing to learn: the next proposal compares the cache with its context."""

    def reset(self) -> None:
        """Compare the whole cache with the next context, which may be unrelated."""
        self._known = 0
        self._stopped = False
        self._notice = None

    def clear(self) -> None:
        """Give the cache back."""
        self._known = 0
        self.cache.clear()

    def can_follow(self, context: DraftContext) -> bool:
        """Return whether the draft model can read this context; leaves a notice where not."""
        if self._stopped:
            return False
        limit = self._runner.context_limit
        if len(context) >= limit:
            self._stop("draft-context", f"The draft model holds {limit:,} tokens")
        elif max(context[self._known :], default=0) >= self._runner.width:
            self._stop("draft-vocabulary", "The draft model does not know a token of this text")
        return not self._stopped

    def _stop(self, kind: str, reason: str) -> None:
        self._stopped = True
        message = f"{reason}, so it stops drafting here; the reply goes on without it."
        self._notice = Notice(kind=kind, message=message)

    def read(self, context: DraftContext) -> torch.Tensor:
        """Feed what the cache lacks of the context; return the logits [1, vocab] after it."""
        kept = self.cache.keep_prefix_of(context, self._known)
        if kept == len(context):
            kept = self.cache.rewind(kept - 1)
        self._known = len(context)
        while len(context) - kept > PREFILL_CHUNK:
            self.cache.feed(context[kept : kept + PREFILL_CHUNK], 1)
            kept = self.cache.rewind(kept + PREFILL_CHUNK)
        return self.cache.feed(context[kept:], 1)

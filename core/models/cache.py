"""Which tokens a runner's cache holds, and how much of it a new prompt can keep."""

from collections.abc import Callable, Iterator, Sequence

import torch

from core.errors import BugError
from core.models.runner import Runner
from core.prompt import common_prefix_length

PREFILL_CHUNK = 256
"""Prompt tokens read between two looks at the cancel flag."""


class TokenCache:
    """A runner with the ids in its cache, so that edits and rejections rewind to what holds."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._ids: list[int] = []
        self._states = torch.empty(0)
        self._kept_layers: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self._ids)

    def keep_states(self, layers: Sequence[int]) -> None:
        """Keep the states after so many layers of all that is read from now on; () keeps none.

        Forgets everything where that changes what is kept.
        """
        if tuple(layers) != self._kept_layers:
            self.clear()
            self.runner.keep_states(layers)
            self._kept_layers = tuple(layers)
            self._states = torch.empty(0)

    def states(self, first: int) -> torch.Tensor:
        """Return the kept states [len(self) - first, width] of the cached tokens from ``first``."""
        return self._states[first : len(self._ids)]

    def keep_prefix_of(self, ids: Sequence[int], known: int = 0) -> int:
        """Rewind to the longest prefix shared with ``ids``; return its length.

        The first ``known`` ids are taken to be equal without looking.
        """
        known = min(known, len(self._ids), len(ids))
        shared = known + common_prefix_length(self._ids[known:], ids[known:])
        return self.rewind(shared)

    def rewind(self, length: int) -> int:
        """Forget all but the first ``length`` tokens; return how many are kept."""
        kept = self.runner.crop(min(length, len(self._ids)))
        del self._ids[kept:]
        return kept

    def clear(self) -> None:
        """Forget everything."""
        self.rewind(0)

    def feed(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        """Append ``ids``; return the logits [rows, vocab] after the last ``rows`` of them."""
        try:
            logits = self.runner.forward(ids, rows)
        except BaseException:
            # A pass that broke off leaves layers of different lengths.
            self._ids.clear()
            self.runner.crop(0)
            raise
        self._ids.extend(ids)
        if self._kept_layers:
            self._store(self.runner.states)
        return logits

    def prefill(self, ids: Sequence[int], stop: Callable[[], bool]) -> Iterator[int]:
        """Read ``ids`` after the shared prefix in chunks, yielding how many are cached so far.

        Ends early, with what was read kept, when ``stop()`` is true.
        """
        done = self.keep_prefix_of(ids)
        yield done
        while done < len(ids) and not stop():
            chunk = ids[done : done + PREFILL_CHUNK]
            self.feed(chunk, 1)
            done += len(chunk)
            self.rewind(done)
            yield done

    def _store(self, states: torch.Tensor | None) -> None:
        if states is None:
            raise BugError("The runner was asked to keep states and has none.")
        length = len(self._ids)
        if length > len(self._states):
            grown = states.new_empty(max(length, 2 * len(self._states), 512), states.shape[1])
            if len(self._states):
                grown[: len(self._states)] = self._states
            self._states = grown
        self._states[length - len(states) : length] = states

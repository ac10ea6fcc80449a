"""Which tokens a runner's cache holds, and how much of it a new prompt can keep."""

from collections.abc import Callable, Iterator, Sequence

import torch

from core.models.runner import Runner
from core.prompt import common_prefix_length

PREFILL_CHUNK = 256
"""Prompt tokens read between two looks at the cancel flag."""


class TokenCache:
    """A runner with the ids in its cache, so that edits and rejections rewind to what holds."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self._ids: list[int] = []

    def __len__(self) -> int:
        return len(self._ids)

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

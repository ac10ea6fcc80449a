"""The lean network behind the interface of every runner."""

from collections.abc import Sequence

import torch

from core.models.lean.attention import KeyValueCache
from core.models.lean.model import LeanModel
from core.models.lean.network import LeanNetwork
from core.models.runner import fitted

_PASS_ROWS = 32
"""Rows of a pass over a prompt: past this the int8 kernel gains nothing and the cache suffers."""


class LeanRunner:
    """Runs a :class:`LeanModel`: a row's logits are the same bit for bit in a round and alone."""

    def __init__(
        self, model: LeanModel, *, vocab_size: int | None = None, context_limit: int | None = None
    ) -> None:
        weights = model.weights
        self.width = weights.shape.vocab
        self.vocab_size = vocab_size if vocab_size is not None else self.width
        self.context_limit = min(len(weights.rotations), context_limit or len(weights.rotations))
        self.device = torch.device("cpu")
        self.croppable = True
        self.exits_early = True
        self.layers = weights.shape.layers
        self.hidden = weights.shape.hidden
        self.states: torch.Tensor | None = None
        self._kept_layers: tuple[int, ...] = ()
        self._weights = weights
        self._cache = KeyValueCache(weights.shape, self.context_limit)
        self._network = LeanNetwork(weights, self._cache)

    @property
    def length(self) -> int:
        """How many tokens the cache holds."""
        return self._cache.length

    @torch.inference_mode()
    def forward(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        """Append ``ids`` and return the logits [rows, vocab] float32 after the last ``rows``."""
        passes = [
            self._network.hidden(ids[first : first + _PASS_ROWS], self._kept_layers)
            for first in range(0, len(ids), _PASS_ROWS)
        ]
        kept = [states for _, states in passes if states is not None]
        self.states = torch.cat(kept) if kept else None
        # Only the last passes hold rows that are asked for.
        needed = -(-rows // _PASS_ROWS) + 1
        hidden = torch.cat([normalised for normalised, _ in passes[-needed:]])[-rows:]
        return fitted(self._network.logits(hidden), self.vocab_size)

    @torch.inference_mode()
    def forward_shallow(self, ids: Sequence[int], start: int, layers: int) -> torch.Tensor:
        """Return the logits [1, vocab] after ``ids`` at ``start`` by the first ``layers`` alone.

        They read and write those layers' rows of the cache, whose length stays. A later pass over
        the same tokens writes the same rows again, bit for bit.
        """
        length = self._cache.length
        self._cache.length = start
        try:
            hidden, _ = self._network.hidden(ids, layers=layers)
        finally:
            self._cache.length = length
        return fitted(self._network.logits(hidden[-1:]), self.vocab_size)

    def crop(self, length: int) -> int:
        """Forget all but the first ``length`` tokens; return how many are kept."""
        self._cache.length = min(length, self._cache.length)
        return self._cache.length

    def keep_states(self, layers: Sequence[int]) -> None:
        """Keep the states after so many layers in later passes, side by side; () keeps none."""
        self._kept_layers = tuple(layers)
        self.states = None

    def embed(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the input embeddings [len(ids), hidden] of tokens, float32."""
        return self._weights.embedding[list(ids)].float()

    def unembedding(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the head's weights [len(ids), hidden] for these tokens, float32."""
        return self._weights.unembedding[list(ids)].float()

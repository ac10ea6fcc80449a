"""Models with recurrent states, which are rolled back by a snapshot.

Attention layers forget tokens by being cropped. A recurrent or convolution state has taken the
tokens in for good, so it is copied before tokens that may be rejected, and put back afterwards;
what was accepted of them is read again together with the next tokens, in the same pass.
"""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache, DynamicLayer

from core.errors import UserError
from core.models.runner import EagerRunner, is_recurrent

_MAX_REREAD = 8
"""Tokens to be read again beyond which they get a pass of their own, so that they do not pile up
while one draft after the other is rejected."""
_PROBE_PROMPT = 8
_PROBE_ROWS = 4
_FLOAT32_TOLERANCE = 1e-3
_TOLERANCE = 0.05
_STATES = ("conv_states", "recurrent_states")


class RecurrentRunner(EagerRunner):
    """A transformers model some of whose layers are recurrent.

    The cache goes back to anywhere since the snapshot, which is taken at the first pass after each
    :meth:`crop`, and else to nothing. Not every model takes its states up again in a pass over
    several tokens; a trial tells, and ``one_by_one`` ones read single tokens after their prompt.

    Raises UserError for models that keep what they read elsewhere than in the cache.
    """

    def __init__(
        self, model: Any, *, vocab_size: int | None = None, context_limit: int | None = None
    ) -> None:
        super().__init__(model, vocab_size=vocab_size, context_limit=context_limit)
        self._snapshot = _Snapshot()
        self._base = 0  # the length at the snapshot
        self._since: list[int] = []  # read after the snapshot
        self._again: list[int] = []  # to be read again, as the cache went back to the snapshot
        self._is_settled = True  # whether the next pass begins where nothing will be rejected
        self.one_by_one = False
        # Where one layer has both a window and a state, transformers cannot tell them apart.
        self.croppable = not any(
            is_recurrent(layer) and hasattr(layer, "sliding_window") for layer in self._cache.layers
        )
        self._try_out(type(model).__name__)

    @property
    def length(self) -> int:
        """How many tokens the cache holds."""
        return self._length + len(self._again)

    @torch.inference_mode()
    def forward(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        """Append ``ids`` and return the logits [rows, vocab] float32 after the last ``rows``."""
        if len(self._again) > _MAX_REREAD:
            again, self._again = self._again, []
            self._read(again, 1)
            self._is_settled = True
        if self._is_settled:
            self._settle()
        again, self._again = self._again, []
        logits = self._read([*again, *ids], rows)
        if self.states is not None:
            self.states = self.states[-len(ids) :]
        return logits

    @torch.inference_mode()
    def crop(self, length: int) -> int:
        """Forget all but the first ``length`` tokens; return how many are kept."""
        if length >= self.length and length > 0:
            self._is_settled = not self._again
            return self.length
        # With a length of 0, too: a first pass that broke off has left something behind.
        if length <= 0 or length < self._base or not self.croppable:
            self._forget()
            return 0
        if not self._again:
            self._go_back()
        del self._again[length - self._base :]
        self._is_settled = False
        return length

    def _read(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        self._since.extend(ids)
        if not self.one_by_one or len(ids) == 1 or (self._length == 0 and rows == 1):
            return super().forward(ids, rows)
        logits: list[torch.Tensor] = []
        states: list[torch.Tensor] = []
        for token in ids:
            logits.append(super().forward([token], 1))
            if self.states is not None:
                states.append(self.states)
        self.states = torch.cat(states) if states else None
        return torch.cat(logits[-rows:])

    def _settle(self) -> None:
        """Take the snapshot: the cache will never have to go back beyond this point."""
        self._snapshot.take(self._cache)
        self._crop_attention(0)
        self._base = self._length
        self._since = []
        self._is_settled = False

    def _go_back(self) -> None:
        """Put the cache back to the snapshot, and what was read since on the list."""
        if self._base == 0:
            self._cache = self._new_cache()
        else:
            self._snapshot.put_back(self._cache)
            self._crop_attention(self._length - self._base)
        self._length = self._base
        self._again, self._since = self._since, []

    def _forget(self) -> None:
        self._cache = self._new_cache()
        self._length = self._base = 0
        self._since, self._again = [], []
        self._is_settled = True

    def _crop_attention(self, count: int) -> None:
        layers: list[Any] = self._cache.layers
        for layer in layers:
            if not is_recurrent(layer):
                # Also with nothing to remove: windows drop what has left them here.
                layer.crop(-count)
            elif isinstance(layer, DynamicLayer) and self.croppable:
                DynamicLayer.crop(layer, -count)

    @torch.inference_mode()
    def _try_out(self, kind: str) -> None:
        """See what the model can do: go on from its states, over several tokens, and go back."""
        ids = torch.linspace(0, self.width - 1, _PROBE_PROMPT + 2 * _PROBE_ROWS).long().tolist()
        prompt, text = ids[:_PROBE_PROMPT], ids[_PROBE_PROMPT:-_PROBE_ROWS]
        others = ids[-_PROBE_ROWS:]
        try:
            singly = self._trial(prompt, [[token] for token in text])
            if not bool((singly > float("-inf")).any(dim=-1).all()):
                self.croppable = False  # damaged weights, which the first reply will tell
                return
            repeatable = self._agree(singly, self._trial(prompt, [[token] for token in text]))
            self.one_by_one = not self._agree(singly, self._trial(prompt, [text]))
            if self.croppable:
                self._trial(prompt, [])
                self.crop(_PROBE_PROMPT)
                self.forward([text[0], *others], len(others) + 1)
                self.crop(_PROBE_PROMPT + 1)
                rest = torch.cat([self.forward([token], 1) for token in text[1:]])
                self.croppable = self._agree(singly[1:], rest)
        except (AttributeError, IndexError, KeyError, NotImplementedError, TypeError, ValueError):
            repeatable = False
        self._forget()
        if not repeatable:
            raise UserError(
                f"Models of the kind {kind} keep what they have read in a form that Paceline "
                "does not know.",
                "Choose another model.",
            )

    def _trial(self, prompt: Sequence[int], passes: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return the logits [tokens, vocab] of passes after a prompt, from an empty cache."""
        self._forget()
        logits = [self.forward(prompt, 1)]
        logits += [self.forward(ids, len(ids)) for ids in passes]
        return torch.cat(logits)[1:]

    def _agree(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        """Return whether logits [rows, vocab] differ by rounding alone."""
        known = torch.isfinite(one).all(dim=0)
        one, other = one[:, known], other[:, known]
        spread = (one - one.mean(dim=-1, keepdim=True)).norm(dim=-1)
        limit = _FLOAT32_TOLERANCE if self._dtype is torch.float32 else _TOLERANCE
        return bool(((one - other).norm(dim=-1) <= limit * spread).all())


class _Snapshot:
    """Copies of the recurrent and convolution states of a cache, and of nothing else."""

    def __init__(self) -> None:
        self._copies: dict[tuple[int, str, int], torch.Tensor] = {}

    def take(self, cache: DynamicCache) -> None:
        for number, layer in enumerate(cache.layers):
            for name in _STATES:
                for index, state in _tensors(layer, name).items():
                    place = (number, name, index)
                    if place in self._copies:
                        self._copies[place].copy_(state)
                    else:
                        self._copies[place] = state.clone()

    def put_back(self, cache: DynamicCache) -> None:
        # In place, as the model updates them in place, too.
        for (number, name, index), copy in self._copies.items():
            _tensors(cache.layers[number], name)[index].copy_(copy)


def _tensors(layer: Any, name: str) -> dict[int, torch.Tensor]:
    states = getattr(layer, name, None) or {}
    return {index: state for index, state in states.items() if state is not None}


def eager_runner(
    model: Any, *, vocab_size: int | None = None, context_limit: int | None = None
) -> EagerRunner:
    """Return the runner that any transformers model can have; raises UserError as they do."""
    runner = EagerRunner(model, vocab_size=vocab_size, context_limit=context_limit)
    if runner.croppable and not getattr(model, "_is_stateful", False):
        return runner
    recurrent = RecurrentRunner(model, vocab_size=vocab_size, context_limit=context_limit)
    # Some families have models without a recurrent layer.
    return runner if runner.croppable else recurrent

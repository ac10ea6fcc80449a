"""A transformers model on a static cache; its passes over few rows can be captured as graphs."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch

from core.errors import BugError
from core.models.memory import DEFAULT_CONTEXT
from core.models.runner import embedded, fitted, unembedded
from core.models.static.attention import PackedAttention
from core.models.static.cache import (
    Places,
    StaticKeyValues,
    position_mask,
    rounded_up,
    visible_places,
)
from core.models.static.graphs import GraphBackend, GraphBook
from core.models.static.shallow import FirstLayers
from core.requests import MAX_GAMMA

STEP_ROWS = MAX_GAMMA + 1
"""Passes over more rows read prompts: they are neither frequent nor alike, so never captured."""


class StaticRunner:
    """Runs a causal language model without an obstacle (:mod:`core.models.static.obstacle`).

    ``graphs`` None runs every pass as it is. Its logits are the eager runner's up to rounding. An
    exception in a pass, such as torch.OutOfMemoryError, gives cache and graphs back.
    """

    def __init__(
        self,
        model: Any,
        *,
        vocab_size: int | None = None,
        context_limit: int | None = None,
        graphs: GraphBackend | None = None,
    ) -> None:
        config = model.config.get_text_config()
        self._model = model.eval()
        self.width: int = config.vocab_size
        self.vocab_size = vocab_size if vocab_size is not None else self.width
        own_limit = getattr(config, "max_position_embeddings", None) or 2**31 - 1
        self.context_limit: int = min(own_limit, context_limit or own_limit)
        self.device: torch.device = model.device
        self.croppable = True
        self.layers: int = config.num_hidden_layers
        self._first_layers = FirstLayers(model, self.layers)
        self.exits_early = self._first_layers.can_be_lent
        self.hidden: int = config.hidden_size
        self.states: torch.Tensor | None = None
        self._kept_layers: tuple[int, ...] = ()
        parameters = inspect.signature(model.forward).parameters
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"
        self._keep_argument = "logits_to_keep" if "logits_to_keep" in parameters else None
        self._attention = PackedAttention(model)
        self._book = None if graphs is None else GraphBook(graphs)
        self._last_place = rounded_up(self.context_limit)
        self._first_capacity = min(rounded_up(DEFAULT_CONTEXT), self._last_place)
        self._length = 0
        self._buffers: _Buffers | None = None
        self._start_over()

    @property
    def length(self) -> int:
        """How many tokens the cache holds."""
        return self._length

    @property
    def captured(self) -> int:
        """How many graphs there are now."""
        return 0 if self._book is None else len(self._book)

    @torch.inference_mode()
    def forward(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        """Append ``ids`` and return the logits [rows, vocab] float32 after the last ``rows``."""
        logits, self.states = self._run(ids, self._length, rows, None)
        self._length += len(ids)
        return logits

    @torch.inference_mode()
    def forward_shallow(self, ids: Sequence[int], start: int, layers: int) -> torch.Tensor:
        """Return the logits [1, vocab] after ``ids`` at ``start`` by the first ``layers`` alone.

        They read and write those layers' rows of the cache, whose length stays. A later pass over
        the same tokens writes the same rows again.
        """
        if not self.exits_early:
            raise BugError("This model cannot be run by its first layers alone.")
        return self._run(ids, start, 1, layers)[0]

    def crop(self, length: int) -> int:
        """Forget all but the first ``length`` tokens; return how many are kept.

        Forgetting all gives back what the cache has grown by.
        """
        self._length = max(min(length, self._length), 0)
        if self._length == 0 and self._places.capacity > self._first_capacity:
            self._start_over()
        return self._length

    def keep_states(self, layers: Sequence[int]) -> None:
        """Keep the states after so many layers in later passes, side by side; () keeps none."""
        if tuple(layers) != self._kept_layers:
            self._kept_layers = tuple(layers)
            self._drop_graphs()
            self._buffers = None
        self.states = None

    def embed(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the input embeddings [len(ids), hidden] of tokens, float32."""
        return embedded(self._model, ids)

    def unembedding(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the head's weights [len(ids), hidden] for these tokens, float32."""
        return unembedded(self._model, ids)

    def _run(
        self, ids: Sequence[int], start: int, rows: int, layers: int | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Run ``ids`` at ``start``; return logits [rows, vocab] and kept states."""
        end = start + len(ids)
        try:
            self._make_room(end)
            visible = visible_places(end, self._places.capacity)
            inputs = torch.tensor([list(ids), list(range(start, end))])  # [2, len(ids)]
            if self._book is not None and len(ids) <= STEP_ROWS:
                return self._step(self._book, inputs, rows, visible, layers)
            logits, states = self._pass(inputs.to(self.device), rows, visible, layers)
        except BaseException:
            self._start_over()
            raise
        return fitted(logits.float(), self.vocab_size), states

    def _pass(
        self, inputs: torch.Tensor, kept_rows: int, visible: int, layers: int | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Run ids and positions [2, rows]; return logits [kept rows, width] and kept states."""
        ids, positions = inputs[0], inputs[1]
        self._places.positions, self._places.visible = positions, visible
        arguments: dict[str, Any] = {
            "attention_mask": position_mask(positions, visible, self._model.dtype),
            "position_ids": positions[None],
            "use_cache": True,
            self._cache_argument: self._cache,
        }
        keeps_states = bool(self._kept_layers) and layers is None
        if self._keep_argument is not None:
            arguments[self._keep_argument] = kept_rows
        if keeps_states:
            arguments["output_hidden_states"] = True
        with self._attention.lent(), self._first_layers.lent(layers):
            output = self._model(ids[None], **arguments)
        logits: torch.Tensor = output.logits[0, -kept_rows:]
        if not keeps_states:
            return logits, None
        kept = [output.hidden_states[layer][0] for layer in self._kept_layers]
        return logits, torch.cat(kept, dim=1).float()

    def _step(
        self, book: GraphBook, inputs: torch.Tensor, rows: int, visible: int, layers: int | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Run a pass through fixed buffers, so that it can be recorded."""
        count = inputs.shape[1]
        if self._buffers is None:
            width = len(self._kept_layers) * self.hidden
            self._buffers = _Buffers(self.vocab_size, width, self.device)
        buffers = self._buffers
        # Dense for every number of rows, so that one copy fills it.
        own_inputs = buffers.inputs[: 2 * count].view(2, count)
        own_inputs.copy_(inputs)

        def step() -> None:
            logits, states = self._pass(own_inputs, count, visible, layers)
            shared = min(logits.shape[1], self.vocab_size)
            buffers.logits[:count, :shared].copy_(logits[:, :shared])
            if states is not None:
                buffers.states[:count].copy_(states)

        book.run((count, visible, layers), step)
        # Copies, because the next pass writes to the same place.
        keeps_states = bool(self._kept_layers) and layers is None
        states = buffers.states[:count].clone() if keeps_states else None
        return buffers.logits[count - rows : count].clone(), states

    def _make_room(self, end: int) -> None:
        capacity = self._places.capacity
        if end <= capacity:
            return
        if end > self._last_place:
            raise BugError(f"A pass would reach position {end} of {self._last_place}.")
        self._drop_graphs()
        self._cache.grow(min(max(2 * capacity, rounded_up(end)), self._last_place))

    def _start_over(self) -> None:
        """Give back cache and graphs."""
        self._length = 0
        self._drop_graphs()
        nowhere = torch.zeros(1, dtype=torch.long)
        self._places = Places(positions=nowhere, visible=0, capacity=self._first_capacity)
        self._cache = StaticKeyValues(self.layers, self._places)

    def _drop_graphs(self) -> None:
        if self._book is not None:
            self._book.drop()


class _Buffers:
    """What a recorded pass reads and writes, at addresses that stay."""

    def __init__(self, vocab_size: int, states_width: int, device: torch.device) -> None:
        self.inputs = torch.zeros(2 * STEP_ROWS, dtype=torch.long, device=device)
        # Columns that the model does not have stay at minus infinity, as in fitted().
        self.logits = torch.full((STEP_ROWS, vocab_size), float("-inf"), device=device)
        self.states = torch.zeros(STEP_ROWS, states_width, device=device)

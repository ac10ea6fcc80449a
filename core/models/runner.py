"""The only caller of a model's forward pass."""

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from transformers import DynamicCache

from core.errors import BugError, UserError


class Runner(Protocol):
    """A causal model with its own key/value cache of one sequence. Used by one thread."""

    width: int
    """How many ids the model itself knows; larger ones cannot be fed."""
    vocab_size: int
    """How wide its logits are returned."""
    context_limit: int
    device: torch.device
    croppable: bool
    """Whether the cache can be rolled back; recurrent states cannot."""
    exits_early: bool
    """Whether :meth:`forward_shallow` can be called."""
    layers: int
    """How many decoder layers the model has."""
    hidden: int
    """How wide the state of a token is between layers."""
    states: torch.Tensor | None
    """Of the last pass, the states that :meth:`keep_states` asked for: [len(ids), width]."""

    @property
    def length(self) -> int:
        """How many tokens the cache holds."""

    def forward(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        """Append ``ids`` and return the logits [rows, vocab] float32 after the last ``rows``."""

    def forward_shallow(self, ids: Sequence[int], start: int, layers: int) -> torch.Tensor:
        """Return the logits [1, vocab] after ``ids`` by the first ``layers`` and the head alone.

        The tokens stand at ``start``, at or after the cache's length, which does not change;
        those between were given to earlier calls.
        """

    def crop(self, length: int) -> int:
        """Forget all but the first ``length`` tokens; return how many are kept.

        Fewer are kept (then none) where the cache cannot go back that far.
        """

    def keep_states(self, layers: Sequence[int]) -> None:
        """Keep the states after so many layers in later passes, side by side; () keeps none.

        The state after all layers is the normalised one, which the head reads.
        """

    def embed(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the input embeddings [len(ids), hidden] of tokens, float32."""

    def unembedding(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the head's weights [len(ids), hidden] for these tokens, float32."""


class EagerRunner:
    """Any transformers causal language model on any device: the reference runner.

    ``vocab_size`` cuts or pads the logits (with minus infinity), so that a draft of another
    padded width has the target's. Sliding-window layers are rolled back by recording; for models
    with recurrent layers there is a runner of its own.

    Raises UserError for models that take no cache of attention keys and values.
    """

    def __init__(
        self, model: Any, *, vocab_size: int | None = None, context_limit: int | None = None
    ) -> None:
        config = model.config.get_text_config()
        self._model = model.eval()
        self.width: int = config.vocab_size
        self.vocab_size = vocab_size if vocab_size is not None else self.width
        own_limit = getattr(config, "max_position_embeddings", None) or 2**31 - 1
        self.context_limit = min(own_limit, context_limit or own_limit)
        self.device: torch.device = model.device
        parameters = inspect.signature(model.forward).parameters
        # transformers renamed the argument in 5.2x; the old name warns where the new one exists.
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"
        if self._cache_argument not in parameters:
            raise UserError(
                f"Models of the kind {type(model).__name__} keep what they have read in a form "
                "that Paceline does not know.",
                "Choose another model.",
            )
        # Not every model counts its positions on from the cache when it is left to itself.
        self._positions_argument = "position_ids" if "position_ids" in parameters else None
        self._keep_argument = "logits_to_keep" if "logits_to_keep" in parameters else None
        self._length = 0
        self._shortest = 0
        self._cache = self._new_cache()
        self._dtype: torch.dtype = model.dtype
        self.croppable = not any(is_recurrent(layer) for layer in self._cache.layers)
        self.exits_early = False
        self.layers: int = config.num_hidden_layers
        self.hidden: int = config.hidden_size
        self.states: torch.Tensor | None = None
        self._kept_layers: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """How many tokens the cache holds."""
        return self._length

    @torch.inference_mode()
    def forward(self, ids: Sequence[int], rows: int) -> torch.Tensor:
        """Append ``ids`` and return the logits [rows, vocab] float32 after the last ``rows``."""
        inputs = torch.tensor([list(ids)], dtype=torch.long, device=self.device)  # [1, len(ids)]
        arguments: dict[str, Any] = {self._cache_argument: self._cache, "use_cache": True}
        if self._positions_argument is not None:
            positions = torch.arange(self._length, self._length + len(ids), device=self.device)
            arguments[self._positions_argument] = positions[None]
        if self._keep_argument is not None:
            arguments[self._keep_argument] = rows
        if self._kept_layers:
            arguments["output_hidden_states"] = True
        output = self._model(inputs, **arguments)
        if self._kept_layers:
            kept = [output.hidden_states[layer][0] for layer in self._kept_layers]
            self.states = torch.cat(kept, dim=1).float()
        logits: torch.Tensor = output.logits[0, -rows:].float()
        self._length += len(ids)
        return fitted(logits, self.vocab_size)

    def crop(self, length: int) -> int:
        """Forget all but the first ``length`` tokens; return how many are kept."""
        if length >= self._length:
            length = self._length
        if length == 0 or length < self._shortest or (length < self._length and not self.croppable):
            self._cache = self._new_cache()
            self._length = self._shortest = 0
            return 0
        if self.croppable:
            # Also with nothing to remove: sliding layers drop what has left their window here.
            self._cache.crop(length - self._length)
        self._length = length
        if self._has_window:
            self._shortest = length if length >= self._window else 0
        return length

    def forward_shallow(self, ids: Sequence[int], start: int, layers: int) -> torch.Tensor:
        """Raise BugError: models of transformers are run whole."""
        raise BugError("This runner does not exit early.")

    def keep_states(self, layers: Sequence[int]) -> None:
        """Keep the states after so many layers in later passes, side by side; () keeps none."""
        self._kept_layers = tuple(layers)
        self.states = None

    def embed(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the input embeddings [len(ids), hidden] of tokens, float32."""
        return embedded(self._model, ids)

    def unembedding(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the head's weights [len(ids), hidden] for these tokens, float32."""
        return unembedded(self._model, ids)

    def _new_cache(self) -> DynamicCache:
        cache = DynamicCache(config=self._model.config)
        windows = [w for layer in cache.layers if (w := getattr(layer, "sliding_window", None))]
        self._has_window = bool(windows)
        self._window: int = min(windows, default=0)
        layers: list[Any] = cache.layers
        for layer in layers:
            if hasattr(layer, "sliding_window") and not is_recurrent(layer):
                layer.activate_past_recording()
        return cache


@torch.inference_mode()
def embedded(model: Any, ids: Sequence[int]) -> torch.Tensor:
    """Return a transformers model's input embeddings [len(ids), hidden] of tokens, float32."""
    chosen = torch.tensor(list(ids), dtype=torch.long, device=model.device)
    rows: torch.Tensor = model.get_input_embeddings()(chosen)
    return rows.float()


@torch.inference_mode()
def unembedded(model: Any, ids: Sequence[int]) -> torch.Tensor:
    """Return a transformers model's head weights [len(ids), hidden] for tokens, float32."""
    chosen = torch.tensor(list(ids), dtype=torch.long, device=model.device)
    weight: torch.Tensor = model.get_output_embeddings().weight
    return weight[chosen].float()


def fitted(logits: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """Cut or pad (with minus infinity) logits [rows, width] to [rows, vocab_size]."""
    missing = vocab_size - logits.shape[-1]
    if missing <= 0:
        return logits[:, :vocab_size]
    return torch.nn.functional.pad(logits, (0, missing), value=float("-inf"))


def is_recurrent(layer: Any) -> bool:
    """Return whether a cache's layer keeps a recurrent or convolution state."""
    return hasattr(layer, "recurrent_states")

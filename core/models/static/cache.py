"""Keys and values of one sequence at fixed addresses, written and masked by position.

A conversation starts with the size that the memory plan counts, and doubles beyond it. Attention
reads the first ``visible`` places only, a power of two, so that a short text does not pay for a
long allocation; nothing moves when that number changes, only when the cache grows.
"""

from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache, StaticLayer

TILE = 64
_FIRST_VISIBLE = 1024


@dataclass(slots=True)
class Places:
    """Where the pass that is running writes, and how far it sees; shared by all layers."""

    positions: torch.Tensor
    """[rows] int64, absolute."""
    visible: int
    capacity: int


class PositionedLayer(StaticLayer):  # type: ignore[no-untyped-call]
    """Keys and values of one layer, [1, kv heads, capacity, head size]."""

    def __init__(self, places: Places) -> None:
        super().__init__(max_cache_len=places.capacity)
        self._places = places

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate zeros: what no token was written to is multiplied by 0, so it must be finite."""
        self._allocate(key_states, value_states)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write [1, heads, rows, size] at the positions; return what is visible."""
        keys, values = self.keys, self.values
        if keys is None or values is None:
            keys, values = self._allocate(key_states, value_states)
        places = self._places
        keys.index_copy_(2, places.positions, key_states)
        values.index_copy_(2, places.positions, value_states)
        return keys[:, :, : places.visible], values[:, :, : places.visible]

    def get_seq_length(self) -> Any:
        """Return the first position of the pass, on the device, so that a graph reads it anew."""
        return self._places.positions[0]

    def grow(self, capacity: int) -> None:
        """Move to a larger allocation."""
        if self.keys is not None and self.values is not None:
            self.keys = _grown(self.keys, capacity)
            self.values = _grown(self.values, capacity)
        self.max_cache_len = capacity

    @property
    def bytes(self) -> int:
        """What the layer takes now."""
        return sum(part.nbytes for part in (self.keys, self.values) if part is not None)

    def _allocate(
        self, key_states: torch.Tensor, value_states: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys = _zeros(key_states, self._places.capacity)
        values = _zeros(value_states, self._places.capacity)
        self.keys, self.values, self.is_initialized = keys, values, True
        return keys, values


class StaticKeyValues(Cache):
    """The layers of one model."""

    def __init__(self, layers: int, places: Places) -> None:
        self._places = places
        self._positioned = [PositionedLayer(places) for _ in range(layers)]
        super().__init__(layers=list(self._positioned))

    def grow(self, capacity: int) -> None:
        """Move every layer in turn, so that only one is there twice at a time."""
        self._places.capacity = capacity
        for layer in self._positioned:
            layer.grow(capacity)

    @property
    def bytes(self) -> int:
        """What the cache takes now."""
        return sum(layer.bytes for layer in self._positioned)


def visible_places(end: int, capacity: int) -> int:
    """Return how far a pass that ends at a position sees."""
    visible = _FIRST_VISIBLE
    while visible < end:
        visible *= 2
    return min(visible, capacity)


def rounded_up(tokens: int) -> int:
    """Return a number of places that attention kernels like."""
    return -(-tokens // TILE) * TILE


def position_mask(positions: torch.Tensor, visible: int, dtype: torch.dtype) -> torch.Tensor:
    """Return the additive mask [1, 1, rows, visible]: each row sees its position and those before.

    By position and not by what is filled, so that stale places behind it never count.
    """
    places = torch.arange(visible, device=positions.device)
    hidden = places > positions[:, None]  # [rows, visible]
    mask = torch.zeros(hidden.shape, dtype=dtype, device=positions.device)
    return mask.masked_fill_(hidden, float("-inf"))[None, None]


def _zeros(states: torch.Tensor, capacity: int) -> torch.Tensor:
    batch, heads, _, size = states.shape
    return states.new_zeros(batch, heads, capacity, size)


def _grown(old: torch.Tensor, capacity: int) -> torch.Tensor:
    grown = _zeros(old, capacity)
    grown[:, :, : old.shape[2]] = old
    return grown

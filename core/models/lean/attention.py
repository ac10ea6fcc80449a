"""Attention at fixed shapes, so that a row's result does not depend on the rows beside it.

Query rows are padded to one block size and keys to a multiple of a tile, masked; a block that
would straddle a tile is split there. Whoever computes a row, alone or in a round, then runs the
very same products over it, and the results are equal bit for bit.
"""

from dataclasses import dataclass

import torch

from core.models.lean.shape import LeanShape

BLOCK_ROWS = 4
"""Query rows of a call. More waste work on single rows, fewer need more calls for a round."""
TILE = 64
_FIRST_CAPACITY = 1024


@dataclass(frozen=True, slots=True)
class _Block:
    """Rows first..last - 1 of a pass see ``keys`` cached keys through ``mask``."""

    first: int
    last: int
    keys: int
    mask: torch.Tensor


class KeyValueCache:
    """Static keys and values of one sequence, [layers, kv heads, capacity, head size] float32.

    Grows by doubling. Rows beyond the length are stale or zero and always masked.
    """

    def __init__(self, shape: LeanShape, context_limit: int) -> None:
        self._shape = shape
        # A block may be padded past the last position.
        self._limit = -(-(context_limit + BLOCK_ROWS) // TILE) * TILE
        self._keys = self._values = torch.empty(0)
        self._capacity = 0
        self.length = 0
        self._reserve(min(_FIRST_CAPACITY, self._limit))

    def plan(self, rows: int) -> list[_Block]:
        """Make room for that many rows after the length, and cut them into blocks."""
        start, end = self.length, self.length + rows
        padded = -(-end // TILE) * TILE
        if padded > self._capacity:
            self._reserve(min(max(padded, 2 * self._capacity), max(self._limit, padded)))
        blocks: list[_Block] = []
        first = start
        while first < end:
            tile_end = (first // TILE + 1) * TILE
            last = min(first + BLOCK_ROWS, tile_end, end)
            positions = torch.arange(first, first + BLOCK_ROWS)
            positions = positions.repeat_interleave(self._shape.group)
            hidden = torch.arange(tile_end) > positions[:, None]  # [block * group, keys]
            mask = torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))
            blocks.append(_Block(first - start, last - start, tile_end, mask.unsqueeze(0)))
            first = last
        return blocks

    def attend(
        self,
        layer: int,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        blocks: list[_Block],
    ) -> torch.Tensor:
        """Store the new keys and values and return the attention's output [rows, heads * size].

        ``queries`` [rows, heads, size]; ``keys`` and ``values`` [rows, kv heads, size].
        """
        shape = self._shape
        rows, size, group, kv_heads = len(queries), shape.head_dim, shape.group, shape.kv_heads
        start = self.length
        self._keys[layer, :, start : start + rows] = keys.transpose(0, 1)
        self._values[layer, :, start : start + rows] = values.transpose(0, 1)
        grouped = queries.view(rows, kv_heads, group, size)
        result = torch.empty(rows, kv_heads, group, size)
        for block in blocks:
            count = block.last - block.first
            padded = torch.zeros(kv_heads, BLOCK_ROWS, group, size)
            padded[:, :count] = grouped[block.first : block.last].transpose(0, 1)
            weights = torch.baddbmm(
                block.mask,
                padded.view(kv_heads, BLOCK_ROWS * group, size),
                self._keys[layer, :, : block.keys].transpose(1, 2),
                alpha=size**-0.5,
            )  # [kv heads, block * group, keys]
            weights = torch.softmax(weights, dim=-1)
            mixed = torch.bmm(weights, self._values[layer, :, : block.keys])
            mixed = mixed.view(kv_heads, BLOCK_ROWS, group, size)
            result[block.first : block.last] = mixed[:, :count].transpose(0, 1)
        return result.view(rows, shape.heads * size)

    def _reserve(self, capacity: int) -> None:
        shape = self._shape
        size = (shape.layers, shape.kv_heads, capacity, shape.head_dim)
        keys, values = torch.zeros(size), torch.zeros(size)
        if self._capacity:
            keys[:, :, : self._capacity] = self._keys
            values[:, :, : self._capacity] = self._values
        self._keys, self._values, self._capacity = keys, values, capacity

    @property
    def bytes(self) -> int:
        """What the cache takes now."""
        return self._keys.nbytes + self._values.nbytes

"""Attention at fixed shapes, so that a row's result does not depend on the rows beside it.

Query rows go in blocks of one size and keys are padded to a multiple of a tile, masked; a pass
that crosses a tile's edge is split there. Whoever computes a row, alone or in a round, then runs
the very same products over it, and the results are equal bit for bit.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from core.models.lean.shape import LeanShape

BLOCK_ROWS = 2
"""Query rows of a block. More waste work on single rows, fewer read the keys more often."""
TILE = 64
_FIRST_CAPACITY = 1024
_KEPT_VIEWS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Rows of a pass that see the same padded keys.

    ``gather`` picks the queries of the blocks [blocks * kv heads * block * group] from all heads
    of all rows; ``scatter`` [rows * heads] finds the rows in the result. ``shape`` is that of the
    queries [blocks, kv heads, block * group, size], ``mask`` [blocks, 1, block * group, keys],
    and ``views`` are each layer's keys and values.
    """

    gather: torch.Tensor
    scatter: torch.Tensor
    mask: torch.Tensor
    shape: tuple[int, int, int, int]
    views: list[tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a pass attends; made once and shared by its layers."""

    start: int
    rows: int
    spans: list[_Span]


class KeyValueCache:
    """Static keys and values of one sequence, [layers, 2 * kv heads, capacity, size] float32.

    Grows by doubling. Rows beyond the length are stale or zero and always masked.
    """

    def __init__(self, shape: LeanShape, context_limit: int) -> None:
        self._shape = shape
        self._limit = -(-context_limit // TILE) * TILE
        self._rows = torch.empty(0)
        self._layers: list[torch.Tensor] = []
        self._views: dict[tuple[int, int], list[tuple[torch.Tensor, torch.Tensor]]] = {}
        self._capacity = 0
        self.length = 0
        self._reserve(min(_FIRST_CAPACITY, self._limit))

    def plan(self, rows: int) -> Plan:
        """Make room for that many rows after the length, and cut them into spans of blocks."""
        start, end = self.length, self.length + rows
        padded = -(-end // TILE) * TILE
        if padded > self._capacity:
            self._reserve(min(max(padded, 2 * self._capacity), max(self._limit, padded)))
        spans: list[_Span] = []
        first = start
        while first < end:
            keys = (first // TILE + 1) * TILE
            last = min(keys, end)
            spans.append(self._span(start, first, last, keys))
            first = last
        return Plan(start, rows, spans)

    def attend(self, layer: int, turned: torch.Tensor, plan: Plan) -> torch.Tensor:
        """Store the new keys and values and return the attention's output [rows, heads * size].

        ``turned`` [rows, heads + 2 * kv heads, size]: queries, keys and values side by side.
        """
        heads, size = self._shape.heads, self._shape.head_dim
        room = self._layers[layer].narrow(1, plan.start, plan.rows)
        room.copy_(turned.narrow(1, heads, 2 * self._shape.kv_heads).transpose(0, 1))
        queries = turned.view(-1, size)
        mixed = [
            F.scaled_dot_product_attention(
                queries.index_select(0, span.gather).view(span.shape),
                *span.views[layer],
                attn_mask=span.mask,
            )
            .view(-1, size)
            .index_select(0, span.scatter)
            for span in plan.spans
        ]
        result = mixed[0] if len(mixed) == 1 else torch.cat(mixed)
        return result.view(plan.rows, heads * size)

    def _span(self, start: int, first: int, last: int, keys: int) -> _Span:
        shape = self._shape
        kv_heads, group, rows = shape.kv_heads, shape.group, last - first
        blocks = -(-rows // BLOCK_ROWS)
        # A block that is not full repeats the last row.
        positions = torch.arange(first, first + blocks * BLOCK_ROWS).clamp_(max=last - 1)
        positions = positions.view(blocks, 1, BLOCK_ROWS, 1)
        head = torch.arange(shape.heads).view(1, kv_heads, 1, group)
        gather = (positions - start) * (shape.heads + 2 * kv_heads) + head
        places = torch.arange(gather.numel()).view(blocks, kv_heads, BLOCK_ROWS, group)
        scatter = places.transpose(1, 2).reshape(-1)[: rows * shape.heads]
        hidden = torch.arange(keys) > positions  # [blocks, 1, block, keys]
        mask = torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))
        return _Span(
            gather=gather.flatten(),
            scatter=scatter,
            mask=mask.repeat_interleave(group, dim=2),
            shape=(blocks, kv_heads, BLOCK_ROWS * group, shape.head_dim),
            views=self._views_of(blocks, keys),
        )

    def _views_of(self, blocks: int, keys: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return each layer's keys and values [blocks, kv heads, keys, size], made once."""
        if (blocks, keys) not in self._views:
            if len(self._views) >= _KEPT_VIEWS:
                self._views.clear()
            size = (blocks, -1, -1, -1)
            halves = [layer[:, :keys].chunk(2) for layer in self._layers]
            self._views[blocks, keys] = [(k.expand(size), v.expand(size)) for k, v in halves]
        return self._views[blocks, keys]

    def _reserve(self, capacity: int) -> None:
        shape = self._shape
        rows = torch.zeros(shape.layers, 2 * shape.kv_heads, capacity, shape.head_dim)
        if self._capacity:
            rows[:, :, : self._capacity] = self._rows
        self._rows, self._layers, self._capacity = rows, list(rows), capacity
        self._views.clear()

    @property
    def bytes(self) -> int:
        """What the cache takes now."""
        return self._rows.nbytes

"""Many sequences decoded together on the int8 weights: what one stream cannot reach.

A pass over 32 rows costs little more than a pass over 8, so that lanes that share the linear
layers make many times the tokens per second. Text is not bit for bit that of a single stream:
keys and values are kept in half the bytes where the processor multiplies bfloat16 itself.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from core.models.lean.linear import Int8Linear
from core.models.lean.network import LeanLayer, LeanWeights

KEY_TILE = 64
"""Keys are read up to the longest sequence of a group, rounded up to a multiple of this."""
GROUP_ROWS = 16
"""Rows that share one attention call. Kept alike in length by :meth:`LeanBatch.place`."""

Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class LeanBatch:
    """Rows of a static cache, in groups that are alike in length.

    A group keeps keys and values [layers, group rows, kv heads, span, head size], with a span that
    follows its longest row: a product over part of a tensor would copy it first. Active rows are
    the first ``len(lengths)`` ones. Used by one thread.
    """

    def __init__(
        self,
        weights: LeanWeights,
        *,
        rows: int,
        positions: int,
        layers: Sequence[int],
        two_terms: bool | None = None,
    ) -> None:
        """``layers`` are those whose states are kept; ``two_terms`` as in :class:`Int8Linear`."""
        self.capacity = rows
        self.positions = min(-(-positions // KEY_TILE) * KEY_TILE, len(weights.rotations))
        self.lengths: list[int] = []
        self._weights = weights
        self._keep = tuple(layers)
        self._two_terms = two_terms
        self._dtype = torch.bfloat16 if multiplies_bfloat16() else torch.float32
        self._groups = [
            self._empty(min(GROUP_ROWS, rows - first), KEY_TILE)
            for first in range(0, rows, GROUP_ROWS)
        ]  # [2 (keys, values), layers, group rows, kv heads, span, head size] each

    @torch.inference_mode()
    def place(self, length: int) -> list[tuple[int, int]]:
        """Make room for one more sequence of that length; return the moves (from, to) of rows.

        The new row is the last of the moves' origins, or a fresh one at the end where nothing
        moves. Not called when all rows are taken. Longer sequences stand in earlier groups.
        """
        moves: list[tuple[int, int]] = []
        hole = len(self.lengths)
        self.lengths.append(length)
        # Up through the groups: each gives its shortest to the next, until the place is found.
        while hole >= GROUP_ROWS:
            first = (hole // GROUP_ROWS - 1) * GROUP_ROWS
            shortest = min(range(first, first + GROUP_ROWS), key=self.lengths.__getitem__)
            if self.lengths[shortest] >= length:
                break
            self._move(shortest, hole)
            moves.append((shortest, hole))
            hole = shortest
        self.lengths[hole] = length
        return moves

    @torch.inference_mode()
    def remove(self, row: int) -> list[tuple[int, int]]:
        """Free a row; return the moves (from, to) that close the hole, in order."""
        moves: list[tuple[int, int]] = []
        last = len(self.lengths) - 1
        while row // GROUP_ROWS < last // GROUP_ROWS:
            first = (row // GROUP_ROWS + 1) * GROUP_ROWS
            group = range(first, min(first + GROUP_ROWS, last + 1))
            longest = max(group, key=self.lengths.__getitem__)
            self._move(longest, row)
            moves.append((longest, row))
            row = longest
        if row != last:
            self._move(last, row)
            moves.append((last, row))
        self.lengths.pop()
        return moves

    @torch.inference_mode()
    def read(self, row: int, prompt: Sequence[int]) -> torch.Tensor:
        """Read a whole prompt into an empty row; return its states [len(prompt), kept width]."""
        group = self._weights.shape.group
        self.lengths[row] = len(prompt)
        kept = self._row(row, len(prompt))

        def attend(
            layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
        ) -> torch.Tensor:
            keys, values = keys.transpose(0, 1), values.transpose(0, 1)  # [heads, tokens, size]
            kept[0, layer, :, : len(prompt)] = keys
            kept[1, layer, :, : len(prompt)] = values
            mixed = F.scaled_dot_product_attention(
                queries.transpose(0, 1)[None],
                keys.repeat_interleave(group, 0)[None],
                values.repeat_interleave(group, 0)[None],
                is_causal=True,
            )
            return mixed[0].transpose(0, 1).flatten(1)

        return self._pass(torch.tensor(prompt), torch.arange(len(prompt)), attend)

    @torch.inference_mode()
    def copy(self, origin: int, goal: int) -> None:
        """Give a row the content of another one."""
        if origin != goal:
            self._move(origin, goal)

    @torch.inference_mode()
    def step(self, ids: torch.Tensor) -> torch.Tensor:
        """Feed one token [active rows] to every active row; return their states [rows, width]."""
        active = len(self.lengths)
        shape = self._weights.shape
        kv_heads, group, size = shape.kv_heads, shape.group, shape.head_dim
        groups = [self._plan(first) for first in range(0, active, GROUP_ROWS)]
        lengths = torch.tensor(self.lengths)

        def attend(
            layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
        ) -> torch.Tensor:
            asked = (queries * size**-0.5).to(self._dtype).view(active, kv_heads, group, size)
            keys, values = keys.to(self._dtype), values.to(self._dtype)
            mixed = torch.empty(active, kv_heads, group, size, dtype=self._dtype)
            for first, places, mask, kept in groups:
                rows, span = len(places), mask.shape[-1]
                last, rank = first + rows, torch.arange(rows)
                kept[0, layer][rank, :, places] = keys[first:last]
                kept[1, layer][rank, :, places] = values[first:last]
                scores = torch.bmm(
                    asked[first:last].flatten(0, 1),
                    kept[0, layer, :rows].flatten(0, 1).transpose(1, 2),
                )  # [rows * kv heads, group, span]
                scores = scores.float().view(rows, kv_heads, group, span)
                weights = torch.softmax(scores + mask, dim=-1).to(self._dtype)
                torch.bmm(
                    weights.view(rows * kv_heads, group, span),
                    kept[1, layer, :rows].flatten(0, 1),
                    out=mixed[first:last].flatten(0, 1),
                )
            return mixed.float().view(active, shape.heads * size)

        states = self._pass(ids, lengths, attend)
        self.lengths = [length + 1 for length in self.lengths]
        return states

    @torch.inference_mode()
    def logits(self, normalised: torch.Tensor) -> torch.Tensor:
        """Return logits [rows, vocab] float32 of normalised last states [rows, hidden]."""
        return self._linear(self._weights.head, normalised)

    def _plan(self, first: int) -> tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return of a group its first row, lengths, mask [rows, 1, 1, span], keys and values."""
        lengths = self.lengths[first : first + GROUP_ROWS]
        needed = -(-(max(lengths) + 1) // KEY_TILE) * KEY_TILE
        kept = self._group(first, needed)
        if kept.shape[4] > needed + KEY_TILE:
            kept = self._groups[first // GROUP_ROWS] = kept[:, :, :, :, :needed].clone()
        places = torch.tensor(lengths)
        unseen = torch.arange(kept.shape[4]) > places[:, None]
        mask = torch.zeros(unseen.shape).masked_fill_(unseen, float("-inf"))
        return first, places, mask[:, None, None], kept

    def _group(self, row: int, length: int) -> torch.Tensor:
        """Return keys and values of a row's group, with room for that many tokens."""
        kept = self._groups[row // GROUP_ROWS]
        span = kept.shape[4]
        if span < length:
            grown = self._empty(kept.shape[2], -(-length // KEY_TILE) * KEY_TILE)
            grown[:, :, :, :, :span] = kept
            kept = self._groups[row // GROUP_ROWS] = grown
        return kept

    def _row(self, row: int, length: int) -> torch.Tensor:
        """Return keys and values [2, layers, kv heads, span, size] of a row."""
        return self._group(row, length)[:, :, row % GROUP_ROWS]

    def _empty(self, rows: int, span: int) -> torch.Tensor:
        shape = self._weights.shape
        size = (2, shape.layers, rows, shape.kv_heads, span, shape.head_dim)
        return torch.zeros(size, dtype=self._dtype)

    def _move(self, origin: int, goal: int) -> None:
        length = self.lengths[origin]
        kept = self._row(origin, length)[:, :, :, :length]
        self._row(goal, length)[:, :, :, :length] = kept
        self.lengths[goal] = length

    def _linear(self, linear: Int8Linear, rows: torch.Tensor) -> torch.Tensor:
        return linear(rows, two_terms=self._two_terms)

    def _pass(self, ids: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        """Return the kept states of all rows; the last of them is what the head reads."""
        weights = self._weights
        rotations = weights.rotations[positions][:, None]  # [rows, 1, half]
        state = F.embedding(ids, weights.embedding).float()
        kept = {0: state}
        for index, layer in enumerate(weights.layers):
            queries, keys, values = self._project(layer, state, rotations)
            state = state + self._linear(layer.output, attend(index, queries, keys, values))
            fused = self._linear(layer.gate_up, self._norm(state, layer.post_norm))
            gate, up = fused.chunk(2, dim=1)
            state = state + self._linear(layer.down, F.silu(gate).mul_(up))
            if index + 1 in self._keep:
                kept[index + 1] = state
        kept[len(weights.layers)] = self._norm(state, weights.norm)
        return torch.cat([kept[layer] for layer in self._keep], dim=1)

    def _project(
        self, layer: LeanLayer, state: torch.Tensor, rotations: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return rotated queries and keys, and values: [rows, heads, size] each."""
        shape = self._weights.shape
        heads, kv_heads, size = shape.heads, shape.kv_heads, shape.head_dim
        fused = self._linear(layer.query_key_value, self._norm(state, layer.input_norm))
        fused = fused.view(len(state), heads + 2 * kv_heads, size)
        turned = fused[:, : heads + kv_heads]
        if layer.query_norm is not None and layer.key_norm is not None:
            queries = self._norm(turned[:, :heads], layer.query_norm)
            turned = torch.cat([queries, self._norm(turned[:, heads:], layer.key_norm)], dim=1)
        pairs = torch.view_as_complex(turned.reshape(len(state), heads + kv_heads, size // 2, 2))
        turned = torch.view_as_real(pairs * rotations).flatten(2)
        return turned[:, :heads], turned[:, heads:], fused[:, heads + kv_heads :]

    def _norm(self, state: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(state, (state.shape[-1],), weight, self._weights.shape.norm_eps)


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for products of bfloat16."""
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(supported is not None and supported())

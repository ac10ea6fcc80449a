"""The forward pass: few and large operations, no module calls.

Queries and keys are stored with the halves of each head interleaved, so that rotating them is
one complex product; scores do not change when both are permuted alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from core.models.lean.attention import KeyValueCache
from core.models.lean.linear import Int8Linear
from core.models.lean.shape import LeanShape


@dataclass(frozen=True, slots=True, kw_only=True)
class LeanLayer:
    """The weights of one decoder layer; norms are float32 [size]."""

    input_norm: torch.Tensor
    query_key_value: Int8Linear
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    output: Int8Linear
    post_norm: torch.Tensor
    gate_up: Int8Linear
    down: Int8Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class LeanWeights:
    """All weights of a model.

    ``embedding`` and ``unembedding`` [vocab, hidden] are in the checkpoint's format and stay mapped
    from its file, and so take no memory until rows of them are looked up; ``head`` is the second
    one in int8. ``rotations`` [positions, head size / 2] are complex.
    """

    shape: LeanShape
    embedding: torch.Tensor
    unembedding: torch.Tensor
    layers: tuple[LeanLayer, ...]
    norm: torch.Tensor
    head: Int8Linear
    rotations: torch.Tensor


class LeanNetwork:
    """Runs tokens through the weights against one cache. Not for use by several threads."""

    def __init__(self, weights: LeanWeights, cache: KeyValueCache) -> None:
        self._weights = weights
        self._cache = cache

    def hidden(
        self, ids: Sequence[int], keep: Sequence[int] = (), layers: int | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Append ``ids`` to the cache and return their normalised hidden states [rows, hidden].

        Beside them, side by side, the states after ``keep`` layers [rows, len(keep) * hidden].
        With ``layers`` only so many are run, and only their part of the cache is written.
        """
        weights, cache = self._weights, self._cache
        rows = len(ids)
        plan = cache.plan(rows)
        turns = turns_of(weights.rotations, weights.shape, cache.length, rows)
        state = F.embedding(torch.tensor(ids), weights.embedding).float()  # [rows, hidden]
        kept = {0: state} if 0 in keep else {}
        for index, layer in enumerate(weights.layers[:layers]):
            fused = layer.query_key_value(self._norm(state, layer.input_norm))
            norms = layer.query_norm, layer.key_norm
            turned = project_heads(weights.shape, fused, *norms, turns)
            mixed = cache.attend(index, turned, plan)
            state = state + layer.output(mixed)
            gate, up = layer.gate_up(self._norm(state, layer.post_norm)).chunk(2, dim=1)
            state = state + layer.down(F.silu(gate).mul_(up))
            if index + 1 in keep:
                kept[index + 1] = state
        cache.length += rows
        normalised = self._norm(state, weights.norm)
        if not keep:
            return normalised, None
        # As in transformers, the state after the last layer is the one that the head reads.
        kept[len(weights.layers)] = normalised
        return normalised, torch.cat([kept[layer] for layer in keep], dim=1)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return float32 logits [rows, vocab] of normalised hidden states."""
        return self._weights.head(hidden)

    def _norm(self, state: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(state, (state.shape[-1],), weight, self._weights.shape.norm_eps)


def turns_of(rotations: torch.Tensor, shape: LeanShape, start: int, rows: int) -> torch.Tensor:
    """Return what turns the heads at some positions [rows, heads + 2 * kv heads, half].

    Values are turned by nothing, so that all heads are one product.
    """
    turns = rotations[start : start + rows, None]
    still = torch.ones_like(turns).expand(-1, shape.kv_heads, -1)
    return torch.cat([turns.expand(-1, shape.heads + shape.kv_heads, -1), still], dim=1)


def project_heads(
    shape: LeanShape,
    fused: torch.Tensor,
    query_norm: torch.Tensor | None,
    key_norm: torch.Tensor | None,
    turns: torch.Tensor,
) -> torch.Tensor:
    """Return rotated queries and keys, and values: [rows, heads + 2 * kv heads, size].

    ``fused`` [rows, the same in one] comes from the first linear layer, ``turns`` from
    :func:`turns_of`.
    """
    heads, keys_end, size = shape.heads, shape.heads + shape.kv_heads, shape.head_dim
    fused = fused.view(len(fused), keys_end + shape.kv_heads, size)
    if query_norm is not None and key_norm is not None:
        queries = F.rms_norm(fused[:, :heads], (size,), query_norm, shape.norm_eps)
        keys = F.rms_norm(fused[:, heads:keys_end], (size,), key_norm, shape.norm_eps)
        fused = torch.cat([queries, keys, fused[:, keys_end:]], dim=1)
    return (fused.view(torch.complex64) * turns).view(torch.float32)

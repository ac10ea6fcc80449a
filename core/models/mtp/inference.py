"""Heads at work: few operations a step, and an own key/value cache for the sequential kind.

They compute what :mod:`core.models.mtp.modules` computes, in int8 beside a host in int8. A draft
need not be exact, so here no care is taken that a row's bits do not depend on its neighbours.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from core.errors import UserError
from core.models.lean.linear import Int8Linear, quantize_rows
from core.models.lean.runner import LeanRunner
from core.models.mtp.modules import Head, ParallelHead, SequentialHead, rope_angles
from core.models.runner import Runner

_FIRST_CAPACITY = 512

Linear = Callable[[torch.Tensor], torch.Tensor]
"""[rows, in] float32 to [rows, out] float32."""


class HeadVocabulary:
    """The tokens that a head drafts: ``ids`` [v] and the way from an output to their logits."""

    def __init__(self, head: Head, host: Runner, vocab_size: int) -> None:
        known = [token for token in head.card.vocabulary if token < vocab_size]
        if not known:
            raise UserError(
                "The head drafts none of the tokens that this pair uses.", "Choose another head."
            )
        self.ids = torch.tensor(known, device=host.device)
        self.unembed = _linear(host.unembedding(known), host)


class SequentialRunner:
    """A sequential head with the keys and values of what it has read. Used by one thread.

    Entry i of its cache is made of the host's states of token i and of token i + 1; the entries
    after those that :meth:`absorb` made are of the chain that is being drafted.
    """

    def __init__(self, head: SequentialHead, host: Runner, vocab_size: int) -> None:
        self.card = card = head.card
        self.state_layers = card.state_layers
        self.vocabulary = HeadVocabulary(head, host, vocab_size)
        self.length = 0
        shape = card.shape
        self._eps = shape.norm_eps
        self._device = host.device
        weights = {name: value.detach().float() for name, value in head.state_dict().items()}
        norms = {name: weights[name].to(host.device) for name in weights if "norm" in name}
        self._state_norms = norms["state_norms"]
        self._output_norm, self._embedding_norm = norms["output_norm"], norms["embedding_norm"]
        self._attention_norm, self._mlp_norm = norms["attention_norm"], norms["mlp_norm"]
        self._final_norm = norms["final_norm"]
        # A host's states have outliers; its second term costs little, once a round.
        self._fuse = _linear(weights["fuse.weight"], host, two_terms=True)
        self._join = _linear(weights["join.weight"], host)
        self._query_key_value = _linear(_scaled_queries(weights, head), host)
        self._attention_output = _linear(weights["attention_output.weight"], host)
        self._gate_up = _linear(weights["gate_up.weight"], host)
        self._down = _linear(weights["down.weight"], host)
        self._rotations = torch.empty(0)
        self._keys = self._values = torch.empty(0)
        self._capacity = 0
        self._reserve(_FIRST_CAPACITY)

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` entries."""
        self.length = min(length, self.length)

    @torch.inference_mode()
    def absorb(self, states: torch.Tensor, embeddings: torch.Tensor) -> torch.Tensor:
        """Append entries of true tokens; return the output [1, hidden] of the last one.

        ``states`` [rows, state width] of tokens and ``embeddings`` [rows, hidden] of those that
        follow them.
        """
        layers = states.view(len(states), *self._state_norms.shape)
        normalised = F.rms_norm(layers, layers.shape[-1:], eps=self._eps).mul_(self._state_norms)
        return self._step(self._fuse(normalised.flatten(1)), embeddings)

    @torch.inference_mode()
    def advance(self, output: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        """Append an entry of the chain: an output and the token it led to, both [1, hidden]."""
        return self._step(output, embedding)

    @torch.inference_mode()
    def logits(self, output: torch.Tensor) -> torch.Tensor:
        """Return the logits [1, v] over the head's own tokens."""
        return self.vocabulary.unembed(self._norm(output, self._final_norm))

    def _step(self, source: torch.Tensor, embeddings: torch.Tensor) -> torch.Tensor:
        shape = self.card.shape
        rows = len(source)
        parts = (
            self._norm(source, self._output_norm),
            self._norm(embeddings, self._embedding_norm),
        )
        hidden = self._join(torch.cat(parts, dim=1))
        fused = self._query_key_value(self._norm(hidden, self._attention_norm))
        turning = shape.heads + shape.kv_heads
        fused = fused.view(rows, turning + shape.kv_heads, shape.head_dim)
        end = self.length + rows
        self._reserve(end)
        pairs = fused[:, :turning].reshape(rows, turning, shape.head_dim // 2, 2)
        turned = torch.view_as_complex(pairs) * self._rotations[self.length : end, None]
        turned = torch.view_as_real(turned).flatten(2)
        self._keys[:, self.length : end] = turned[:, shape.heads :].transpose(0, 1)
        self._values[:, self.length : end] = fused[:, turning:].transpose(0, 1)
        self.length = end
        # Of all rows but the last only the keys and values are wanted, and in a single layer
        # these depend on no other row.
        mixed = self._attend(turned[-1, : shape.heads])
        hidden = hidden[-1:] + self._attention_output(mixed)
        gate, up = self._gate_up(self._norm(hidden, self._mlp_norm)).chunk(2, dim=1)
        return hidden + self._down(F.silu(gate).mul_(up))

    def _attend(self, queries: torch.Tensor) -> torch.Tensor:
        """Return the attention's output [1, heads * size] of one row's queries [heads, size]."""
        shape = self.card.shape
        grouped = queries.reshape(shape.kv_heads, -1, shape.head_dim)
        scores = torch.bmm(grouped, self._keys[:, : self.length].transpose(1, 2))
        mixed = torch.bmm(torch.softmax(scores, dim=-1), self._values[:, : self.length])
        return mixed.view(1, shape.heads * shape.head_dim)

    def _norm(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(rows, weight.shape, weight, self._eps)

    def _reserve(self, length: int) -> None:
        if length <= self._capacity:
            return
        capacity = max(length, 2 * self._capacity)
        size = (self.card.shape.kv_heads, capacity, self.card.shape.head_dim)
        keys, values = (torch.zeros(size, device=self._device) for _ in range(2))
        if self._capacity:
            keys[:, : self._capacity], values[:, : self._capacity] = self._keys, self._values
        self._keys, self._values, self._capacity = keys, values, capacity
        angles = rope_angles(self.card, capacity).to(self._device)
        self._rotations = torch.polar(torch.ones_like(angles), angles)


class ParallelRunner:
    """A parallel head: all its positions at once, from one state. Keeps nothing."""

    def __init__(self, head: ParallelHead, host: Runner, vocab_size: int) -> None:
        self.card = head.card
        self.state_layers = head.card.state_layers
        self.vocabulary = HeadVocabulary(head, host, vocab_size)
        weights = {name: value.detach().float() for name, value in head.state_dict().items()}
        count = self.card.depth * self.card.shape.blocks
        self._inner = [_linear(weights[f"inner.{i}.weight"], host) for i in range(count)]
        self._outer = [_linear(weights[f"outer.{i}.weight"], host) for i in range(count)]

    @torch.inference_mode()
    def logits(self, state: torch.Tensor, count: int) -> torch.Tensor:
        """Return the logits [count, v] for the first positions after a state [1, hidden]."""
        blocks = self.card.shape.blocks
        outputs: list[torch.Tensor] = []
        for position in range(count):
            hidden = state
            for index in range(position * blocks, (position + 1) * blocks):
                hidden = hidden + self._outer[index](F.silu(self._inner[index](hidden)))
            outputs.append(hidden)
        return self.vocabulary.unembed(torch.cat(outputs))


def make_head_runner(
    head: Head, host: Runner, vocab_size: int
) -> SequentialRunner | ParallelRunner:
    """Put a head to work beside its host; ``vocab_size`` is how wide the pair's logits are.

    Raises UserError where the head knows none of these tokens.
    """
    if isinstance(head, SequentialHead):
        return SequentialRunner(head, host, vocab_size)
    return ParallelRunner(head, host, vocab_size)


def _scaled_queries(weights: dict[str, torch.Tensor], head: SequentialHead) -> torch.Tensor:
    """Return the weights of queries, keys and values with attention's scale in the queries."""
    shape = head.card.shape
    rows = shape.heads * shape.head_dim
    fused = weights["query_key_value.weight"]
    return torch.cat([fused[:rows] * shape.head_dim**-0.5, fused[rows:]])


def _linear(weight: torch.Tensor, host: Runner, *, two_terms: bool = False) -> Linear:
    if isinstance(host, LeanRunner):
        return Int8Linear(*quantize_rows(weight.detach()), two_terms=two_terms)
    # bfloat16 halves what a GPU has to read; on a CPU it may be slower than float32.
    dtype = torch.float32 if host.device.type == "cpu" else torch.bfloat16
    placed = weight.to(host.device, dtype)
    return lambda rows: F.linear(rows.to(dtype), placed).float()

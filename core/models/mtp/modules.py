"""The trainable heads. What they compute is what :mod:`core.models.mtp.inference` computes.

Sequential: DeepSeek-V3 (arXiv 2412.19437, 2.2), applied to itself as in FastMTP and EAGLE, with
features of several layers and the training-time test of EAGLE-3 (arXiv 2503.01840, 3.2). Parallel:
Medusa-1 (arXiv 2401.10774) and Gloeckle et al. 2024 (arXiv 2404.19737).
"""

import torch
import torch.nn.functional as F
from torch import nn

from core.models.mtp.card import HeadCard, HeadKind


class SequentialHead(nn.Module):
    """One decoder layer that drafts again and again from its own output.

    At position t it reads the host's states at t and the embedding of token t + 1, and its output
    stands for token t + 2. The next step reads that output in place of the states, and token t + 2.
    """

    def __init__(self, card: HeadCard) -> None:
        super().__init__()
        hidden, shape = card.host.hidden, card.shape
        self.card = card
        self.state_norms = nn.Parameter(torch.ones(len(card.state_layers), hidden))
        self.fuse = _linear(card.state_width, hidden)
        self.output_norm = nn.Parameter(torch.ones(hidden))
        self.embedding_norm = nn.Parameter(torch.ones(hidden))
        self.join = _linear(2 * hidden, hidden)
        self.attention_norm = nn.Parameter(torch.ones(hidden))
        width = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
        self.query_key_value = _linear(hidden, width)
        self.attention_output = _linear(shape.heads * shape.head_dim, hidden)
        self.mlp_norm = nn.Parameter(torch.ones(hidden))
        self.gate_up = _linear(hidden, 2 * shape.intermediate)
        self.down = _linear(shape.intermediate, hidden)
        self.final_norm = nn.Parameter(torch.ones(hidden))

    def forward_steps(
        self,
        states: torch.Tensor,
        embeddings: torch.Tensor,
        mask: torch.Tensor | None = None,
        depth: int | None = None,
        places: torch.Tensor | None = None,
    ) -> list[torch.Tensor]:
        """Return the outputs [batch, length, hidden] of steps 1 to ``depth`` (None: the card's).

        ``states`` [batch, length, state width] and ``embeddings`` [batch, length, hidden] are those
        of the tokens x_0 ... x_(length - 1); ``mask`` [batch, length] is true at real tokens. Step
        j at position t begins at the states of t, has read x_(t + 1) ... x_(t + j) and stands for
        x_(t + j + 1): it means something where t + j + 1 < length. It sees what drafting sees: the
        first steps of the positions up to t, and its own chain's steps 2 ... j.

        With ``places`` [batch, n] only the chains that begin at these positions are computed, and
        the outputs are [batch, n, hidden]; the other positions are read all the same.
        """
        length = states.shape[1]
        blocked = _blocked(length, mask, states.device)
        rotations = self._rotations(length + (depth or self.card.depth), states.device)
        if places is None:
            places = torch.arange(length, device=states.device).expand(len(states), -1)
        rows = torch.arange(len(states), device=states.device)[:, None]
        blocked = blocked.expand(len(states), -1, -1)[rows, places][:, None, None]
        chain: list[tuple[torch.Tensor, torch.Tensor]] = []
        outputs: list[torch.Tensor] = []
        joined = self.joined(self.fused(states), _shifted(embeddings, 1))
        for step in range(1, (depth or self.card.depth) + 1):
            if step > 1:
                joined = self.joined(outputs[-1], _shifted(embeddings, step)[rows, places])
            turns = rotations[:length] if step == 1 else rotations[places + step - 1][:, None]
            queries, keys, values = self._project(joined, turns)
            chain.append((keys, values))
            if step == 1:
                queries = queries.transpose(1, 3)[rows, places].transpose(1, 3)
                joined = joined[rows, places]
            outputs.append(self._after_attention(joined, _attend(queries, chain, blocked)))
        return outputs

    def fused(self, states: torch.Tensor) -> torch.Tensor:
        """Return what stands for the host's states [..., state width]: [..., hidden]."""
        layers = states.reshape(*states.shape[:-1], *self.state_norms.shape)
        normalised = _normalised(layers, self.card.shape.norm_eps) * self.state_norms
        result: torch.Tensor = self.fuse(normalised.flatten(-2))
        return result

    def joined(self, source: torch.Tensor, embeddings: torch.Tensor) -> torch.Tensor:
        """Return the layer's input [..., hidden] of a source and the next token's embedding."""
        parts = [self._norm(source, self.output_norm), self._norm(embeddings, self.embedding_norm)]
        result: torch.Tensor = self.join(torch.cat(parts, dim=-1))
        return result

    def logits(self, hidden: torch.Tensor, unembedding: torch.Tensor) -> torch.Tensor:
        """Return the logits [..., v] of outputs through the host's rows [v, hidden] of v tokens."""
        return F.linear(self.normalised(hidden), unembedding)

    def normalised(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return what the host's head reads of outputs [..., hidden]."""
        return self._norm(hidden, self.final_norm)

    def _project(
        self, joined: torch.Tensor, rotations: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return queries [batch, kv heads, group, length, size], keys and values without group."""
        shape = self.card.shape
        fused = self.query_key_value(self._norm(joined, self.attention_norm))
        fused = fused.view(*fused.shape[:-1], -1, shape.head_dim).transpose(1, 2)
        queries, keys, values = fused.split([shape.heads, shape.kv_heads, shape.kv_heads], dim=1)
        grouped = (len(queries), shape.kv_heads, -1, *queries.shape[2:])
        return _turned(queries, rotations).view(grouped), _turned(keys, rotations), values

    def _after_attention(self, joined: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        hidden = joined + self.attention_output(mixed)
        gate, up = self.gate_up(self._norm(hidden, self.mlp_norm)).chunk(2, dim=-1)
        result: torch.Tensor = hidden + self.down(F.silu(gate) * up)
        return result

    def _norm(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return _normalised(rows, self.card.shape.norm_eps) * weight

    def _rotations(self, positions: int, device: torch.device) -> torch.Tensor:
        return rope_angles(self.card, positions).to(device)


class ParallelHead(nn.Module):
    """For each position ahead one stack of residual blocks on the host's normalised last state.

    Starts as the host's own head: the blocks add nothing before they are trained.
    """

    def __init__(self, card: HeadCard) -> None:
        super().__init__()
        hidden, shape = card.host.hidden, card.shape
        self.card = card
        self.inner = nn.ModuleList()
        self.outer = nn.ModuleList()
        for _ in range(card.depth * shape.blocks):
            self.inner.append(_linear(hidden, shape.intermediate))
            outer = _linear(shape.intermediate, hidden)
            nn.init.zeros_(outer.weight)
            self.outer.append(outer)

    def forward_steps(
        self,
        states: torch.Tensor,
        embeddings: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
        depth: int | None = None,
        places: torch.Tensor | None = None,
    ) -> list[torch.Tensor]:
        """Return the outputs [..., hidden] for 1 to ``depth`` positions ahead (None: the card's).

        ``states`` [..., hidden]. Output j at position t stands for x_(t + j + 1). With ``places``
        [batch, n] only these positions of ``states`` [batch, length, hidden] are computed. The
        other arguments are there so that both kinds are trained alike. Raises ValueError past the
        depth.
        """
        if places is not None:
            states = states[torch.arange(len(states), device=states.device)[:, None], places]
        wanted = self.card.depth if depth is None else depth
        if wanted > self.card.depth:
            raise ValueError(f"the head has {self.card.depth} positions and {wanted} were wanted")
        blocks = self.card.shape.blocks
        outputs: list[torch.Tensor] = []
        for position in range(wanted):
            hidden = states
            for index in range(position * blocks, (position + 1) * blocks):
                hidden = hidden + self.outer[index](F.silu(self.inner[index](hidden)))
            outputs.append(hidden)
        return outputs

    def logits(self, hidden: torch.Tensor, unembedding: torch.Tensor) -> torch.Tensor:
        """Return the logits [..., v] of outputs through the host's rows [v, hidden] of v tokens."""
        return F.linear(self.normalised(hidden), unembedding)

    def normalised(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return what the host's head reads of outputs [..., hidden]: just these."""
        return hidden


Head = SequentialHead | ParallelHead


def make_head(card: HeadCard) -> Head:
    """Return an untrained head in float32, the same for the same card: the card's seed counts."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(card.seed)
        return SequentialHead(card) if card.kind == HeadKind.SEQUENTIAL else ParallelHead(card)


def rope_angles(card: HeadCard, positions: int) -> torch.Tensor:
    """Return by which angle each pair of a head's numbers turns: [positions, head size / 2]."""
    exponents = torch.arange(0, card.shape.head_dim, 2, dtype=torch.float64) / card.shape.head_dim
    frequencies = card.shape.rope_theta**-exponents
    return torch.outer(torch.arange(positions, dtype=torch.float64), frequencies).float()


def _linear(inputs: int, outputs: int) -> nn.Linear:
    linear = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(linear.weight, std=inputs**-0.5)
    return linear


def _normalised(rows: torch.Tensor, eps: float) -> torch.Tensor:
    return F.rms_norm(rows, rows.shape[-1:], eps=eps)


def _turned(rows: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Turn each pair of neighbours in [..., positions, size] by its angle."""
    even, odd = rows[..., 0::2].float(), rows[..., 1::2].float()
    cosine, sine = angles.cos(), angles.sin()
    turned = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1)
    return turned.flatten(-2).to(rows.dtype)


def _shifted(embeddings: torch.Tensor, step: int) -> torch.Tensor:
    """Return for each position the embedding of the token ``step`` later.

    Past the end there is no token; what comes of the zeros means nothing.
    """
    return F.pad(embeddings[:, step:], (0, 0, 0, min(step, embeddings.shape[1])))


def _blocked(length: int, mask: torch.Tensor | None, device: torch.device) -> torch.Tensor:
    """Return which first steps a position may not see: [1 or batch, length, length]."""
    later = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)[None]
    if mask is None:
        return later
    # Every position sees itself, or a row of padding would be all nothing.
    alone = torch.eye(length, dtype=torch.bool, device=device)
    return later | (~mask.bool()[:, None, :] & ~alone)


def _attend(
    queries: torch.Tensor,
    chain: list[tuple[torch.Tensor, torch.Tensor]],
    blocked: torch.Tensor,
) -> torch.Tensor:
    """Return the attention's output [batch, length, heads * size] of a chain's newest step.

    ``queries`` [batch, kv heads, group, n, size]. ``chain`` holds the keys and values of its steps:
    those of the first [batch, kv heads, length, size] are seen across positions, the later ones
    [batch, kv heads, n, size] at the own position alone.
    """
    first_keys, first_values = chain[0]
    length, size = first_keys.shape[-2:]
    scores = queries @ first_keys[:, :, None].transpose(-1, -2)  # [batch, kv, group, n, length]
    scores = scores.float().masked_fill(blocked, float("-inf"))
    own = [(queries * keys[:, :, None]).sum(-1, keepdim=True).float() for keys, _ in chain[1:]]
    weights = torch.softmax(torch.cat([scores, *own], dim=-1) * size**-0.5, dim=-1)
    weights = weights.to(queries.dtype)
    mixed = weights[..., :length] @ first_values[:, :, None]
    for index, (_, values) in enumerate(chain[1:]):
        mixed = mixed + weights[..., length + index, None] * values[:, :, None]
    return mixed.flatten(1, 2).transpose(1, 2).flatten(2)

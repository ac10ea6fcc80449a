"""The loss of a head's steps against the target's distribution, without keeping logits.

Rows of the reply go through the frozen head in chunks; each chunk's teacher serves all steps, and
its gradient is made at once, so that memory does not grow with vocabulary times rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from core.models.mtp.modules import Head
from core.training.data import Batch, rounded

CHUNK_ROWS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Teacher:
    """What the steps of a batch are measured by.

    ``unembedding`` [v, hidden] are the host's rows of the reduced vocabulary, ``index`` [host
    vocabulary] the place of an id in it or -1. ``kl``: the host's distribution over the reduced
    vocabulary is the goal, else the token that stands in the text. ``weights`` are the steps'.
    """

    unembedding: torch.Tensor
    index: torch.Tensor
    weights: tuple[float, ...]
    kl: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Where the steps of a batch mean something.

    ``goals`` [rows] are flat places p whose state predicts token p + 1 of a reply, ``tokens``
    [rows] that token; ``steps`` [depth, rows] says whether step j at p - j counts, and ``chains``
    [depth, rows] where its output lies among those at :func:`chain_places`, laid flat. At the end
    are rows that count in no step, so that there are few different numbers of rows.
    """

    goals: torch.Tensor
    tokens: torch.Tensor
    steps: torch.Tensor
    chains: torch.Tensor


def chain_places(batch: Batch) -> torch.Tensor:
    """Return the places [rows, n] at which chains begin: those whose next token is a reply's.

    Shorter replies are filled up with places that mean nothing.
    """
    first = batch.starts - 1
    longest = max(1, int((batch.mask.sum(1) - 2 - first).max()))
    places = first[:, None] + torch.arange(rounded(longest), device=batch.ids.device)
    return places.clamp_(max=batch.ids.shape[1] - 1)


def rows_of(batch: Batch, depth: int, chains: int) -> Rows:
    """Return the rows of a batch that count.

    ``chains`` is how many :func:`chain_places` each sequence has. A chain begins where the newest
    token is one of the reply's: step j at t predicts t + j + 1.
    """
    length = batch.ids.shape[1]
    places = torch.arange(length, device=batch.ids.device)
    ends = batch.mask.sum(1)
    # p is predicted by step 1 at p - 1 at the least, whose newest token p is of the reply.
    counts = (places >= batch.starts[:, None]) & (places + 1 < ends[:, None])  # [rows, length]
    goals = counts.flatten().nonzero().squeeze(1)
    real = len(goals)
    goals = F.pad(goals, (0, rounded(real) - real))
    since = (places - batch.starts[:, None] + 1).flatten()[goals]  # 1 at the first
    since[real:] = 0
    following = torch.roll(batch.ids, -1, dims=1).flatten()[goals]
    begins = goals // length * chains + since
    steps = range(1, depth + 1)
    return Rows(
        goals=goals,
        tokens=following,
        steps=torch.stack([since >= step for step in steps]),
        chains=torch.stack([(begins - step).clamp_(min=0) for step in steps]),
    )


def steps_loss(
    head: Head, outputs: Sequence[torch.Tensor], batch: Batch, teacher: Teacher
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weighted loss of a head's steps and, detached, the loss of each [depth].

    ``outputs`` [rows, n, hidden] are those of ``forward_steps`` at the :func:`chain_places`.
    """
    rows = rows_of(batch, len(outputs), outputs[0].shape[1])
    picked = [
        head.normalised(output.flatten(0, 1)[chains])
        for output, chains in zip(outputs, rows.chains, strict=True)
    ]
    hidden = picked[0].shape[1]
    states = batch.states[..., -hidden:].flatten(0, 1)[rows.goals]
    sums = torch.zeros(len(outputs), device=states.device)
    loss: torch.Tensor = _Steps.apply(  # type: ignore[no-untyped-call]
        rows, states, teacher, sums, *picked
    )
    return loss, sums


class _Steps(torch.autograd.Function):
    """The weighted mean loss of all steps; gradients are made on the way."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Rows,
        states: torch.Tensor,
        teacher: Teacher,
        sums: torch.Tensor,
        *outputs: torch.Tensor,
    ) -> torch.Tensor:
        gradients = [torch.zeros_like(output) for output in outputs]
        counts = rows.steps.sum(1).clamp(min=1).tolist()
        weights = [weight / sum(teacher.weights) for weight in teacher.weights]
        unembedding = teacher.unembedding
        for first in range(0, len(rows.goals), CHUNK_ROWS):
            part = slice(first, first + CHUNK_ROWS)
            known, goals, information = _goals(rows.tokens[part], states[part], teacher)
            for step, (output, weight) in enumerate(zip(outputs, weights, strict=True)):
                shares = (rows.steps[step, part] & known).float() / counts[step]  # [part rows]
                logits = F.linear(output[part].to(unembedding.dtype), unembedding).float()
                spread = torch.logsumexp(logits, dim=1)
                hit = torch.einsum("nv,nv->n", goals, logits)
                sums[step] += ((spread - hit + information) * shares).sum()
                difference = logits.sub_(spread[:, None]).exp_().sub_(goals)
                towards = difference.to(unembedding.dtype) @ unembedding
                gradients[step][part] = towards.to(output.dtype) * (weight * shares)[:, None]
        ctx.save_for_backward(*gradients)
        return (sums * torch.tensor(weights, device=sums.device)).sum()

    @staticmethod
    def backward(ctx: Any, *outer: torch.Tensor) -> tuple[Any, ...]:
        return None, None, None, None, *(outer[0] * mine for mine in ctx.saved_tensors)


def _goals(
    tokens: torch.Tensor, states: torch.Tensor, teacher: Teacher
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return which rows have a goal, the goals [rows, v] and the sums of p log p in them."""
    if teacher.kl:
        rows = teacher.unembedding
        logits = F.linear(states.to(rows.dtype), rows).float()
        logs = logits.sub_(torch.logsumexp(logits, dim=1, keepdim=True))
        goals = logs.exp()
        known = torch.ones(len(goals), dtype=torch.bool, device=goals.device)
        return known, goals, torch.einsum("nv,nv->n", goals, logs)
    found = teacher.index[tokens]
    known = found >= 0
    goals = torch.zeros(len(tokens), len(teacher.unembedding), device=tokens.device)
    goals[known.nonzero().squeeze(1), found[known]] = 1.0
    return known, goals, torch.zeros(len(tokens), device=tokens.device)

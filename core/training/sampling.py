"""The next token of many sequences at once."""

import hashlib

import torch


def choose(
    logits: torch.Tensor, temperatures: torch.Tensor, uniforms: torch.Tensor
) -> torch.Tensor:
    """Return one token [rows] for each row of logits [rows, vocab] float32.

    ``temperatures`` [rows]: 0 takes the likeliest. ``uniforms`` [rows] in [0, 1) decide the rest by
    the inverse of the distribution function, so that a sequence draws the same numbers whatever
    rows stand beside it.
    """
    chosen = logits.argmax(dim=1)
    sampled = temperatures > 0
    if bool(sampled.any()):
        rows = sampled.nonzero().squeeze(1)
        scaled = logits[rows] / temperatures[rows, None]
        cumulative = torch.softmax(scaled, dim=1).cumsum(dim=1)
        # Rounding may leave the last sum short of 1.
        goal = uniforms[rows, None] * cumulative[:, -1:]
        drawn = torch.searchsorted(cumulative, goal, right=True).squeeze(1)
        chosen[rows] = drawn.clamp_(max=logits.shape[1] - 1)
    return chosen


def uniforms_of(seed: int, key: str, count: int) -> torch.Tensor:
    """Return the random numbers [count] in [0, 1) of one sequence."""
    digest = hashlib.sha256(f"{seed}:{key}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return torch.rand(count, generator=generator)

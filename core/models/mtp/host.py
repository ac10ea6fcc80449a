"""Which model a head belongs to."""

import hashlib

import torch

from core.models.mtp.card import HeadHost
from core.models.runner import Runner

_SAMPLED_IDS = 64


def describe_host(runner: Runner, *, name: str = "") -> HeadHost:
    """Return what a head's card says of its host; ``name`` is for people."""
    return HeadHost(
        name=name,
        fingerprint=host_fingerprint(runner),
        hidden=runner.hidden,
        layers=runner.layers,
        vocab=runner.width,
    )


def host_fingerprint(runner: Runner) -> str:
    """Return what tells a model from others, the same in whatever precision it is loaded.

    A hash of its dimensions and of what bfloat16 leaves of some input and output embeddings: of
    the weights these alone are never quantized.
    """
    ids = [runner.width * index // _SAMPLED_IDS for index in range(_SAMPLED_IDS)]
    digest = hashlib.sha256(f"{runner.layers},{runner.hidden},{runner.width}".encode())
    for rows in (runner.embed(ids), runner.unembedding(ids)):
        coarse = rows.cpu().to(torch.bfloat16).contiguous().view(torch.int16)
        digest.update(coarse.numpy().tobytes())
    return digest.hexdigest()[:32]

"""The matrices of a head at 4.5 bits a weight, in blocks of GGUF's Q4_0, and back."""

import torch

_WEIGHTS = 32
_BYTES = 18
"""A block: a scale in float16, and four bits for each weight."""


def pack(weight: torch.Tensor) -> torch.Tensor:
    """Return a matrix [rows, columns] in blocks, uint8 [rows, columns / 32 * 18].

    What is no matrix of whole blocks comes back in bfloat16.
    """
    if weight.dim() != 2 or weight.shape[1] % _WEIGHTS:
        return weight.detach().to("cpu", torch.bfloat16).contiguous()
    from gguf import GGMLQuantizationType, quants  # where heads are plain it may be missing

    plain = weight.detach().to("cpu", torch.float32).numpy()
    return torch.from_numpy(quants.quantize(plain, GGMLQuantizationType.Q4_0))


def unpack(weight: torch.Tensor) -> torch.Tensor:
    """Return what :func:`pack` was given, in float32. Raises ValueError for no whole blocks."""
    if weight.dtype != torch.uint8:
        return weight.float()
    if weight.dim() != 2 or not weight.shape[1] or weight.shape[1] % _BYTES:
        raise ValueError("no whole blocks")
    from gguf import GGMLQuantizationType, quants

    return torch.from_numpy(quants.dequantize(weight.numpy(), GGMLQuantizationType.Q4_0))

"""Linear layers of int8 weights for the CPU, through a kernel that torch brings along.

Weights are int8 with one scale an output channel, activations are quantized with one scale a
row. Sums are integers, so a row's result is the same bit for bit whatever rows stand beside it;
torch's own dynamic int8 linear shares one scale over all rows and has no such guarantee. The
quantized-tensor constructors warn of deprecation and are confined to this file.
"""

import warnings
from functools import cache

import torch

WEIGHT_LEVELS = 127
_TINY = 1e-30
_FULL_LEVELS = 127
_SAFE_LEVELS = 63
_PIECE_ROWS = 2048
_PRODUCT = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default


def quantize_rows(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return int8 weights [out, in] and their float32 scales [out]."""
    quantized = torch.empty(weight.shape, dtype=torch.int8)
    scales = torch.empty(len(weight))
    # In pieces, because a vocabulary's head in float32 would be the largest thing in memory.
    for first in range(0, len(weight), _PIECE_ROWS):
        piece = weight[first : first + _PIECE_ROWS].float()
        largest = torch.maximum(piece.amax(dim=1), -piece.amin(dim=1))
        scale = largest.clamp_(min=_TINY).div_(WEIGHT_LEVELS)
        scales[first : first + _PIECE_ROWS] = scale
        quantized[first : first + _PIECE_ROWS] = torch.round(piece / scale[:, None])
    return quantized, scales


class Int8Linear:
    """y = x W^T + b on float32 rows.

    ``two_terms`` quantizes each row twice, the second time what the first left over: about 14
    bits for twice the rows, which cost nearly nothing while there are few.
    """

    __slots__ = ("_bias", "_levels", "_packed", "_two_terms", "weight_bytes")

    def __init__(
        self,
        weight: torch.Tensor,
        scales: torch.Tensor,
        bias: torch.Tensor | None = None,
        *,
        two_terms: bool = False,
    ) -> None:
        self._packed = _pack(weight, scales)
        self._bias = bias
        self._two_terms = two_terms
        self._levels = activation_levels()
        self.weight_bytes = weight.nbytes + scales.nbytes

    def __call__(self, rows: torch.Tensor, *, two_terms: bool | None = None) -> torch.Tensor:
        """Return [rows, out] float32 for [rows, in] float32.

        ``two_terms`` None takes what the layer was made with.
        """
        # The norm of infinite order says the same in one call, and takes ten times as long.
        step = rows.abs().amax(dim=1, keepdim=True).clamp_(min=_TINY).div_(self._levels)
        if self._two_terms if two_terms is None else two_terms:
            count = len(rows)
            terms = torch.empty(2 * count, rows.shape[1])
            rounded, rest = terms[:count], terms[count:]
            torch.div(rows, step, out=rounded)
            torch.round(rounded, out=rest)  # which the kernel does to the first term likewise
            torch.sub(rounded, rest, out=rest).mul_(2 * self._levels)
            sums = _int8_product(terms, self._packed)
            result = torch.add(sums[:count], sums[count:], alpha=1 / (2 * self._levels))
        else:
            result = _int8_product(rows / step, self._packed)
        result.mul_(step)
        return result if self._bias is None else result.add_(self._bias)


@cache
def activation_levels() -> int:
    """Return how many levels an activation may have on either side of zero on this processor.

    Without VNNI instructions the kernel adds pairs of products in 16 bits, which saturate at 8
    bits and cannot at 7. An all-maximal product tells.
    """
    width = 64
    weight = torch.full((1, width), WEIGHT_LEVELS, dtype=torch.int8)
    packed = _pack(weight, torch.ones(1))
    product = _int8_product(torch.full((1, width), float(_FULL_LEVELS)), packed)
    exact = float(width * WEIGHT_LEVELS * _FULL_LEVELS)
    return _FULL_LEVELS if float(product) == exact else _SAFE_LEVELS


def _pack(weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    zero_points = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = torch._make_per_channel_quantized_tensor(
            weight, scales.double(), zero_points, 0
        )
        packed: torch.Tensor = torch.ops.quantized.linear_prepack(quantized, None)
    return packed


def _int8_product(rows: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
    """Round rows to whole numbers and multiply; the zero point makes them unsigned."""
    product: torch.Tensor = _PRODUCT(rows, 1.0, 128, packed)
    return product

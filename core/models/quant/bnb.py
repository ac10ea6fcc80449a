"""Quantized weights on CUDA through bitsandbytes, which is imported only here and only then."""

from typing import Any

from core.errors import BugError
from core.requests import Precision


def quantization_config(precision: Precision) -> Any:
    """Return the transformers configuration that loads weights in nf4 or int8.

    The caller has seen to it that bitsandbytes is installed (:mod:`core.models.precision`).
    """
    import torch
    import transformers

    make_config: Any = transformers.BitsAndBytesConfig
    if precision is Precision.INT8:
        return make_config(load_in_8bit=True)
    if precision is not Precision.NF4:
        raise BugError(f"{precision} is not a quantized precision.")
    return make_config(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        # The default computes in float32, at a fraction of the speed.
        bnb_4bit_compute_dtype=torch.bfloat16,
        bnb_4bit_use_double_quant=True,
    )

"""Quantized weights on CUDA through bitsandbytes, which is imported only here and only then."""

import logging
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
        _hush()
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


def quantize_linears(module: Any, precision: Precision) -> None:
    """Quantize every linear layer below a module in place, where its weights lie.

    As transformers does on loading, for models that come from no checkpoint. Raises ImportError
    where bitsandbytes is missing.
    """
    import bitsandbytes
    from torch import nn

    if precision not in (Precision.INT8, Precision.NF4):
        raise BugError(f"{precision} is not a quantized precision.")
    _hush()
    parents = [parent for parent in module.modules() if not isinstance(parent, nn.Linear)]
    for parent in parents:
        for name, linear in list(parent.named_children()):
            if type(linear) is nn.Linear:
                setattr(parent, name, _quantized(bitsandbytes.nn, linear, precision))


def _hush() -> None:
    # It warns of a cast that is meant, for every product of every layer of every pass.
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)


def _quantized(layers: Any, linear: Any, precision: Precision) -> Any:
    import torch

    device, has_bias = linear.weight.device, linear.bias is not None
    sizes = (linear.in_features, linear.out_features)
    # Made without memory of its own; the weights are put in right after.
    with torch.device("meta"):
        if precision is Precision.NF4:
            made = layers.Linear4bit(
                *sizes,
                bias=has_bias,
                compute_dtype=torch.bfloat16,
                compress_statistics=True,
                quant_type="nf4",
            )
        else:
            made = layers.Linear8bitLt(*sizes, bias=has_bias, has_fp16_weights=False)
    weight = linear.weight.data
    if precision is Precision.NF4:
        packed = layers.Params4bit(
            weight, requires_grad=False, compress_statistics=True, quant_type="nf4", module=made
        )
        made.weight = packed.to(device)
    else:
        # Quantized is what moves away from the CPU, so it has to be there first.
        whole = layers.Int8Params(weight.cpu(), requires_grad=False, has_fp16_weights=False)
        made.weight = whole.to(device)
    made.bias = linear.bias
    return made.requires_grad_(False).eval()

"""Quantizing in place, with a stand-in for bitsandbytes, which is installed beside a GPU only."""

import logging
import sys
import types

import pytest
import torch
from torch import nn

from core.errors import BugError
from core.models.quant.bnb import quantize_linears
from core.models.static.obstacle import capture_obstacle
from core.requests import Precision
from tests.helpers.tiny import tiny_llama


class Weight(torch.nn.Parameter):
    """Counts as quantized once it was moved, as in bitsandbytes."""

    def __new__(cls, data, requires_grad=True, **options):
        made = torch.Tensor._make_subclass(cls, data, requires_grad)
        made.options, made.moved_from = options, None
        return made

    def to(self, device):
        self.moved_from = self.device
        return self


class Layer(nn.Module):
    def __init__(self, inputs, outputs, bias=True, **options):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None
        self.options = options


class Linear4bit(Layer):
    pass


class Linear8bitLt(Layer):
    pass


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    library = types.ModuleType("bitsandbytes")
    library.nn = types.SimpleNamespace(
        Linear4bit=Linear4bit, Linear8bitLt=Linear8bitLt, Params4bit=Weight, Int8Params=Weight
    )
    monkeypatch.setitem(sys.modules, "bitsandbytes", library)


@pytest.mark.parametrize(
    ("precision", "kind"), [(Precision.NF4, Linear4bit), (Precision.INT8, Linear8bitLt)]
)
def test_every_linear_layer_below_is_replaced_and_keeps_its_weights(precision, kind):
    model = tiny_llama()
    model.model.layers[0].self_attn.q_proj.bias = nn.Parameter(torch.ones(32))
    before = {name: p.clone() for name, p in model.named_parameters()}
    quantize_linears(model.model.layers, precision)
    replaced = [module for module in model.modules() if isinstance(module, Layer)]
    assert len(replaced) == 2 * 7
    assert all(type(module) is kind for module in replaced)
    assert not any(isinstance(m, nn.Linear) for m in model.model.layers.modules())
    assert isinstance(model.lm_head, nn.Linear)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name])
        assert not parameter.is_meta
    assert all(module.weight.moved_from is not None for module in replaced)
    assert not any(module.weight.requires_grad for module in replaced)


def test_nf4_computes_in_bfloat16_and_int8_keeps_no_copy_in_16_bits():
    model = tiny_llama()
    quantize_linears(model.model.layers[0], Precision.NF4)
    quantize_linears(model.model.layers[1], Precision.INT8)
    four, eight = (layer.mlp.up_proj for layer in model.model.layers)
    assert four.options["compute_dtype"] is torch.bfloat16
    assert four.options["quant_type"] == four.weight.options["quant_type"] == "nf4"
    assert eight.options["has_fp16_weights"] is eight.weight.options["has_fp16_weights"] is False
    assert "LLM.int8" in capture_obstacle(model)


def test_its_warning_about_a_cast_in_every_product_is_silenced():
    quantize_linears(tiny_llama().model.layers, Precision.INT8)
    logger = logging.getLogger("bitsandbytes.autograd._functions")
    assert not logger.isEnabledFor(logging.WARNING)


def test_other_precisions_are_a_bug():
    with pytest.raises(BugError):
        quantize_linears(tiny_llama(), Precision.BFLOAT16)

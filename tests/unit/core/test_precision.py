"""Which precisions can be had where, and why not."""

import importlib.metadata

import pytest
import torch

from core.errors import BugError, UserError
from core.models import precision as module
from core.models.precision import (
    choose_device,
    choose_precision,
    dense_cpu_precision,
    draft_precision,
    precision_options,
    weights_bytes,
)
from core.models.quant.bnb import quantization_config
from core.requests import Device, Precision


def pretend_bitsandbytes(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    real = importlib.metadata.version

    def answer(name: str) -> str:
        if name != "bitsandbytes":
            return real(name)
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", answer)


def test_without_a_gpu_4_bit_is_greyed_out_with_a_reason():
    options = {option.precision: option for option in precision_options("cpu")}
    assert options[Precision.AUTO].available
    assert options[Precision.FLOAT32].available
    assert options[Precision.INT8].available
    assert not options[Precision.NF4].available
    assert "NVIDIA GPU" in options[Precision.NF4].reason


def test_4_bit_asked_for_on_a_cpu_is_refused_with_what_to_choose():
    with pytest.raises(UserError, match=r"nf4 needs an NVIDIA GPU.*int8"):
        choose_precision("nf4", Device.CPU, 10**9, None)


def test_automatic_on_a_cpu_is_int8():
    assert choose_precision("auto", Device.CPU, 10**9, None) is Precision.INT8


def test_cuda_without_a_gpu_is_refused_with_what_to_choose(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") is Device.CPU
    with pytest.raises(UserError, match="Choose the device cpu"):
        choose_device("cuda")


@pytest.mark.parametrize(("has", "expected"), [(True, "bfloat16"), (False, "float32")])
def test_without_quantization_a_cpu_gets_bfloat16_only_where_it_has_it(
    monkeypatch: pytest.MonkeyPatch, has: bool, expected: str
):
    monkeypatch.setattr(module, "cpu_has_bfloat16", lambda: has)
    assert dense_cpu_precision() == expected


def test_automatic_on_cuda_is_nf4_only_where_bfloat16_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
):
    pretend_bitsandbytes(monkeypatch, "0.50.2")
    elements = 8 * 10**9
    assert choose_precision("auto", Device.CUDA, elements, 24 * 10**9) is Precision.BFLOAT16
    assert choose_precision("auto", Device.CUDA, elements, 12 * 10**9) is Precision.NF4
    assert choose_precision("auto", Device.CUDA, elements, None) is Precision.BFLOAT16


@pytest.mark.parametrize("version", [None, "0.45.0"])
def test_a_missing_or_old_bitsandbytes_is_answered_with_the_command(
    monkeypatch: pytest.MonkeyPatch, version: str | None
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    pretend_bitsandbytes(monkeypatch, version)
    reasons = {option.precision: option.reason for option in precision_options("cuda")}
    assert "pip install 'bitsandbytes>=0.50'" in reasons[Precision.NF4]
    with pytest.raises(UserError, match="pip install"):
        choose_precision("nf4", Device.CUDA, 10**9, None)
    assert choose_precision("auto", Device.CUDA, 10**9, 1) is Precision.BFLOAT16


def test_with_bitsandbytes_every_precision_can_be_had_on_cuda(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    pretend_bitsandbytes(monkeypatch, "0.50.2")
    assert all(option.available for option in precision_options("auto"))


def test_drafts_are_quantized_on_a_cpu_alone():
    assert draft_precision(Precision.NF4, Device.CUDA) is Precision.BFLOAT16
    assert draft_precision(Precision.INT8, Device.CUDA) is Precision.BFLOAT16
    assert draft_precision(Precision.FLOAT32, Device.CUDA) is Precision.FLOAT32
    assert draft_precision(Precision.INT8, Device.CPU) is Precision.INT8
    assert draft_precision(Precision.BFLOAT16, Device.CPU) is Precision.BFLOAT16


def test_fewer_bits_take_less_memory():
    sizes = [weights_bytes(10**9, p) for p in Precision if p is not Precision.AUTO]
    assert sizes == sorted(sizes, reverse=True)


def test_nf4_computes_in_bfloat16(monkeypatch: pytest.MonkeyPatch):
    pretend_bitsandbytes(monkeypatch, "0.50.2")
    config = quantization_config(Precision.NF4)
    assert config.load_in_4bit
    assert config.bnb_4bit_quant_type == "nf4"
    assert config.bnb_4bit_compute_dtype is torch.bfloat16
    assert quantization_config(Precision.INT8).load_in_8bit
    with pytest.raises(BugError):
        quantization_config(Precision.BFLOAT16)

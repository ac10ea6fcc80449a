"""Smoothing: outliers go into the weights, and one int8 term then does for a row."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

from core.models.lean import model as module
from core.models.lean.linear import WEIGHT_LEVELS, activation_levels
from core.models.lean.model import read_lean_model
from core.models.lean.network import LeanLayer
from core.models.lean.runner import LeanRunner
from core.models.lean.shape import lean_shape
from core.models.lean.smoothing import Smoother
from core.models.runner import EagerRunner
from tests.unit.core.test_lean import SIZES, TEXT

pytestmark = pytest.mark.skipif(
    activation_levels() < WEIGHT_LEVELS, reason="one term has only 7 bits on this processor"
)

OUTLIERS = (3, 17, 40)


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def checkpoint(request, tmp_path_factory):
    """A model in whose norms three channels are fifty times as large as the others."""
    torch.manual_seed(0)
    if request.param == "llama":
        model = LlamaForCausalLM(LlamaConfig(**SIZES)).eval()
    else:
        model = Qwen3ForCausalLM(Qwen3Config(**SIZES, head_dim=32)).eval()
    with torch.no_grad():
        for layer in model.model.layers:
            for norm in (layer.input_layernorm, layer.post_attention_layernorm):
                norm.weight[list(OUTLIERS)] *= 50
            for linear in (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj):
                linear.weight[:, list(OUTLIERS)] /= 50
            for linear in (layer.mlp.gate_proj, layer.mlp.up_proj):
                linear.weight[:, list(OUTLIERS)] /= 50
    folder = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(folder)
    return folder, model


def read(checkpoint, text_ids):
    folder, model = checkpoint
    return read_lean_model(folder, model.config, None, lambda _: None, text_ids=text_ids)


def divergence(checkpoint, lean):
    reference = EagerRunner(checkpoint[1]).forward(TEXT, len(TEXT)).log_softmax(-1)
    got = LeanRunner(lean).forward(TEXT, len(TEXT)).log_softmax(-1)
    return float((reference.exp() * (reference - got)).sum(-1).mean())


def test_one_term_on_smoothed_weights_is_far_closer_than_on_others(checkpoint, monkeypatch):
    smoothed = divergence(checkpoint, read(checkpoint, TEXT[:96]))
    monkeypatch.setattr(Smoother, "fold", lambda self, norm, weight: (norm, weight))
    assert smoothed < divergence(checkpoint, read(checkpoint, TEXT[:96])) / 5
    assert smoothed < 0.01


@pytest.mark.parametrize("start", [0, 57, 63])
def test_a_round_on_smoothed_weights_gives_each_row_what_it_gets_alone(checkpoint, start):
    lean = read(checkpoint, TEXT[:96])
    together, alone = LeanRunner(lean), LeanRunner(lean)
    for runner in (together, alone):
        if start:
            runner.forward(TEXT[:start], 1)
    block = together.forward(TEXT[start : start + 9], 9)
    rows = [alone.forward([token], 1) for token in TEXT[start : start + 9]]
    assert torch.equal(block, torch.cat(rows))


def test_folding_changes_nothing_in_the_product():
    torch.manual_seed(0)
    shape = lean_shape(LlamaConfig(**SIZES))
    rows = torch.randn(5, shape.hidden) * torch.logspace(-2, 3, shape.hidden)
    smoother = Smoother(shape, rows, torch.ones(8, shape.head_dim // 2, dtype=torch.complex64))
    norm, weight = torch.rand(shape.hidden), torch.randn(12, shape.hidden, dtype=torch.bfloat16)
    new_norm, new_weight = smoother.fold(norm, weight)
    assert new_weight.dtype == torch.bfloat16
    torch.testing.assert_close(new_norm * new_weight, norm * weight, rtol=0, atol=0)
    before, after = ((rows * weights).abs().amax(0) for weights in (norm, new_norm))
    assert after.max() / after.min() < before.max() / before.min() / 50


def test_with_seven_bits_nothing_is_smoothed_and_two_terms_stay(checkpoint, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("smoothed")

    monkeypatch.setattr(module, "activation_levels", lambda: 63)
    monkeypatch.setattr(module, "Smoother", refuse)
    layer = read(checkpoint, TEXT[:96]).weights.layers[0]
    assert isinstance(layer, LeanLayer)


def test_a_context_shorter_than_the_text_takes_its_beginning(tmp_path):
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**{**SIZES, "max_position_embeddings": 40})).eval()
    model.save_pretrained(tmp_path)
    long, short = (read((tmp_path, model), TEXT[:rows]) for rows in (96, 40))
    got = [LeanRunner(lean).forward(TEXT[:30], 30) for lean in (long, short)]
    assert torch.equal(*got)

"""The int8 runner of the CPU: close to the model, and the same bit for bit in a round and alone."""

import pytest
import torch
from transformers import (
    GemmaConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from core.engine import Engine
from core.models.lean import attention, linear
from core.models.lean.linear import Int8Linear, quantize_rows
from core.models.lean.model import read_lean_model
from core.models.lean.runner import LeanRunner
from core.models.lean.shape import lean_obstacle
from core.models.runner import EagerRunner
from core.warmup import needs_warming, warm_up
from tests.helpers.tiny import byte_tokenizer, ids, request, rounds, run

SIZES = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
    "eos_token_id": None,
    "bos_token_id": None,
}
FAMILIES = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=False)),
    "llama-tied": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=True)),
    "llama-scaled": lambda: LlamaForCausalLM(
        LlamaConfig(**SIZES, rope_parameters={"rope_type": "linear", "factor": 2.0})
    ),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES, head_dim=32)),
}
TEXT = [(7 * i * i + 3 * i) % 256 for i in range(200)]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    made = {}
    for name, build in FAMILIES.items():
        torch.manual_seed(0)
        model = build().eval()
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                if key.endswith(("bias", "norm.weight")):
                    parameter.add_(0.3 * torch.randn_like(parameter))
        folder = tmp_path_factory.mktemp(name)
        model.save_pretrained(folder)
        lean = read_lean_model(folder, model.config, model.generation_config, lambda _: None)
        made[name] = (model, lean)
    return made


@pytest.mark.parametrize("family", FAMILIES)
def test_the_int8_runner_is_close_to_the_model(pairs, family):
    model, lean = pairs[family]
    reference = EagerRunner(model).forward(TEXT, len(TEXT)).log_softmax(-1)
    got = LeanRunner(lean).forward(TEXT, len(TEXT)).log_softmax(-1)
    divergence = (reference.exp() * (reference - got)).sum(-1).mean()
    # int8 weights cost this much on random models; a wrong rotation or norm costs a hundredfold.
    assert divergence < 0.01


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("start", [0, 3, 57, 60, 63, 64, 120])
def test_a_round_gives_each_row_exactly_what_it_gets_alone(pairs, family, start):
    _, lean = pairs[family]
    together, alone = LeanRunner(lean), LeanRunner(lean)
    if start:
        together.forward(TEXT[:start], 1)
        alone.forward(TEXT[:start], 1)
    block = together.forward(TEXT[start : start + 17], 17)
    rows = [alone.forward([token], 1) for token in TEXT[start : start + 17]]
    assert torch.equal(block, torch.cat(rows))


def test_reading_a_prompt_at_once_equals_reading_it_token_by_token(pairs):
    _, lean = pairs["qwen2"]
    at_once, one_by_one = LeanRunner(lean), LeanRunner(lean)
    last = at_once.forward(TEXT, 1)
    for token in TEXT:
        row = one_by_one.forward([token], 1)
    assert torch.equal(last, row)


def test_what_was_rolled_back_leaves_no_trace(pairs):
    _, lean = pairs["llama"]
    runner, fresh = LeanRunner(lean), LeanRunner(lean)
    runner.forward(TEXT[:50], 1)
    runner.forward([9] * 30, 30)
    assert runner.crop(50) == 50
    fresh.forward(TEXT[:50], 1)
    assert torch.equal(runner.forward(TEXT[50:60], 10), fresh.forward(TEXT[50:60], 10))


def test_it_keeps_states_close_to_the_models_over_several_passes(pairs):
    model, lean = pairs["llama"]
    ids = [1 + 7 * i % 200 for i in range(70)]
    runner = LeanRunner(lean)
    runner.keep_states((1, 2))
    runner.forward(ids, 1)
    with torch.no_grad():
        states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    expected = torch.cat([states[1][0], states[2][0]], dim=1)
    assert torch.nn.functional.cosine_similarity(runner.states, expected).min() > 0.99
    torch.testing.assert_close(
        runner.embed(ids[:3]), model.model.embed_tokens(torch.tensor(ids[:3])).detach()
    )
    torch.testing.assert_close(runner.unembedding([4, 2]), model.lm_head.weight[[4, 2]].detach())


def test_the_cache_grows_without_changing_what_it_holds(pairs, monkeypatch):
    _, lean = pairs["llama"]
    roomy = LeanRunner(lean).forward(TEXT, 5)
    monkeypatch.setattr(attention, "_FIRST_CAPACITY", 64)
    growing = LeanRunner(lean)
    for first in range(0, len(TEXT), 10):
        last = growing.forward(TEXT[first : first + 10], 5)
    assert torch.equal(roomy, last)


def test_the_last_positions_of_the_context_can_be_used(pairs):
    _, lean = pairs["llama"]
    runner = LeanRunner(lean, context_limit=100)
    runner.forward(TEXT[:95], 1)
    assert runner.forward(TEXT[95:100], 5).shape == (5, 256)


@pytest.mark.parametrize("start", [1, 60, 126])
def test_a_pass_through_all_layers_ahead_of_the_cache_gives_its_logits(pairs, start):
    _, lean = pairs["llama"]
    runner, fresh = LeanRunner(lean), LeanRunner(lean)
    runner.forward(TEXT[:start], 1)
    fresh.forward(TEXT[:start], 1)
    ahead = [
        runner.forward_shallow(TEXT[p : p + 1], p, runner.layers) for p in range(start, start + 6)
    ]
    assert runner.length == start
    assert torch.equal(torch.cat(ahead), fresh.forward(TEXT[start : start + 6], 6))


def test_shallow_passes_leave_no_trace(pairs):
    _, lean = pairs["qwen2"]
    runner, fresh = LeanRunner(lean), LeanRunner(lean)
    runner.forward(TEXT[:50], 1)
    fresh.forward(TEXT[:50], 1)
    for position in range(50, 70):
        shallow = runner.forward_shallow([9], position, 1)
    assert shallow.shape == (1, 256)
    assert torch.equal(runner.forward(TEXT[50:60], 10), fresh.forward(TEXT[50:60], 10))


def test_what_rows_cost_is_measured_before_the_first_reply(pairs):
    """They cost little up to the eighth and much after it, so no line from one row tells."""
    eager, lean = pairs["llama"]
    parts = Engine.from_parts(target=lean, tokenizer=byte_tokenizer(), draft=lean)._parts
    assert needs_warming(parts)
    assert not needs_warming(Engine.from_parts(target=eager, tokenizer=byte_tokenizer())._parts)
    assert parts.auto_gamma.next() == 0
    assert warm_up(parts, lambda: False)
    assert parts.auto_gamma.next() > 0
    assert (parts.target.runner.length, parts.draft.runner.length) == (0, 0)


@pytest.fixture(scope="module")
def greedy(pairs):
    """A prompt, and the 80 tokens that follow it without speculation."""
    prompt = tuple(TEXT[:90])
    plain = Engine.from_parts(target=pairs["llama"][1], tokenizer=byte_tokenizer())
    return prompt, ids(run(plain, request(prompt, drafter="off", max_new_tokens=80)))


@pytest.mark.parametrize("gamma", range(9))
def test_greedy_speculative_text_is_plain_text_on_this_runner(pairs, greedy, gamma):
    _, lean = pairs["llama"]
    prompt, expected = greedy
    assert len(expected) == 80
    for draft in (lean, pairs["qwen2"][1], pairs["llama-tied"][0]):
        engine = Engine.from_parts(target=lean, tokenizer=byte_tokenizer(), draft=draft)
        events = run(engine, request(prompt, drafter="hybrid", gamma=gamma, max_new_tokens=80))
        assert ids(events) == expected


def test_a_draft_that_is_the_target_is_always_accepted(pairs):
    _, lean = pairs["llama"]
    engine = Engine.from_parts(target=lean, tokenizer=byte_tokenizer(), draft=lean)
    events = run(engine, request(tuple(TEXT[:20]), gamma=4, max_new_tokens=100))
    assert all(round_.accepted == round_.proposed for round_ in rounds(events))


@pytest.mark.parametrize("two_terms", [False, True])
def test_a_row_does_not_depend_on_the_rows_beside_it(two_terms):
    torch.manual_seed(0)
    layer = Int8Linear(*quantize_rows(torch.randn(48, 96)), torch.randn(48), two_terms=two_terms)
    rows = torch.randn(17, 96) * torch.logspace(-3, 3, 17)[:, None]
    together = layer(rows)
    for index, row in enumerate(rows):
        assert torch.equal(layer(row[None])[0], together[index])


def test_a_second_term_brings_the_product_closer():
    torch.manual_seed(0)
    weight, scales = quantize_rows(torch.randn(48, 96))
    rows = torch.randn(8, 96)
    exact = rows @ (weight.float() * scales[:, None]).T
    errors = [
        (Int8Linear(weight, scales, two_terms=two)(rows) - exact).abs().max()
        for two in (False, True)
    ]
    assert errors[1] < errors[0] / 50


@pytest.mark.parametrize("levels", [63, 127])
def test_all_maximal_rows_do_not_saturate(levels, monkeypatch):
    if levels > linear.activation_levels():
        pytest.skip("this processor adds pairs of products in 16 bits, so it uses 7 bits")
    monkeypatch.setattr(linear, "activation_levels", lambda: levels)
    weight, scales = quantize_rows(torch.ones(4, 1024))
    product = Int8Linear(weight, scales)(torch.full((2, 1024), 3.0))
    assert torch.allclose(product, torch.full((2, 4), 3072.0), rtol=1e-5)


def test_a_row_of_zeros_gives_zeros():
    layer = Int8Linear(*quantize_rows(torch.randn(4, 8)), two_terms=True)
    assert torch.equal(layer(torch.zeros(1, 8)), torch.zeros(1, 4))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (GemmaConfig(), "gemma"),
        (MistralConfig(sliding_window=64), "sliding"),
        (LlamaConfig(attention_bias=True), "bias"),
        (LlamaConfig(hidden_act="gelu"), "gelu"),
        (
            LlamaConfig(
                rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
            ),
            "dynamic",
        ),
    ],
)
def test_what_it_is_not_made_for_is_told_in_words(config, reason):
    assert reason in lean_obstacle(config)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_it_is_made_for_has_no_obstacle(pairs, family):
    assert lean_obstacle(pairs[family][0].config) == ""

"""The static-cache runner gives the eager runner's logits, as it is and through recordings."""

import copy

import pytest
import torch
from transformers import (
    FalconConfig,
    FalconForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from core.engine import Engine
from core.errors import BugError
from core.models import runners
from core.models.runner import EagerRunner
from core.models.static import cache as cache_module
from core.models.static import runner as runner_module
from core.models.static.obstacle import capture_obstacle, static_obstacle
from core.models.static.runner import STEP_ROWS, StaticRunner
from tests.helpers import tiny
from tests.helpers.recording import RecordingGraphs
from tests.helpers.tiny import byte_tokenizer, ids, request, run, tiny_llama

SIZES = {
    "vocab_size": 256,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 1024,
    "initializer_range": 0.2,
    "eos_token_id": None,
    "bos_token_id": None,
}
FAMILIES = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, num_key_value_heads=2)),
    "llama-ungrouped": lambda: LlamaForCausalLM(LlamaConfig(**SIZES)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES, num_key_value_heads=1)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES, num_key_value_heads=2, head_dim=16)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=256, n_embd=32, n_layer=2, n_head=4, n_positions=1024)
    ),
}
TEXT = [(7 * i * i + 3 * i) % 256 for i in range(700)]


@pytest.fixture(scope="module")
def models():
    made = {}
    for name, build in FAMILIES.items():
        torch.manual_seed(0)
        made[name] = build().eval()
    return made


def pairs_of_runners(model, graphs=None, **options):
    return EagerRunner(copy.deepcopy(model)), StaticRunner(model, graphs=graphs, **options)


def assert_close(got, expected):
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)


def recorded():
    return RecordingGraphs()


@pytest.mark.parametrize("graphs", [None, recorded], ids=["as it is", "recorded"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_number_of_rows_gives_the_eager_logits(models, family, graphs):
    eager, static = pairs_of_runners(models[family], graphs and graphs())
    assert static_obstacle(models[family]) == ""
    assert_close(static.forward(TEXT[:100], 1), eager.forward(TEXT[:100], 1))
    for attempt in range(3):
        for rows in range(1, STEP_ROWS + 1):
            block = TEXT[100 + attempt : 100 + attempt + rows]
            assert_close(static.forward(block, rows), eager.forward(block, rows))
            assert static.crop(100) == eager.crop(100) == 100
    if graphs:
        assert static.captured == STEP_ROWS


def test_fewer_logits_than_ids_are_those_of_the_last(models):
    for graphs in (None, recorded()):
        eager, static = pairs_of_runners(models["llama"], graphs)
        for first in range(0, 40, 4):
            block = TEXT[first : first + 4]
            assert_close(static.forward(block, 2), eager.forward(block, 2))


def test_stale_places_behind_the_end_never_count(models):
    _, static = pairs_of_runners(models["llama"], recorded())
    fresh = StaticRunner(models["llama"])
    static.forward(TEXT[:50], 1)
    for _ in range(3):
        static.forward([9] * 16, 16)
        assert static.crop(50) == 50
    fresh.forward(TEXT[:50], 1)
    assert_close(static.forward(TEXT[50:60], 10), fresh.forward(TEXT[50:60], 10))
    assert static.length == 60
    assert static.crop(100) == 60


def test_it_sees_further_and_grows_without_changing_what_it_holds(models, monkeypatch):
    monkeypatch.setattr(runner_module, "DEFAULT_CONTEXT", 128)
    monkeypatch.setattr(cache_module, "_FIRST_VISIBLE", 32)
    graphs = recorded()
    eager, static = pairs_of_runners(models["qwen2"], graphs)
    expected = eager.forward(TEXT, len(TEXT))
    for first in range(0, len(TEXT), 10):
        assert_close(static.forward(TEXT[first : first + 10], 10), expected[first : first + 10])
    assert graphs.captures > 5  # one a doubling of what is seen
    assert static.captured < graphs.captures  # those of smaller allocations are gone
    # What it has grown by is given back with the conversation.
    large = static._cache.bytes
    static.crop(0)
    assert_close(static.forward(TEXT[:5], 5), expected[:5])
    assert static._cache.bytes * 4 < large


def test_a_pass_beyond_the_context_is_a_bug_and_no_silent_overwriting(models):
    static = StaticRunner(models["llama"], context_limit=64)
    static.forward(TEXT[:60], 1)
    with pytest.raises(BugError, match="position 70"):
        static.forward(TEXT[:10], 1)


def test_positions_up_to_the_last_of_an_odd_context_can_be_used(models):
    eager, static = pairs_of_runners(models["llama"], context_limit=70)
    assert static.context_limit == 70
    assert_close(static.forward(TEXT[:70], 70), eager.forward(TEXT[:70], 70))


def test_recordings_are_made_at_the_second_use_and_replayed_from_then_on(models):
    graphs = recorded()
    static = StaticRunner(models["llama"], graphs=graphs)
    static.forward(TEXT[:60], 1)
    assert (graphs.captures, graphs.replays) == (0, 0)  # a prompt is not a step
    counts = []
    for _ in range(4):
        static.forward([5], 1)
        counts.append((graphs.captures, graphs.replays))
    assert counts == [(0, 0), (1, 1), (1, 2), (1, 3)]
    static.forward([5, 6], 2)
    assert (graphs.captures, graphs.replays) == (1, 3)


def test_logits_that_are_kept_outlive_the_next_pass(models):
    static = StaticRunner(models["llama"], graphs=recorded())
    for token in TEXT[:5]:
        static.forward([token], 1)
    kept = static.forward([1], 1)
    before = kept.clone()
    static.forward([2], 1)
    assert torch.equal(kept, before)


@pytest.mark.parametrize(
    "error", [RuntimeError("operation not permitted"), torch.OutOfMemoryError("out of memory")]
)
def test_where_recording_fails_passes_run_as_they_are(models, error, caplog):
    graphs = recorded()
    eager, static = pairs_of_runners(models["llama"], graphs)
    graphs.error = error
    for token in TEXT[:10]:
        assert_close(static.forward([token], 1), eager.forward([token], 1))
    graphs.error = None
    for token in TEXT[:10]:
        assert_close(static.forward([token], 1), eager.forward([token], 1))
    assert (graphs.captures, static.captured) == (0, 0)
    assert graphs.releases
    assert "cannot be captured" in caplog.text


def test_states_are_those_of_whole_passes(models):
    eager, static = pairs_of_runners(models["llama"], recorded())
    for runner in (eager, static):
        runner.keep_states((2,))
        runner.forward(TEXT[:4], 1)
    for _ in range(3):
        static.forward_shallow([7], static.length, 1)
        for runner in (eager, static):
            runner.forward([9], 1)
        assert_close(static.states, eager.states)


def test_a_pass_that_breaks_off_gives_cache_and_graphs_back(models, monkeypatch):
    graphs = recorded()
    eager, static = pairs_of_runners(models["llama"], graphs)
    for token in TEXT[:5]:
        static.forward([token], 1)
    releases = graphs.releases

    def fail(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(static, "_pass", fail)
        with pytest.raises(torch.OutOfMemoryError):
            static.forward(TEXT[:30], 1)
    assert (static.length, static.captured, static._cache.bytes) == (0, 0, 0)
    assert graphs.releases == releases + 1
    assert_close(static.forward(TEXT[:30], 30), eager.forward(TEXT[:30], 30))


def test_other_widths_are_cut_and_padded_as_in_the_eager_runner(models):
    for vocab_size in (200, 300):
        graphs = recorded()
        static = StaticRunner(models["llama"], vocab_size=vocab_size, graphs=graphs)
        eager = EagerRunner(models["llama"], vocab_size=vocab_size)
        assert static.width == 256
        for token in (3, 4, 5, 6):
            assert_close(static.forward([token], 1), eager.forward([token], 1))


@pytest.mark.parametrize("graphs", [None, recorded], ids=["as it is", "recorded"])
def test_it_keeps_the_states_that_the_eager_runner_keeps(models, graphs):
    eager, static = pairs_of_runners(models["llama"], graphs and graphs())
    for layers in ((0,), (1, 2), ()):
        for runner in (eager, static):
            runner.keep_states(layers)
        for block in (TEXT[:40], [1, 2], [3, 4], [5, 6]):
            for runner in (eager, static):
                runner.forward(block, 1)
            if layers:
                assert_close(static.states, eager.states)
            else:
                assert static.states is None
    assert_close(static.embed([4, 2]), eager.embed([4, 2]))
    assert_close(static.unembedding([4, 2]), eager.unembedding([4, 2]))


def test_gpt2_names_its_layers_otherwise_and_cannot_exit_early(models):
    runner = StaticRunner(models["gpt2"])
    assert not runner.exits_early
    with pytest.raises(BugError):
        runner.forward_shallow([1], 0, 1)


@pytest.mark.parametrize("graphs", [None, recorded], ids=["as it is", "recorded"])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_the_first_layers_alone_are_a_shorter_model_and_leave_no_trace(models, family, graphs):
    model = models[family]
    short = copy.deepcopy(model)
    del short.model.layers[1:]
    short.config.num_hidden_layers = 1
    if getattr(short.config, "layer_types", None):
        short.config.layer_types = short.config.layer_types[:1]
    shorter, (eager, static) = EagerRunner(short), pairs_of_runners(model, graphs and graphs())
    assert static.exits_early
    for runner in (shorter, eager, static):
        runner.forward(TEXT[:50], 1)
    for turn in range(4):
        # Drafted ahead of the cache, token by token, and then something else is committed.
        for place, token in enumerate(TEXT[60 + turn : 63 + turn]):
            got = static.forward_shallow([token], 50 + 2 * turn + place, 1)
            assert_close(got, shorter.forward([token], 1))
        assert static.length == 50 + 2 * turn
        assert len(model.model.layers) == 2
        block = TEXT[100 + 2 * turn : 102 + 2 * turn]
        shorter.crop(50 + 2 * turn)
        shorter.forward(block, 1)
        assert_close(static.forward(block, 2), eager.forward(block, 2))


def test_bfloat16_stays_bfloat16_and_close(models):
    model = copy.deepcopy(models["llama"]).to(torch.bfloat16)
    eager, static = pairs_of_runners(model, recorded())
    for block in (TEXT[:40], [1, 2], [3, 4], [5, 6]):
        got, expected = static.forward(block, 2), eager.forward(block, 2)
        assert got.dtype is torch.float32
        torch.testing.assert_close(got, expected, atol=0.05, rtol=0.05)
    assert static._cache.layers[0].keys.dtype is torch.bfloat16


def test_the_model_is_left_as_it_was(models):
    model = models["llama"]
    StaticRunner(model).forward(TEXT[:5], 1)
    assert model.config._attn_implementation == "sdpa"
    assert all(
        layer.self_attn.config._attn_implementation == "sdpa" for layer in model.model.layers
    )


def test_models_without_a_fused_attention_run_too(models):
    torch.manual_seed(0)
    config = LlamaConfig(**SIZES, num_key_value_heads=2, attn_implementation="eager")
    eager, static = pairs_of_runners(LlamaForCausalLM(config).eval(), recorded())
    for block in (TEXT[:40], [1, 2], [3, 4], [5, 6]):
        assert_close(static.forward(block, 2), eager.forward(block, 2))


@pytest.mark.parametrize("drafter", ["off", "model", "ngram", "hybrid"])
@pytest.mark.parametrize("gamma", [1, 4, 16])
def test_greedy_text_is_the_eager_runners(monkeypatch, drafter, gamma):
    target, draft = tiny_llama(), tiny.noisy(tiny_llama())
    prompt = (1, 2, 3, 1, 2, 3, 1, 2)
    wanted = request(prompt, drafter=drafter, gamma=gamma, max_new_tokens=60)
    expected = ids(run(Engine.from_parts(target=target, tokenizer=byte_tokenizer()), wanted))

    def make(model, **options):
        return StaticRunner(model, graphs=recorded(), **options)

    monkeypatch.setattr("core.parts.make_runner", make)
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=draft)
    for _ in range(2):
        assert ids(run(engine, wanted)) == expected


def dynamic_rope():
    return {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (tiny.sliding, "keeps more or less"),
        (lambda: LlamaForCausalLM(LlamaConfig(**SIZES, rope_parameters=dynamic_rope())), "scales"),
        (lambda: FalconForCausalLM(FalconConfig(**_FALCON, alibi=True)), "positions"),
    ],
)
def test_what_it_is_not_made_for_is_told_in_words(make, reason):
    assert reason in static_obstacle(make())


_FALCON = {
    "vocab_size": 256,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
}


def test_recurrent_models_stay_eager():
    from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

    small = {**SIZES, "num_experts": 0, "num_hidden_layers": 2}
    small |= {"linear_num_value_heads": 2, "linear_num_key_heads": 2, "head_dim": 8}
    config = Qwen3NextConfig(**small, layer_types=["linear_attention", "full_attention"])
    assert "keeps more or less" in static_obstacle(Qwen3NextForCausalLM(config))


def test_flexible_attention_without_masks_is_refused(models):
    model = copy.deepcopy(models["llama"])
    model.config._attn_implementation = "flash_attention_2"
    assert "flash_attention_2" in static_obstacle(model)


class Linear8bitLt(torch.nn.Module):
    """Carries the name of the layer of bitsandbytes that takes outliers apart."""


def test_int8_runs_on_the_static_cache_uncaptured(models):
    model = copy.deepcopy(models["llama"])
    assert capture_obstacle(model) == ""
    model.extra = Linear8bitLt()
    assert "LLM.int8" in capture_obstacle(model)


def test_a_model_on_several_devices_is_not_captured(models):
    model = copy.deepcopy(models["llama"])
    model.hf_device_map = {"": 0}
    assert capture_obstacle(model) == ""
    model.hf_device_map = {"model": 0, "lm_head": "cpu"}
    assert "several devices" in capture_obstacle(model)


def on_cuda(model):
    """The model, saying that it is on CUDA."""
    claims = type("Claims", (type(model),), {"device": property(lambda _: torch.device("cuda:0"))})
    claimed = copy.copy(model)
    claimed.__class__ = claims
    return claimed


def test_on_a_cpu_transformers_models_stay_eager(models):
    assert isinstance(runners.make_runner(models["llama"]), EagerRunner)


def test_on_cuda_models_get_the_static_runner_with_graphs_unless_something_forbids(models):
    made = runners.make_runner(on_cuda(models["llama"]), vocab_size=200, context_limit=100)
    assert isinstance(made, StaticRunner)
    assert (made.vocab_size, made.context_limit) == (200, 100)
    assert made._book is not None
    in_int8 = copy.deepcopy(models["llama"])
    in_int8.extra = Linear8bitLt()
    made = runners.make_runner(on_cuda(in_int8))
    assert isinstance(made, StaticRunner)
    assert made._book is None
    assert isinstance(runners.make_runner(on_cuda(tiny.sliding())), EagerRunner)

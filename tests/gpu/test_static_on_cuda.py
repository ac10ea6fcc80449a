"""Captured passes on a real card. Skipped, with the reason, where there is none."""

import copy
import gc
import importlib.util

import pytest
import torch

from benchmarks import gpu_check
from core.cancel import CancelToken
from core.decoding.gamma import AutoGamma
from core.engine import Engine
from core.events import Failed
from core.models.measure import VERIFY_ROWS, measure_verify_ms
from core.models.quant.bnb import quantize_linears
from core.models.runner import EagerRunner
from core.models.runners import make_runner
from core.models.static.runner import STEP_ROWS, StaticRunner
from core.requests import Precision
from core.warmup import needs_warming, warm_up
from tests.helpers import tiny
from tests.helpers.tiny import byte_tokenizer, ids, request, run, tiny_llama

pytestmark = pytest.mark.gpu

TEXT = [(7 * i * i + 3 * i) % 256 for i in range(700)]
needs_bitsandbytes = pytest.mark.skipif(
    importlib.util.find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed"
)


@pytest.fixture
def model():
    return tiny_llama(hidden=128, context=8192).to("cuda")


def both(model):
    return EagerRunner(copy.deepcopy(model)), make_runner(model)


def test_models_on_cuda_get_the_static_runner(model):
    assert isinstance(make_runner(model), StaticRunner)
    assert isinstance(make_runner(tiny.sliding().to("cuda")), EagerRunner)


def test_replayed_passes_give_the_eager_logits_for_every_number_of_rows(model):
    eager, static = both(model)
    for runner in (eager, static):
        runner.forward(TEXT[:100], 1)
    for attempt in range(4):
        for rows in range(1, STEP_ROWS + 1):
            block = TEXT[100 + attempt : 100 + attempt + rows]
            got, expected = static.forward(block, rows), eager.forward(block, rows)
            torch.testing.assert_close(got, expected, atol=1e-3, rtol=1e-3)
            assert static.crop(100) == eager.crop(100) == 100
    assert static.captured == STEP_ROWS


def test_a_cache_that_grows_is_captured_anew_and_stays_right(model):
    eager, static = both(model)
    long = [(11 * i) % 256 for i in range(5000)]
    for first in range(0, len(long), 250):
        for runner in (eager, static):
            runner.forward(long[first : first + 250], 1)
        for token in (1, 2, 3):
            torch.testing.assert_close(
                static.forward([token], 1), eager.forward([token], 1), atol=1e-3, rtol=1e-3
            )
        assert static.captured >= 1
        for runner in (eager, static):
            runner.crop(first + 250)


def test_the_first_layers_alone_are_captured_too_and_leave_the_cache_right(model):
    captured, plain = make_runner(model), StaticRunner(copy.deepcopy(model))
    for runner in (captured, plain):
        runner.forward(TEXT[:50], 1)
    for turn in range(4):
        for place in range(3):
            drafted = TEXT[100 + turn + place]
            got, expected = (
                runner.forward_shallow([drafted], 50 + turn + place, 1)
                for runner in (captured, plain)
            )
            torch.testing.assert_close(got, expected, atol=1e-3, rtol=1e-3)
        got, expected = (runner.forward([TEXT[turn]], 1) for runner in (captured, plain))
        torch.testing.assert_close(got, expected, atol=1e-3, rtol=1e-3)
    assert captured.captured == 2


def test_logits_outlive_the_replay_of_another_graph_in_the_same_pool(model):
    static = make_runner(model)
    for block in ([1], [2], [3], [1, 2], [2, 3], [3, 4]):
        static.forward(block, len(block))
    kept = static.forward([5], 1)
    before = kept.clone()
    static.forward([6, 7], 2)
    static.forward([8], 1)
    torch.cuda.synchronize()
    assert torch.equal(kept, before)


@pytest.mark.parametrize("drafter", ["model", "ngram", "hybrid"])
@pytest.mark.parametrize("gamma", [0, 1, 4, 8, 16])
def test_greedy_text_in_float32_is_the_eager_runners(model, drafter, gamma):
    prompt = (1, 2, 3, 1, 2, 3, 1, 2)
    on_cpu = Engine.from_parts(target=copy.deepcopy(model).to("cpu"), tokenizer=byte_tokenizer())
    wanted = request(prompt, drafter=drafter, gamma=gamma, max_new_tokens=60)
    expected = ids(run(on_cpu, request(prompt, drafter="off", max_new_tokens=60)))
    draft = tiny.noisy(copy.deepcopy(model).to("cpu")).to("cuda")
    engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer(), draft=draft)
    for _ in range(2):
        assert ids(run(engine, wanted)) == expected


@needs_bitsandbytes
def test_4_bit_weights_are_captured_and_8_bit_weights_run_as_they_are(model):
    for precision, captured in ((Precision.NF4, True), (Precision.INT8, False)):
        quantized = copy.deepcopy(model).to(torch.bfloat16)
        quantize_linears(quantized.model.layers, precision)
        static = make_runner(quantized)
        eager = EagerRunner(quantized)
        for block in ([1, 2], [3, 4], [5, 6], [7, 8]):
            got, expected = static.forward(block, 2), eager.forward(block, 2)
            torch.testing.assert_close(got, expected, atol=0.3, rtol=0.1)
        assert (static.captured > 0) == captured


def test_what_passes_cost_is_measured_and_seeds_the_draft_length(model):
    measured = measure_verify_ms(make_runner(model), budget_ms=1e9)
    assert sorted(measured) == sorted(VERIFY_ROWS)
    assert all(time_ms > 0 for time_ms in measured.values())
    controller = AutoGamma()
    controller.seed(measured, {"model": measured[1]})
    engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer(), draft=model)
    assert needs_warming(engine._parts)
    assert warm_up(engine._parts, lambda: False)


def test_memory_comes_back_after_every_unload():
    taken = []
    for _ in range(4):
        target = tiny_llama(hidden=256, context=8192).to("cuda")
        engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=target)
        del target
        run(engine, request(max_new_tokens=40))
        engine.unload()
        taken.append(torch.cuda.memory_allocated())
    # The first time takes what a process keeps, such as workspaces of cuBLAS.
    assert max(taken[1:]) <= taken[0]


def test_memory_that_runs_out_is_one_sentence_and_the_next_reply_works(model):
    engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer())
    run(engine, request(max_new_tokens=8))
    gc.collect()
    torch.cuda.empty_cache()
    room = torch.cuda.memory_reserved() + 4_000_000
    torch.cuda.set_per_process_memory_fraction(room / torch.cuda.mem_get_info()[1])
    try:
        long = request(tuple(i % 256 for i in range(7000)), max_new_tokens=8)
        last = list(engine.generate(long, CancelToken()))[-1]
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert isinstance(last, Failed)
    assert "Memory ran out" in last.message
    assert len(ids(run(engine, request(max_new_tokens=8)))) == 8


def test_the_gpu_check_runs_on_the_card_with_tiny_shapes(tmp_path):
    out = tmp_path / "check.json"
    assert gpu_check.main(["--tiny", "--limit-s", "240", "--out", str(out)]) == 0

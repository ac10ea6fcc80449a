"""Memory that runs out on a GPU costs the draft first, is one sentence, and comes back."""

import gc
import weakref
from pathlib import Path

import pytest
import torch

from core import engine as engine_module
from core.cancel import CancelToken
from core.engine import Engine
from core.errors import Cancelled
from core.events import Failed
from core.models.measure import measure_verify_ms
from core.models.static.runner import StaticRunner
from core.requests import LoadRequest
from core.warmup import needs_warming, warm_up
from tests.helpers import tiny
from tests.helpers.checkpoints import save_folder
from tests.helpers.recording import RecordingGraphs
from tests.helpers.tiny import byte_tokenizer, ids, request, run, tiny_llama


class Card:
    """Gives every model a recorded static runner, and some of them no memory."""

    def __init__(self):
        self.runners = []
        self.full_for = []

    def make_runner(self, model, **options):
        runner = CardRunner(model, self, **options)
        self.runners.append(weakref.ref(runner))
        return runner


class CardRunner(StaticRunner):
    def __init__(self, model, card, **options):
        super().__init__(model, graphs=RecordingGraphs(), **options)
        self.card = card
        self.place = len(card.runners)

    def _pass(self, *arguments):
        result = super()._pass(*arguments)
        if self.place in self.card.full_for:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return result


@pytest.fixture
def card(monkeypatch):
    card = Card()
    monkeypatch.setattr("core.parts.make_runner", card.make_runner)
    monkeypatch.setattr(engine_module, "needs_warming", lambda _: True)

    def measure(runner, rows=(1, 3, 5), **options):
        return measure_verify_ms(runner, rows, repeats=1, **options)

    monkeypatch.setattr("core.warmup.measure_verify_ms", measure)
    return card


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return save_folder(tmp_path_factory.mktemp("models") / "small", tiny_llama(vocab=400))


def load(tmp_path, folder, cancel=None):
    engine, stages = Engine(prepared_dir=tmp_path), []
    wanted = LoadRequest(target=str(folder), draft=str(folder), device="cpu", precision="float32")
    loaded = engine.load(wanted, lambda step: stages.append(step.stage), cancel or CancelToken())
    return engine, loaded, stages


def option(loaded, kind):
    return next(option for option in loaded.drafters if option.kind == kind)


def test_after_a_load_the_draft_length_starts_from_what_both_models_cost(
    card, tmp_path, folder, monkeypatch
):
    times = {"flat": {1: 10.0, 17: 11.0}, "steep": {1: 10.0, 17: 300.0}}
    worth = {}
    for name, verify_ms in times.items():
        # The draft, whose steps alone are measured, is told by what is asked for.
        def measure(_, rows=None, *, cancelled, verify_ms=verify_ms):
            return {1: 1.0} if rows == (1,) else verify_ms

        monkeypatch.setattr("core.warmup.measure_verify_ms", measure)
        engine, loaded, stages = load(tmp_path, folder)
        assert loaded.draft is not None
        assert stages[-1] == "Measuring the models"
        controller = engine._parts.auto_gamma
        worth[name] = controller.worth_drafting("model", 1.0, 1)
    assert worth == {"flat": True, "steep": False}


def test_on_a_cpu_nothing_is_measured(tmp_path, folder):
    engine, _, stages = load(tmp_path, folder)
    assert not needs_warming(engine._parts)
    assert "Measuring the models" not in stages


def test_where_both_models_do_not_run_together_the_draft_is_left_out_and_freed(
    card, tmp_path, folder
):
    card.full_for = [1]
    engine, loaded, _ = load(tmp_path, folder)
    assert loaded.draft is None
    assert loaded.notices == (
        "The draft model was left out: there is not enough memory to run small beside small.",
    )
    assert "not enough memory" in option(loaded, "model").reason
    assert option(loaded, "ngram").available
    gc.collect()
    assert [runner() is None for runner in card.runners] == [True, True, False]
    assert ids(run(engine, request(max_new_tokens=8)))


def test_a_target_that_has_no_memory_to_run_says_so_in_the_reply(card, tmp_path, folder):
    card.full_for = [0, 2]
    engine, loaded, _ = load(tmp_path, folder)
    assert loaded.draft is None
    last = list(engine.generate(request(max_new_tokens=8), CancelToken()))[-1]
    assert isinstance(last, Failed)
    assert "Memory ran out" in last.message
    card.full_for = []
    assert ids(run(engine, request(max_new_tokens=8)))


def test_cancelling_while_it_is_measured_leaves_nothing_loaded(card, tmp_path, folder, monkeypatch):
    cancel = CancelToken()

    def measure(*_, **__):
        cancel.cancel()
        return {}

    monkeypatch.setattr("core.warmup.measure_verify_ms", measure)
    with pytest.raises(Cancelled):
        load(tmp_path, folder, cancel)
    gc.collect()
    assert [runner() for runner in card.runners] == [None, None]


@pytest.mark.parametrize("place", [0, 1], ids=["target", "draft"])
def test_memory_that_runs_out_during_a_reply_is_one_sentence_and_the_next_reply_works(card, place):
    engine = Engine.from_parts(target=tiny_llama(), tokenizer=byte_tokenizer(), draft=tiny_llama())
    wanted = request(max_new_tokens=30)
    expected = ids(run(engine, wanted))
    card.full_for = [place]
    longer = request(tuple(range(9, 60)), max_new_tokens=30)
    events = list(engine.generate(longer, CancelToken()))
    last = events[-1]
    assert isinstance(last, Failed)
    assert last.kind == "user"
    assert last.message == (
        "Memory ran out during this reply. Shorten the conversation, or load a smaller model."
    )
    runner = card.runners[place]()
    assert (runner.length, runner.captured, runner._cache.bytes) == (0, 0, 0)
    if place == 1:
        without = request(drafter="off", max_new_tokens=30)
        assert ids(run(engine, without)) == expected
    card.full_for = []
    assert ids(run(engine, wanted)) == expected


def test_unloading_again_and_again_leaves_no_model_runner_or_graph(card, tmp_path, folder):
    for _ in range(4):
        engine, _, _ = load(tmp_path, folder)
        run(engine, request(max_new_tokens=8))
        alive = weakref.ref(engine._parts.target.runner._model)
        engine.unload()
        assert alive() is None
    assert {runner() for runner in card.runners} == {None}


def test_warming_up_without_a_draft_measures_the_target_alone():
    engine = Engine.from_parts(target=tiny.tiny_llama(), tokenizer=byte_tokenizer())
    assert warm_up(engine._parts, lambda: False)
    assert len(engine._parts.target) == 0
    assert ids(run(engine, request(gamma="auto", drafter="ngram", max_new_tokens=8)))

"""A whole training run on a tiny model: its events, stopping, going on, and being killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import LlamaForCausalLM

from core.errors import UserError
from core.models.mtp.files import load_head, save_head
from core.models.runners import make_runner
from core.requests import LoadRequest
from core.training import events, loop
from core.training.data import TextData, layers_of
from core.training.loading import load_alone
from core.training.report import Report
from core.training.request import TrainRequest, read_both
from core.training.run import run_training
from core.training.shards import MANIFEST
from core.training.sizes import thirds
from tests.helpers.checkpoints import save_folder
from tests.helpers.tiny import tiny_llama
from tests.helpers.tiny_tokenizers import CHATML, byte_level

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    tokenizer = byte_level(chat_template=CHATML, eos="<|im_end|>")
    model: LlamaForCausalLM = tiny_llama(vocab=len(tokenizer))
    with torch.no_grad():
        model.lm_head.weight.mul_(3)
    return save_folder(tmp_path_factory.mktemp("model") / "tiny", model, tokenizer)


@pytest.fixture(scope="module")
def prompts(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "own.jsonl"
    lines = [{"text": f"Say {number}, please"} for number in range(24)]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def _values(target, prompts, home):
    return {
        "target": str(target),
        "home": str(home),
        "data": [prompts],
        "own_only": True,
        "tokens": 600,
        "temperatures": [0.0, 1.0],
        "max_new_tokens": 16,
        "lanes": 8,
        "vocabulary": 200,
        "epochs": 8,
        "batch_tokens": 400,
    }


def _request(target, prompts, home, **changes):
    values = {**_values(target, prompts, home), **changes}
    values.pop("target"), values.pop("home")
    return TrainRequest(
        load=LoadRequest(target=str(target)),
        home=home,
        **{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()},
    )


def _run(request, stopped=lambda: False):
    heard = []
    return run_training(request, heard.append, stopped), heard


def _kinds(heard):
    return [type(event).__name__ for event in heard]


def test_a_run_makes_a_head_and_says_how(target, prompts, tmp_path):
    request = _request(target, prompts, tmp_path)
    path, heard = _run(request)
    head = load_head(path)
    assert path.parent == tmp_path / "heads"
    assert head.card.depth == 3
    assert head.card.state_layers == thirds(2)
    assert head.card.acceptance_length == heard[-1].length
    assert int(head.card.data.split(" tokens")[0].split()[-1]) >= 600
    assert type(heard[-1]) is events.Finished
    assert heard[-1].path == str(path)
    stages = [event.stage for event in heard if isinstance(event, events.StageStarted)]
    assert stages == ["load", "generate", "generate", "train", "evaluate", "save"]
    first = _kinds(heard)
    assert first.index("DiskUse") < first.index("Kept")
    measured = [event for event in heard if isinstance(event, events.Evaluated)]
    assert len(measured) > 3
    assert measured[-1].tokens > 0
    losses = [e.loss for e in heard if isinstance(e, events.Progress) and e.loss is not None]
    assert losses[-1] < losses[0]
    for event in heard:
        assert events.from_json(json.loads(json.dumps(events.to_json(event)))) == event


def _made(heard):
    """How many tokens of replies a run made itself."""
    return sum(e.tokens_per_second > 0 for e in heard if _is_progress(e, "generate"))


def _is_progress(event, stage):
    return isinstance(event, events.Progress) and event.stage == stage


def test_text_that_was_made_is_not_made_again_and_no_head_is_replaced(target, prompts, tmp_path):
    first, _ = _run(_request(target, prompts, tmp_path))
    weights = load_head(first).state_dict()
    second, heard = _run(_request(target, prompts, tmp_path))
    assert not _made(heard)
    assert second == first.with_name(f"{first.name}-2")
    assert all(torch.equal(weights[k], v) for k, v in load_head(second).state_dict().items())
    assert not list(tmp_path.rglob("checkpoint.json"))


def test_a_training_that_was_begun_goes_on_with_its_text_however_much_more_there_is_time_for(
    target, prompts, tmp_path
):
    heard = []
    request = _request(target, prompts, tmp_path, tokens=300)
    assert (
        run_training(
            request, heard.append, lambda: any(_is_progress(event, "train") for event in heard)
        )
        is None
    )
    path, heard = _run(_request(target, prompts, tmp_path, tokens=600))
    assert path is not None
    assert not _made(heard)
    (begun,) = [e for e in heard if isinstance(e, events.StageStarted) and e.stage == "train"]
    assert begun.resumed


@pytest.mark.parametrize("damage", ["cut", "zeros", "gone", "no list"])
def test_text_that_was_damaged_is_made_again_or_told_in_words(target, prompts, tmp_path, damage):
    request = _request(target, prompts, tmp_path, tokens=None, minutes=0.1, epochs=1)
    assert _run(request)[0] is not None
    (folder,) = (tmp_path / "training").glob("*/text-*")
    (shard,) = folder.glob("shard-*")
    if damage == "cut":
        shard.write_bytes(shard.read_bytes()[:500])
    elif damage == "zeros":
        shard.write_bytes(bytes(shard.stat().st_size))
        with pytest.raises(UserError, match="Delete the folder"):
            _run(request)
        return
    else:
        (shard if damage == "gone" else folder / MANIFEST).unlink()
    path, heard = _run(request)
    assert path is not None
    assert _made(heard)


@pytest.mark.parametrize("length", [0.5, 3.9])
def test_a_head_that_was_measured_better_is_named_at_the_end(target, prompts, tmp_path, length):
    first, _ = _run(_request(target, prompts, tmp_path))
    head = load_head(first)
    save_head(head, first, card=replace(head.card, acceptance_length=length))
    _, heard = _run(_request(target, prompts, tmp_path))
    said = [e.message for e in heard if isinstance(e, events.Notice) and e.kind == "better-head"]
    assert [first.name in message for message in said] == ([True] if length > 3 else [])
    assert type(heard[-1]) is events.Finished
    begun = [e.resumed for e in heard if isinstance(e, events.StageStarted)][1:3]
    assert begun == [True, True], "text that is there is said to be"


@pytest.mark.parametrize("taken", ["file", "folder", "below a file"])
def test_a_place_that_cannot_be_is_refused_before_anything_is_done(
    target, prompts, tmp_path, taken
):
    place = tmp_path / "out"
    if taken == "folder":
        place.mkdir()
        (place / "head.json").write_text("{}")
    else:
        place.write_text("")
    out = place / "deeper" if taken == "below a file" else place
    heard = []
    with pytest.raises(UserError, match=r"cannot be made|something at") as caught:
        run_training(_request(target, prompts, tmp_path, out=out), heard.append, lambda: False)
    assert "--out" in str(caught.value)
    assert not heard


def test_a_run_that_is_stopped_anywhere_goes_on_to_the_same_head(
    target, prompts, tmp_path, monkeypatch
):
    whole, _ = _run(_request(target, prompts, tmp_path / "whole"))
    wanted = load_head(whole).state_dict()
    monkeypatch.setattr(loop, "_CHECKPOINT_EVERY_S", 0.0)
    request = _request(target, prompts, tmp_path / "broken")
    numbers = random.Random(0)
    stages = []
    for _ in range(50):
        left = numbers.randrange(3, 40)

        def stopped():
            nonlocal left
            left -= 1
            return left < 0

        path, heard = _run(request, stopped)
        if path is not None:
            break
        assert isinstance(heard[-1], events.Stopped)
        stages.append(heard[-1].stage)
    assert {"generate", "train"} <= set(stages)
    found = load_head(path).state_dict()
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)


@pytest.mark.parametrize("kind", ["sequential", "parallel"])
def test_text_that_is_there_is_enough(target, prompts, tmp_path, kind):
    _run(_request(target, prompts, tmp_path))
    text = next((tmp_path / "training").glob("*/text-*"))
    held_out = next((tmp_path / "training").glob("*/held-out-*"))
    request = _request(
        target, prompts, tmp_path, text=(text, held_out), kind=kind, out=tmp_path / "out"
    )
    path, heard = _run(request)
    assert load_head(path).card.kind == kind
    assert path == tmp_path / "out"
    assert "generate" not in [e.stage for e in heard if isinstance(e, events.StageStarted)]
    with pytest.raises(UserError, match="no generated text"):
        _run(_request(target, prompts, tmp_path, text=(tmp_path, tmp_path)))


def test_text_with_states_of_another_model_is_refused_in_words(target, prompts, tmp_path):
    _run(_request(target, prompts, tmp_path))
    text = next((tmp_path / "training").glob("*/text-*"))
    held_out = next((tmp_path / "training").glob("*/held-out-*"))
    tokenizer = byte_level(chat_template=CHATML, eos="<|im_end|>")
    wider = save_folder(tmp_path / "wider", tiny_llama(vocab=len(tokenizer), hidden=64), tokenizer)
    with pytest.raises(UserError, match="states of another model"):
        _run(_request(wider, prompts, tmp_path, text=(text, held_out)))
    # On a draft, too, what was generated before is taken as it is.
    author = LoadRequest(target="not there")
    path, _ = _run(_request(target, prompts, tmp_path, text=(text, held_out), author=author))
    assert path is not None


def test_a_head_on_a_draft_learns_the_targets_text(target, prompts, tmp_path):
    tokenizer = byte_level(chat_template=CHATML, eos="<|im_end|>")
    draft = save_folder(tmp_path / "draft", tiny_llama(seed=5, vocab=len(tokenizer)), tokenizer)
    request = _request(draft, prompts, tmp_path, author=LoadRequest(target=str(target)), loss="ce")
    path, heard = _run(request)
    card = load_head(path).card
    assert card.host.name == "draft"
    assert "of the target's own" in card.data
    stages = [event.stage for event in heard if isinstance(event, events.StageStarted)]
    assert stages == [
        *("load", "generate", "generate", "load", "read", "read", "train", "evaluate", "save")
    ]
    texts = {path.name: path for path in (tmp_path / "training").glob("*/text-*")}
    source, read = (texts[name] for name in sorted(texts, key=len))
    with TextData(source) as theirs, TextData(read) as mine:
        assert mine.keys == theirs.keys
        assert all(torch.equal(mine.ids(i), theirs.ids(i)) for i in range(len(mine)))
        assert mine.prompt_lengths == theirs.prompt_lengths
        read_before = mine.ids(0)[:-1]
        runner = make_runner(load_alone_lean(draft, tmp_path))
        runner.keep_states(layers_of(read))
        runner.forward(read_before.tolist(), 1)
        kept = mine.batch([0]).states[0, : len(read_before)]
        torch.testing.assert_close(kept, runner.states.to(torch.bfloat16))
    _, heard = _run(request)
    assert not any(isinstance(e, events.Progress) and e.stage == "read" for e in heard)


def load_alone_lean(folder, home):
    report = Report(lambda _: None, lambda: False)
    return load_alone(LoadRequest(target=str(folder)), home, report).model


@pytest.mark.parametrize("anew", [False, True])
def test_a_training_that_was_stopped_goes_on_unless_it_is_to_begin_anew(
    target, prompts, tmp_path, anew
):
    heard = []
    assert (
        run_training(
            _request(target, prompts, tmp_path),
            heard.append,
            lambda: any(_is_progress(event, "train") for event in heard),
        )
        is None
    )
    path, heard = _run(_request(target, prompts, tmp_path, anew=anew))
    (begun,) = [e for e in heard if isinstance(e, events.StageStarted) and e.stage == "train"]
    assert path is not None
    assert begun.resumed == (not anew)
    assert any(isinstance(event, events.Earlier) for event in heard) == (not anew)


def test_a_run_with_minutes_ends_in_time_and_keeps_its_text(target, prompts, tmp_path):
    request = _request(target, prompts, tmp_path, tokens=None, minutes=0.1, epochs=2)
    path, _ = _run(request)
    assert path is not None
    _, heard = _run(request)
    assert not _made(heard)


def test_a_full_disk_is_refused_before_anything_is_written(target, prompts, tmp_path, monkeypatch):
    request = _request(target, prompts, tmp_path, tokens=10**12)
    with pytest.raises(UserError, match="are needed to train this head"):
        _run(request)
    assert not (tmp_path / "training").exists()


def test_two_trainings_of_one_model_do_not_mix(target, prompts, tmp_path):
    request = _request(target, prompts, tmp_path)
    refused = []

    def emit(event):
        if isinstance(event, events.Evaluated) and not refused:
            with pytest.raises(UserError, match="Another training") as caught:
                _run(_request(target, prompts, tmp_path, seed=1))
            refused.append(caught)

    assert run_training(request, emit, lambda: False) is not None
    assert refused


def test_prompts_of_ones_own_give_some_to_measure_on(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("\n".join(f"Question {number}" for number in range(24)))
    base = {"load": LoadRequest(target="x"), "home": tmp_path, "own_only": True}
    train, held_out = read_both(TrainRequest(**base, data=(path,)))
    assert len(held_out) == 2
    assert len(train) == 22
    assert {p.text for p in train}.isdisjoint(p.text for p in held_out)
    path.write_text("One alone")
    with pytest.raises(UserError, match="too few prompts"):
        read_both(TrainRequest(**base, data=(path,)))
    with pytest.raises(UserError, match="no prompts"):
        TrainRequest(**base)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "medusa"},
        {"depth": 0},
        {"tokens": 1},
        {"minutes": 0},
        {"temperatures": ()},
        {"temperatures": (-1.0,)},
        {"weights": (1.0,)},
        {"weights": (0.5, float("nan"), 0.5)},
        {"weights": (0.5, float("inf"), 0.5)},
        {"learning_rate": 5.0},
    ],
)
def test_requests_that_make_no_sense_are_refused(wrong, tmp_path):
    with pytest.raises(UserError):
        TrainRequest(load=LoadRequest(target="x"), home=tmp_path, **wrong)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills children that it forks")
def test_a_run_killed_at_random_moments_goes_on_and_leaves_nothing_half_written(
    target, prompts, tmp_path
):
    values = {**_values(target, str(prompts), tmp_path), "epochs": 16}
    numbers = random.Random(1)
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.train_worker"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    codes = []
    with worker:
        for attempt in range(11):
            worker.stdin.write(json.dumps(values) + "\n")
            worker.stdin.flush()
            child = int(worker.stdout.readline())
            if attempt < 10:
                time.sleep(numbers.uniform(0.02, 0.6))
                os.kill(child, signal.SIGKILL)
            codes.append(int(worker.stdout.readline().split()[1]))
            _check_all_files_are_whole(tmp_path / "training")
        worker.stdin.close()
    assert codes[-1] == 0
    assert -signal.SIGKILL in codes
    for folder in (tmp_path / "heads").iterdir():
        load_head(folder)
    leftovers = [path.name for path in (tmp_path / "training").rglob("*.tmp")]
    assert leftovers == []


def _check_all_files_are_whole(folder):
    """Every file that counts can be read in full, whatever the kill interrupted."""
    for manifest in folder.rglob(MANIFEST):
        for shard in json.loads(manifest.read_text())["shards"]:
            with safe_open(manifest.parent / shard["file"], framework="pt") as file:
                assert len(file.get_tensor("ids")) == shard["tokens"]
    for card in folder.rglob("checkpoint.json"):
        state = json.loads(card.read_text())
        with safe_open(card.parent / state["file"], framework="pt") as file:
            assert all(file.get_tensor(name).numel() for name in list(file.keys()))

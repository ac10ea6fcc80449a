"""Distilling a draft: it agrees more with the target afterwards, and nothing else changes."""

import os

import pytest
import torch
from transformers import LlamaForCausalLM

from core.cli.distill import request_of
from core.cli.parser import build_parser
from core.models.runners import make_runner
from core.requests import LoadRequest
from core.training.checkpoint import restore_checkpoint, save_checkpoint
from core.training.data import TextData
from core.training.distill import DistillSettings, DraftTrainer
from core.training.distill_run import DistillRequest, text_request
from core.training.meter import Meter
from tests.helpers.checkpoints import save_folder
from tests.helpers.cli import CommandLine
from tests.helpers.heads import forgetful_llama
from tests.helpers.tiny import noisy
from tests.helpers.tiny_tokenizers import CHATML, byte_level
from tests.helpers.training import sentences, write_text


@pytest.fixture(scope="module")
def target():
    model = forgetful_llama()  # what a draft learns of some text holds for other text
    with torch.no_grad():
        model.lm_head.weight.mul_(4)
    return model


@pytest.fixture(scope="module")
def folders(target, tmp_path_factory):
    base = tmp_path_factory.mktemp("text")
    train = write_text(target, base / "train", sentences(40, temperatures=(0.0, 1.0)))
    return train, write_text(target, base / "held-out", sentences(12, seed=9))


def _trainer(target, data, **settings):
    values = {"epochs": 6, "learning_rate": 1e-3, "batch_tokens": 400, **settings}
    runner = make_runner(target)
    return DraftTrainer(
        noisy(target, 0.4),
        data,
        unembedding=runner.unembedding(range(runner.width)),
        settings=DistillSettings(**values),
    )


def test_distilling_raises_acceptance_on_text_that_was_not_trained_on(target, folders):
    with TextData(folders[0]) as data, TextData(folders[1]) as held_out:
        trainer = _trainer(target, data)
        untouched = {name: p.clone() for name, p in target.named_parameters()}

        def measured():
            return trainer.measure(held_out.batch(part) for part in held_out.plan(400, None))

        before = measured()
        losses = []
        while not trainer.done:
            losses.append(trainer.train_step()[0])
        after = measured()
    assert after.length > before.length + 1
    assert after.by_step[0] > before.by_step[0] + 0.2
    assert losses[-1] < 0.3 * losses[0]
    assert all(torch.equal(untouched[name], p) for name, p in target.named_parameters())


def test_a_draft_that_is_the_target_is_always_right(target, folders):
    with TextData(folders[1]) as data:
        runner = make_runner(target)
        trainer = DraftTrainer(
            noisy(target, 0.0),
            data,
            unembedding=runner.unembedding(range(runner.width)),
            settings=DistillSettings(),
        )
        found = trainer.measure(data.batch(part) for part in data.plan(400, None))
        loss = trainer.train_step()[0]
    assert found.by_step == (1.0, 1.0, 1.0, 1.0)
    assert loss == pytest.approx(0.0, abs=2e-3)  # the states are kept in bfloat16


def test_a_resumed_distillation_has_the_weights_of_an_unbroken_one(target, folders, tmp_path):
    with TextData(folders[0]) as data:
        whole, broken = (_trainer(target, data, epochs=1) for _ in range(2))
        while not whole.done:
            whole.train_step()
        for _ in range(3):
            broken.train_step()
        save_checkpoint(tmp_path, broken, {}, Meter(broken))
        broken = _trainer(target, data, epochs=1)
        assert restore_checkpoint(tmp_path, broken, {}, Meter(broken))
        while not broken.done:
            broken.train_step()
    assert whole.total_steps > 3
    wanted, found = whole.tensors(), broken.tensors()
    assert wanted.keys() == found.keys()
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Folders of a target and of a draft that resembles it."""
    base = tmp_path_factory.mktemp("pair")
    tokenizer = byte_level(chat_template=CHATML, eos="<|im_end|>")
    target = forgetful_llama(vocab=len(tokenizer))
    with torch.no_grad():
        target.lm_head.weight.mul_(4)
    save_folder(base / "big", target, tokenizer)
    save_folder(base / "small", noisy(target, 0.4), tokenizer)
    return base


@pytest.fixture
def arguments(pair, tmp_path, monkeypatch):
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    data = tmp_path / "own.txt"
    data.write_text("\n".join(f"Say {number}" for number in range(40)))
    return [
        *("distill", "--target", str(pair / "big"), "--draft", str(pair / "small")),
        *("--data", str(data), "--own-only", "--tokens", "600", "--reply-tokens", "16"),
        *("--epochs", "5", "--learning-rate", "1e-3", "--batch-tokens", "300"),
        *("--out", str(tmp_path / "out")),
    ]


def _contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_command_distils_a_draft_beside_the_original(pair, arguments, tmp_path, monkeypatch):
    flushed, renamed = [], []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: flushed.append(os.fstat(fd).st_ino) or fsync(fd))

    def watched(source, goal):
        if goal == tmp_path / "out":
            renamed.extend(path.stat().st_ino for path in source.iterdir())
            assert set(renamed) <= set(flushed)
        replace(source, goal)

    monkeypatch.setattr(os, "replace", watched)
    before = _contents(pair / "small")
    line = CommandLine()
    assert line.run(*arguments, "--json") == 0
    last = line.events()[-1]
    assert last["event"] == "finished"
    assert renamed
    assert last["length"] > last["before"] + 0.2
    assert _contents(pair / "small") == before
    distilled = LlamaForCausalLM.from_pretrained(tmp_path / "out")
    original = LlamaForCausalLM.from_pretrained(pair / "small")
    assert distilled.config.num_hidden_layers == original.config.num_hidden_layers
    assert not torch.equal(
        distilled.lm_head.weight.float(), original.lm_head.weight.to(torch.bfloat16).float()
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "out", "own.txt"]
    assert list((tmp_path / "home" / "training").rglob("checkpoint.json")) == []
    assert list((tmp_path / "home" / "training").rglob("state-*")) == []
    again = CommandLine()
    assert again.run(*arguments) == 1
    assert "There is something at" in again.complaint


def test_a_draft_of_another_vocabulary_is_refused(pair, arguments, tmp_path):
    other = save_folder(
        tmp_path / "other", None, byte_level(special=("<|im_start|>", "<|im_end|>", "<|x|>"))
    )
    line = CommandLine()
    assert line.run(*arguments, "--draft", str(other)) == 1
    assert "cannot draft for big" in line.complaint
    line = CommandLine()
    assert line.run("distill", "--target", str(pair / "big")) == 1
    assert "no draft model to distil" in line.complaint


def test_every_choice_of_text_reaches_the_target(pair, arguments):
    line = [*arguments, "--fast-text", "--lanes", "3", "--seed", "4", "--temperatures", "0.5"]
    text = request_of(build_parser().parse_args(line)).text
    assert (text.fast, text.lanes, text.seed, text.temperatures) == (True, 3, 4, (0.5,))
    assert (text.tokens, text.max_new_tokens, text.own_only) == (600, 16, True)
    assert not request_of(build_parser().parse_args(arguments)).text.fast


def test_the_result_lies_beside_the_draft_or_among_the_models(tmp_path):
    def result(draft, **more):
        load = LoadRequest(target="x")
        text = text_request(load, tmp_path / "home")
        settings = DistillSettings()
        return DistillRequest(text=text, draft=str(draft), settings=settings, **more).result

    models = tmp_path / "home" / "models"
    assert result(models / "a" / "b-q4.gguf") == models / "b-q4-distilled"
    assert result(tmp_path / "own.gguf") == tmp_path / "own-distilled"
    assert result("y", out=tmp_path / "z") == tmp_path / "z"

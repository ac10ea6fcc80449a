"""The loop of every training: numbers that go wrong, and going on with what was begun."""

import json

import pytest
import torch

from core.errors import UserError
from core.training.events import Notice
from core.training.loop import Loop
from core.training.report import Report


class Diverging:
    """A trainer whose loss is fine once."""

    step, epoch, total_steps, done = 0, 0, 100, False

    def train_step(self):
        self.step += 1
        loss = 1.0 if self.step == 1 else self.after
        return loss, (loss,), 10


def _loop(trainer, folder, emit=lambda _: None):
    return Loop(
        trainer=trainer,
        measure=lambda _: None,
        measured=None,
        batch_tokens=1,
        folder=folder,
        fixed={},
        report=Report(emit, lambda: False),
    )


@pytest.mark.parametrize("after", [float("nan"), float("inf")])
def test_a_training_that_diverges_ends_in_words_and_keeps_nothing_of_it(tmp_path, after):
    trainer = Diverging()
    trainer.after = after
    loop = _loop(trainer, tmp_path / "checkpoint")
    with pytest.raises(UserError, match="--learning-rate"):
        loop.train(resume=False)
    assert trainer.step == 2
    assert not (tmp_path / "checkpoint").exists()


class Short:
    """A trainer of three steps whose loss sinks."""

    def __init__(self):
        self.step, self.epoch, self.total_steps = 0, 0, 3

    @property
    def done(self):
        return self.step >= self.total_steps

    def train_step(self):
        self.step += 1
        return 4.0 - self.step, (4.0 - self.step,), 10

    def tensors(self):
        return {"place": torch.tensor([self.step])}

    def position(self):
        return {"step": self.step}

    def restore(self, tensors, position):
        self.step = position["step"]


@pytest.fixture
def train(tmp_path, monkeypatch):
    monkeypatch.setattr(Loop, "evaluate", lambda *_: None)

    def run(resume):
        heard = []
        loss = _loop(Short(), tmp_path / "checkpoint", heard.append).train(resume=resume)
        return loss, [event for event in heard if isinstance(event, Notice)]

    return run


def test_a_training_that_was_begun_is_not_forgotten_without_a_word(train):
    assert train(False)[1] == []
    (notice,) = train(False)[1]
    assert notice.kind == "begun-anew"
    assert "--resume" in notice.message


def test_a_training_with_nothing_to_go_on_with_says_so(train):
    (notice,) = train(True)[1]
    assert notice.kind == "nothing-to-resume"
    assert train(True)[1] == []


def test_a_training_that_is_done_already_still_knows_its_loss(train):
    loss, _ = train(False)
    assert 2.0 < loss < 4.0
    assert train(True)[0] == loss


def test_a_checkpoint_of_before_without_a_loss_can_be_gone_on_with(train, tmp_path):
    train(False)
    card = tmp_path / "checkpoint" / "checkpoint.json"
    values = json.loads(card.read_text())
    del values["position"]["loss"]
    card.write_text(json.dumps(values))
    assert train(True) == (0.0, [])

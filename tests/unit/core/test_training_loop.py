"""The loop of every training: numbers that go wrong, and going on with what was begun."""

import itertools
import json
from types import SimpleNamespace

import pytest
import torch

from core.errors import Cancelled, UserError
from core.training import meter
from core.training.events import Earlier, Progress, StageStarted, from_json, to_json
from core.training.loop import Loop
from core.training.report import Report


class Diverging:
    """A trainer whose loss is fine once."""

    step, epoch, total_steps, done = 0, 0, 100, False

    def train_step(self):
        self.step += 1
        loss = 1.0 if self.step == 1 else self.after
        return loss, (loss,), 10


def _loop(trainer, folder, emit=lambda _: None, stopped=lambda: False):
    return Loop(
        trainer=trainer,
        measure=lambda _: None,
        measured=None,
        batch_tokens=1,
        folder=folder,
        fixed={},
        report=Report(emit, stopped),
    )


@pytest.mark.parametrize("after", [float("nan"), float("inf")])
def test_a_training_that_diverges_ends_in_words_and_keeps_nothing_of_it(tmp_path, after):
    trainer = Diverging()
    trainer.after = after
    loop = _loop(trainer, tmp_path / "checkpoint")
    with pytest.raises(UserError, match="--learning-rate"):
        loop.train(anew=False)
    assert trainer.step == 2
    assert not (tmp_path / "checkpoint").exists()


class Short:
    """A trainer of twelve steps whose loss sinks from 11 to 0."""

    def __init__(self):
        self.step, self.epoch, self.total_steps = 0, 0, 12

    @property
    def done(self):
        return self.step >= self.total_steps

    def train_step(self):
        self.step += 1
        return 12.0 - self.step, (12.0 - self.step,), 10

    def tensors(self):
        return {"place": torch.tensor([self.step])}

    def position(self):
        return {"step": self.step}

    def restore(self, tensors, position):
        self.step = position["step"]


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Train ``steps`` of the steps; return the loss, and what was heard."""
    length = SimpleNamespace(length=1.5)
    monkeypatch.setattr(Loop, "evaluate", lambda *_: length)

    def run(*, anew=False, steps=99, minutes=None):
        heard = []
        trainer = Short()
        loop = _loop(trainer, tmp_path / "checkpoint", heard.append, lambda: trainer.step >= steps)
        try:
            return loop.train(anew=anew, minutes=minutes), heard
        except Cancelled:
            return None, heard

    return run


def _begun(heard):
    (begun,) = [event for event in heard if isinstance(event, StageStarted)]
    return begun.resumed, begun.detail


def test_the_same_training_goes_on_by_itself_and_begins_anew_where_it_is_told_to(train):
    assert _begun(train(steps=5)[1]) == (False, "12 steps")
    assert _begun(train(steps=7)[1]) == (True, "12 steps, 5 of them taken")
    assert _begun(train(steps=9, anew=True)[1]) == (False, "12 steps")
    assert _begun(train()[1]) == (True, "12 steps, 9 of them taken")


def test_a_training_that_goes_on_has_the_loss_and_the_curve_of_an_unbroken_one(train):
    loss, heard = train()
    assert not [event for event in heard if isinstance(event, Earlier)]
    train(anew=True, steps=5)
    again, heard = train()
    assert again == loss
    (earlier,) = [event for event in heard if isinstance(event, Earlier)]
    assert earlier.loss_steps == (1, 2, 3, 4, 5)
    assert earlier.losses[0] == 11.0
    assert earlier.length_steps == (1, 2, 3, 4, 5)
    assert earlier.lengths[0] == 1.5
    assert from_json(json.loads(json.dumps(to_json(earlier)))) == earlier


def test_the_loss_of_the_first_steps_is_their_plain_mean(train):
    _, heard = train(steps=2)
    shown = [event.loss for event in heard if isinstance(event, Progress)]
    assert shown[0] == 11.0
    _, heard = train(anew=True)
    (last,) = [e for e in heard if isinstance(e, Progress) and e.step == 12]
    assert last.loss == pytest.approx(5.5, abs=1.0)  # of 11 to 0; it began at 11


def test_a_training_that_is_done_already_still_knows_its_loss(train):
    loss, _ = train()
    assert train()[0] == loss


def test_minutes_are_kept_to_from_the_first_steps_on(train):
    _, heard = train(minutes=0.0)
    assert _begun(heard) == (False, "up to 12 steps")
    (last,) = [event for event in heard if isinstance(event, Progress)][-1:]
    assert (last.done, last.total, last.unit) == (4, 4, "steps")


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("meter", {"curve": [3]}),
        ("meter", {"curve": [[float("inf"), 1]]}),
        ("meter", {"every": 0}),
        ("meter", {"every": 1.5}),
        ("meter", {"weight": 0}),
        ("meter", {"weight": 7}),
        ("meter", {"sums": "x"}),
        ("position", {"step": "7"}),
        ("position", {"step": 2.5}),
        ("position", {"step": -5}),
        ("position", {"step": 10**30, "total_steps": 12}),
        ("position", {"total_steps": None}),
        ("position", {"place": True}),
    ],
)
def test_a_damaged_checkpoint_is_told_in_words(train, tmp_path, part, values):
    train(steps=3)
    card = tmp_path / "checkpoint" / "checkpoint.json"
    kept = json.loads(card.read_text())
    kept[part].update(values)
    card.write_text(json.dumps(kept))
    with pytest.raises(UserError, match=r"damaged.*--anew"):
        train()
    assert _begun(train(anew=True)[1]) == (False, "12 steps")


def test_a_checkpoint_that_cannot_be_read_is_not_taken_for_none(train, tmp_path):
    train(steps=3)
    (tmp_path / "checkpoint" / "checkpoint.json").write_text("")
    with pytest.raises(UserError, match="damaged"):
        train()


def test_another_number_of_losses_begins_its_means_anew(train, tmp_path):
    train(steps=3)
    card = tmp_path / "checkpoint" / "checkpoint.json"
    kept = json.loads(card.read_text())
    kept["meter"]["sums"] = [1.0]
    card.write_text(json.dumps(kept))
    assert train()[0] is not None


def test_a_long_curve_is_thinned(monkeypatch):
    monkeypatch.setattr(meter, "_POINTS", 8)
    trainer = SimpleNamespace(step=0, total_steps=100, epoch=0)
    kept = meter.Meter(trainer)
    for step in range(1, 101):
        trainer.step = step
        kept.after(float(step), (float(step),), 10)
    steps = [step for step, _ in kept.curve]
    assert len(steps) <= 8
    assert len({b - a for a, b in itertools.pairwise(steps)}) == 1

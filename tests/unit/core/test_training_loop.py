"""The loop of every training where the numbers go wrong."""

import pytest

from core.errors import UserError
from core.training.loop import Loop
from core.training.report import Report


class Diverging:
    """A trainer whose loss is fine once."""

    step, epoch, total_steps, done = 0, 0, 100, False

    def train_step(self):
        self.step += 1
        loss = 1.0 if self.step == 1 else self.after
        return loss, (loss,), 10


@pytest.mark.parametrize("after", [float("nan"), float("inf")])
def test_a_training_that_diverges_ends_in_words_and_keeps_nothing_of_it(tmp_path, after):
    trainer = Diverging()
    trainer.after = after
    loop = Loop(
        trainer=trainer,
        measure=lambda _: None,
        measured=None,
        batch_tokens=1,
        folder=tmp_path / "checkpoint",
        fixed={},
        report=Report(lambda _: None, lambda: False),
    )
    with pytest.raises(UserError, match="--learning-rate"):
        loop.train(resume=False)
    assert trainer.step == 2
    assert not (tmp_path / "checkpoint").exists()

"""Training a head: it learns, its gradients are right, and a resumed run is the unbroken one."""

import math

import pytest
import torch
import torch.nn.functional as F

from core.errors import UserError
from core.models.mtp.card import HeadKind
from core.training.acceptance import measure
from core.training.checkpoint import remove_checkpoint, restore_checkpoint, save_checkpoint
from core.training.data import TextData, coverage, frequent_tokens
from core.training.loss import chain_places, rows_of, steps_loss
from core.training.meter import Meter
from core.training.mtp import TrainSettings, step_weights
from tests.helpers.tiny import tiny_llama
from tests.helpers.training import VOCAB, make_trainer, sentences, write_text


@pytest.fixture(scope="module")
def model():
    model = tiny_llama()
    with torch.no_grad():
        model.lm_head.weight.mul_(6)  # sure of its tokens, as trained models are
    return model


@pytest.fixture(scope="module")
def text(model, tmp_path_factory):
    return write_text(model, tmp_path_factory.mktemp("text"), sentences())


@pytest.fixture
def data(text):
    with TextData(text) as opened:
        yield opened


def _measured(trainer, data, depth=3):
    with trainer.averaged():
        batches = (data.batch(part) for part in data.plan(256, None))
        return measure(trainer.head, trainer.outputs, batches, trainer.teacher, depth)


@pytest.mark.parametrize("loss", ["kl", "ce"])
def test_a_sequential_head_overfits_twenty_sentences(model, data, loss):
    trainer = make_trainer(model, data, loss=loss, epochs=80, learning_rate=8e-3, average=0.9)
    before = _measured(trainer, data)
    while not trainer.done:
        trainer.train_step()
    after = _measured(trainer, data)
    assert before.length < 1.3
    assert min(after.by_step) > 0.95
    assert after.length > 3.6
    assert after.tokens == before.tokens == 20 * 23


def test_a_parallel_head_learns_the_first_step(model, data):
    trainer = make_trainer(model, data, kind=HeadKind.PARALLEL, epochs=60, learning_rate=5e-2)
    before = _measured(trainer, data)
    while not trainer.done:
        trainer.train_step()
    assert _measured(trainer, data).by_step[0] > before.by_step[0] + 0.3


def _naive_loss(trainer, batch):
    """The same loss with every logit in memory, from the definition."""
    total = 0.0
    outputs = trainer.head.forward_steps(batch.states.float(), _embeddings(trainer, batch))
    rows = trainer.teacher.unembedding
    for step, (output, weight) in enumerate(
        zip(outputs, trainer.settings.weights, strict=True), start=1
    ):
        losses = []
        for row in range(len(batch.ids)):
            end = int(batch.mask[row].sum())
            for place in range(int(batch.starts[row]) - 1, end - step - 1):
                logits = trainer.head.logits(output[row, place], rows).log_softmax(-1)
                if trainer.teacher.kl:
                    state = batch.states[row, place + step, -32:].float()
                    goal = F.linear(state, rows).log_softmax(-1)
                    losses.append((goal.exp() * (goal - logits)).sum())
                else:
                    losses.append(-logits[batch.ids[row, place + step + 1]])
        total = total + weight * torch.stack(losses).mean()
    return total / sum(trainer.settings.weights)


def _mean(values, weights):
    return float((values * weights).sum() / weights.sum())


def _embeddings(trainer, batch):
    embedded = trainer._embed(batch.ids.flatten().tolist())
    return embedded.view(*batch.ids.shape, -1)


@pytest.mark.parametrize("loss", ["kl", "ce"])
@pytest.mark.parametrize("chunk", [7, 1000])
def test_loss_and_gradients_are_those_of_the_definition(model, data, loss, chunk, monkeypatch):
    monkeypatch.setattr("core.training.loss.CHUNK_ROWS", chunk)
    trainer = make_trainer(model, data, loss=loss)
    batch = data.batch([0, 3, 5])
    parameters = list(trainer.head.parameters())
    outputs = trainer.head.forward_steps(
        batch.states.float(),
        _embeddings(trainer, batch),
        batch.mask,
        places=chain_places(batch),
    )
    found, by_step = steps_loss(trainer.head, outputs, batch, trainer.teacher)
    gradients = torch.autograd.grad(found, parameters)
    naive = _naive_loss(trainer, batch)
    torch.testing.assert_close(found, naive.detach(), rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(gradients, torch.autograd.grad(naive, parameters), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-3, atol=1e-5)
    weights = torch.tensor(step_weights(3))
    assert found.item() == pytest.approx(_mean(by_step, weights), rel=1e-5)


def test_tokens_outside_the_vocabulary_teach_nothing_and_are_never_right(model, data):
    known = frequent_tokens(data, 12)
    trainer = make_trainer(model, data, loss="ce", vocabulary=known, epochs=3)
    while not trainer.done:
        loss, _, _ = trainer.train_step()
        assert math.isfinite(loss)
    share = coverage(data, known)
    assert 0 < share < 1
    assert _measured(trainer, data).by_step[0] <= share + 0.1


def test_rows_begin_with_the_first_token_of_the_reply_and_end_before_the_last(data):
    batch = data.batch([0, 1])
    rows = rows_of(batch, 3, chain_places(batch).shape[1])
    length = batch.ids.shape[1]
    real = int(rows.steps[0].sum())
    assert rows.steps[0, :real].all()
    assert not rows.steps[:, real:].any()
    for goal, token, steps in zip(rows.goals, rows.tokens, rows.steps.T[:real], strict=False):
        row, place = divmod(int(goal), length)
        assert token == batch.ids[row, place + 1]
        assert int(batch.starts[row]) <= place < int(batch.mask[row].sum()) - 1
        allowed = place - int(batch.starts[row]) + 1
        assert steps.tolist() == [step <= allowed for step in (1, 2, 3)]


def test_batches_have_few_shapes_and_so_have_the_rows_of_their_losses(data):
    """Every other shape would keep machine code of its own in memory."""
    for part in data.plan(120, None) + data.plan(400, 0):
        batch = data.batch(part)
        rows = rows_of(batch, 3, chain_places(batch).shape[1])
        for size in (batch.ids.shape[1], chain_places(batch).shape[1], len(rows.goals)):
            assert size % 32 == 0


def test_batches_hold_every_sequence_once_and_little_padding(data):
    for seed in (None, 0, 1):
        plan = data.plan(120, seed)
        assert sorted(index for batch in plan for index in batch) == list(range(len(data)))
        for part in plan:
            assert len(part) == 1 or len(part) * max(data.lengths[i] for i in part) <= 120
    assert data.plan(120, 0) == data.plan(120, 0) != data.plan(120, 1)


def test_the_vocabulary_is_what_replies_use_most(data):
    replies = [
        token
        for index in range(len(data))
        for token in data.ids(index)[data.prompt_lengths[index] :].tolist()
    ]
    chosen = frequent_tokens(data, 5, always=(250,))
    assert 250 in chosen
    assert all(replies.count(chosen[1]) >= replies.count(token) for token in range(VOCAB))
    assert coverage(data, range(VOCAB)) == 1.0
    assert coverage(data, chosen) == pytest.approx(
        sum(token in chosen for token in replies) / len(replies)
    )


@pytest.mark.parametrize("stops", [(3,), (1, 2, 9, 10)])
def test_a_resumed_run_has_the_weights_of_an_unbroken_one(model, data, tmp_path, stops):
    def fresh():
        return make_trainer(model, data, epochs=6, noise=0.1, seed=5)

    whole = fresh()
    while not whole.done:
        whole.train_step()
    assert whole.total_steps > 10
    broken = fresh()
    for stop in (*stops, whole.total_steps):
        while broken.step < stop:
            broken.train_step()
        save_checkpoint(tmp_path, broken, {"a": 1}, Meter(broken))
        broken = fresh()
        assert restore_checkpoint(tmp_path, broken, {"a": 1}, Meter(broken))
    assert broken.done
    mine, theirs = broken.tensors(), whole.tensors()
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".safetensors"}
    assert len(list(tmp_path.iterdir())) == 2


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_refused(model, data, tmp_path):
    trainer = make_trainer(model, data)
    meter = Meter(trainer)
    assert not restore_checkpoint(tmp_path, trainer, {}, meter)
    path = save_checkpoint(tmp_path, trainer, {"seed": 1}, meter)
    with pytest.raises(UserError, match="other choices"):
        restore_checkpoint(tmp_path, trainer, {"seed": 2}, meter)
    content = path.read_bytes()
    for damaged in (content[:-4], b"\xff" * len(content)):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match="damaged"):
            restore_checkpoint(tmp_path, trainer, {"seed": 1}, meter)
    remove_checkpoint(tmp_path)
    assert not restore_checkpoint(tmp_path, trainer, {"seed": 1}, meter)
    assert not list(tmp_path.iterdir())


def test_the_learning_rate_rises_and_falls(model, data):
    trainer = make_trainer(model, data, epochs=50, warm_up_steps=10)
    rates = [trainer.learning_rate(step) for step in range(trainer.total_steps)]
    top = rates.index(max(rates))
    assert top == 10
    assert rates[:11] == sorted(rates[:11])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] < 0.1 * max(rates)


@pytest.mark.parametrize(
    "wrong", [{"epochs": -1}, {"noise": 2}, {"loss": "mse"}, {"weights": ()}, {"weights": (-1.0,)}]
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(UserError):
        TrainSettings(**{"weights": (1.0,), **wrong})

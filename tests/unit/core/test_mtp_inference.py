"""Heads at work compute what they were trained to compute."""

import pytest
import torch

from core.errors import UserError
from core.models.lean.runner import LeanRunner
from core.models.mtp.card import HeadKind
from core.models.mtp.inference import ParallelRunner, SequentialRunner, make_head_runner
from core.models.runner import EagerRunner
from tests.helpers.heads import lean_model, random_head
from tests.helpers.tiny import VOCAB, tiny_llama

IDS = (5, 9, 200, 3, 77, 41, 8, 120)
CLOSE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.fixture
def host():
    return EagerRunner(tiny_llama())


def _states(host, layers=(1, 2)):
    host.keep_states(layers)
    host.forward(IDS, 1)
    return host.states


def _trained(head, host, states):
    """The outputs [depth, length, hidden] of the forward pass for training."""
    with torch.no_grad():
        outputs = head.forward_steps(states[None], host.embed(IDS)[None], depth=3)
    return torch.stack(outputs)[:, 0]


@torch.no_grad()
@pytest.mark.parametrize("chunks", [[5], [1, 1, 1, 1, 1], [2, 3]])
def test_drafting_gives_the_outputs_of_training(host, chunks):
    head = random_head(host)
    states = _states(host)
    runner = make_head_runner(head, host, VOCAB)
    assert isinstance(runner, SequentialRunner)
    done = 0
    for rows in chunks:
        following = host.embed(IDS[done + 1 : done + rows + 1])
        output = runner.absorb(states[done : done + rows], following)
        done += rows
    trained = _trained(head, host, states)[:, done - 1]
    torch.testing.assert_close(output[0], trained[0], **CLOSE)
    for step in (1, 2):
        output = runner.advance(output, host.embed([IDS[done + step]]))
        torch.testing.assert_close(output[0], trained[step], **CLOSE)
    unembedding = host.unembedding(range(VOCAB))
    torch.testing.assert_close(
        runner.logits(output)[0], head.logits(trained[2], unembedding), **CLOSE
    )


@torch.no_grad()
def test_a_chain_that_was_dropped_leaves_no_trace(host):
    head = random_head(host)
    states = _states(host)
    runner = make_head_runner(head, host, VOCAB)
    output = runner.absorb(states[:3], host.embed(IDS[1:4]))
    for token in (250, 251):
        output = runner.advance(output, host.embed([token]))
    runner.crop(3)
    output = runner.absorb(states[3:6], host.embed(IDS[4:7]))
    torch.testing.assert_close(output[0], _trained(head, host, states)[0, 5], **CLOSE)


@torch.no_grad()
def test_the_cache_grows_past_its_first_size(host):
    head = random_head(host)
    states = _states(host)
    runner, small = make_head_runner(head, host, VOCAB), make_head_runner(head, host, VOCAB)
    small._capacity = 0
    small._reserve(2)
    for rows in ((0, 2), (2, 3), (3, 7)):
        following = host.embed(IDS[rows[0] + 1 : rows[1] + 1])
        one, two = (r.absorb(states[slice(*rows)], following) for r in (runner, small))
        torch.testing.assert_close(one, two)
    assert small._capacity >= 7


@torch.no_grad()
def test_a_parallel_head_at_work_gives_the_outputs_of_training(host):
    head = random_head(host, kind=HeadKind.PARALLEL)
    states = _states(host, (2,))
    runner = make_head_runner(head, host, VOCAB)
    assert isinstance(runner, ParallelRunner)
    trained = head.logits(_trained(head, host, states)[:, 4], host.unembedding(range(VOCAB)))
    for count in (1, 3):
        torch.testing.assert_close(runner.logits(states[4:5], count), trained[:count], **CLOSE)


@torch.no_grad()
@pytest.mark.parametrize("kind", HeadKind)
def test_logits_are_those_of_the_heads_own_tokens(host, kind):
    vocabulary = (77, 3, 255, 8)
    head = random_head(host, kind=kind, vocabulary=vocabulary)
    full = random_head(host, kind=kind)
    results = []
    for one in (head, full):
        runner = make_head_runner(one, host, VOCAB)
        states = _states(host, one.card.state_layers)
        if isinstance(runner, SequentialRunner):
            results.append(runner.logits(runner.absorb(states[:3], host.embed(IDS[1:4]))))
        else:
            results.append(runner.logits(states[:1], 2))
        host.crop(0)
    torch.testing.assert_close(results[0], results[1][:, list(vocabulary)], **CLOSE)


def test_tokens_that_the_pair_does_not_use_are_left_out(host):
    runner = make_head_runner(random_head(host, vocabulary=(255, 3, 200)), host, 201)
    assert runner.vocabulary.ids.tolist() == [3, 200]
    with pytest.raises(UserError, match="none of the tokens"):
        make_head_runner(random_head(host, vocabulary=(255,)), host, 201)


@torch.no_grad()
@pytest.mark.parametrize("kind", HeadKind)
def test_beside_a_host_in_int8_a_head_runs_in_int8_and_says_nearly_the_same(tmp_path, kind):
    host = LeanRunner(lean_model(tiny_llama(), tmp_path))
    head = random_head(host, kind=kind)
    runner = make_head_runner(head, host, VOCAB)
    states = _states(host, head.card.state_layers)
    trained = head.logits(_trained(head, host, states), host.unembedding(range(VOCAB)))
    if isinstance(runner, SequentialRunner):
        logits = runner.logits(runner.absorb(states[:5], host.embed(IDS[1:6])))[0]
        trained = trained[0, 4]
    else:
        logits, trained = runner.logits(states[4:5], 3), trained[:, 4]
    error = (logits - trained).norm() / trained.norm()
    assert 0 < float(error) < 0.06

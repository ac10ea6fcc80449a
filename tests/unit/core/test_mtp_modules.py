"""The trainable heads: what each output sees, and what it begins as."""

import pytest
import torch

from core.models.mtp.card import HeadKind
from core.models.mtp.host import describe_host, host_fingerprint
from core.models.mtp.modules import make_head
from core.models.runner import EagerRunner
from tests.helpers.heads import forgetful_llama, head_card, perfect_head, random_head
from tests.helpers.tiny import noisy, tiny_llama

LENGTH = 7


@pytest.fixture
def host():
    return EagerRunner(tiny_llama())


def _inputs(head, seed=0, batch=2):
    generator = torch.Generator().manual_seed(seed)
    hidden = head.card.host.hidden
    states = torch.randn(batch, LENGTH, head.card.state_width, generator=generator)
    return states, torch.randn(batch, LENGTH, hidden, generator=generator)


@torch.no_grad()
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_sequential_output_sees_the_past_and_its_own_chain_alone(host, step):
    head = random_head(host)
    states, embeddings = _inputs(head)
    output = head.forward_steps(states, embeddings)[step - 1]
    for place in range(LENGTH):
        changed_states, changed_embeddings = states.clone(), embeddings.clone()
        changed_states[:, place] += 1.0
        by_state = head.forward_steps(changed_states, embeddings)[step - 1]
        seen = (by_state != output).any(-1).all(0).tolist()
        # The states of a position count for it and all later ones.
        assert seen == [start >= place for start in range(LENGTH)]
        changed_embeddings[:, place] += 1.0
        by_token = head.forward_steps(states, changed_embeddings)[step - 1]
        seen = (by_token != output).any(-1).all(0).tolist()
        # So does a token, from ``step`` positions before it on; the very first is never read.
        assert seen == [0 < place <= start + step for start in range(LENGTH)]


@torch.no_grad()
def test_padding_changes_nothing_on_either_side(host):
    head = random_head(host)
    states, embeddings = _inputs(head, batch=1)
    mask = torch.ones(1, LENGTH, dtype=torch.bool)
    mask[:, -2:] = False
    whole = head.forward_steps(states, embeddings, mask)
    states[:, -2:] = 7.0
    other = head.forward_steps(states, embeddings, mask)
    for one, two in zip(whole, other, strict=True):
        torch.testing.assert_close(one[:, :-2], two[:, :-2])
    mask = torch.ones(1, LENGTH, dtype=torch.bool)
    mask[:, :2] = False
    whole = head.forward_steps(states, embeddings, mask)
    states[:, :2] = 7.0
    other = head.forward_steps(states, embeddings, mask)
    for one, two in zip(whole, other, strict=True):
        torch.testing.assert_close(one[:, 2:], two[:, 2:])
        assert torch.isfinite(one).all()


@pytest.mark.parametrize("kind", list(HeadKind))
def test_outputs_at_some_places_are_those_of_all_places(host, kind):
    head = random_head(host, kind=kind)
    states, embeddings = _inputs(head)
    places = torch.tensor([[2, 3, 4], [4, 5, 6]])
    whole = head.forward_steps(states, embeddings)
    some = head.forward_steps(states, embeddings, places=places)
    for every, chosen in zip(whole, some, strict=True):
        wanted = torch.stack([every[0, places[0]], every[1, places[1]]])
        torch.testing.assert_close(chosen, wanted, rtol=1e-4, atol=1e-4)


def test_more_steps_than_tokens_give_outputs_all_the_same(host):
    head = random_head(host)
    states, embeddings = _inputs(head)
    outputs = head.forward_steps(states[:, :2], embeddings[:, :2], depth=5)
    assert [tuple(output.shape) for output in outputs] == [(2, 2, 32)] * 5


def test_every_weight_learns(host):
    for kind in HeadKind:
        head = random_head(host, kind=kind)
        outputs = head.forward_steps(*_inputs(head))
        logits = head.logits(torch.stack(outputs), torch.randn(9, 32))
        logits.square().sum().backward()
        for name, parameter in head.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name


def test_heads_run_in_bfloat16(host):
    for kind in HeadKind:
        head = random_head(host, kind=kind).bfloat16()
        states, embeddings = _inputs(head)
        for output in head.forward_steps(states.bfloat16(), embeddings.bfloat16()):
            assert output.dtype == torch.bfloat16


@torch.no_grad()
def test_an_untrained_parallel_head_is_the_hosts_own_head():
    model = tiny_llama()
    host = EagerRunner(model)
    host.keep_states((2,))
    logits = host.forward([5, 9, 200], 3)
    head = make_head(head_card(kind=HeadKind.PARALLEL, host=describe_host(host)))
    for output in head.forward_steps(host.states):
        torch.testing.assert_close(head.logits(output, model.lm_head.weight), logits)


def test_a_parallel_head_ends_at_its_depth(host):
    head = random_head(host, kind=HeadKind.PARALLEL, depth=2)
    assert len(head.forward_steps(_inputs(head)[0])) == 2
    with pytest.raises(ValueError, match="2 positions"):
        head.forward_steps(_inputs(head)[0], depth=3)


@torch.no_grad()
def test_a_head_can_know_exactly_what_a_forgetful_host_says():
    model = forgetful_llama()
    host = EagerRunner(model)
    ids = [5, 9, 200, 3, 77]
    host.keep_states((1, 2))
    logits = host.forward(ids, len(ids))
    head = perfect_head(model)
    outputs = head.forward_steps(host.states[None], host.embed(ids)[None])
    for step, output in enumerate(outputs, start=1):
        drafted = head.logits(output[0], model.lm_head.weight)
        torch.testing.assert_close(drafted[: len(ids) - step], logits[step:])


def test_the_same_card_makes_the_same_head():
    states = [make_head(head_card(seed=seed)).state_dict() for seed in (3, 3, 4)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not torch.equal(states[0]["fuse.weight"], states[2]["fuse.weight"])


def test_a_fingerprint_tells_models_of_one_shape_apart_and_not_precisions():
    model = tiny_llama()
    own = host_fingerprint(EagerRunner(model))
    assert host_fingerprint(EagerRunner(tiny_llama())) == own
    assert host_fingerprint(EagerRunner(tiny_llama(seed=1))) != own
    assert host_fingerprint(EagerRunner(noisy(model))) != own
    assert host_fingerprint(EagerRunner(tiny_llama().bfloat16())) == own

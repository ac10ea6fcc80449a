"""Whatever a head drafts, a greedy reply is the plain one."""

import pytest
import torch

from core.engine import Engine
from core.errors import UserError
from core.models.mtp.card import HeadKind
from core.models.runners import make_runner
from tests.helpers.heads import forgetful_llama, lean_model, perfect_head, random_head
from tests.helpers.tiny import (
    anti,
    byte_tokenizer,
    finished,
    ids,
    noisy,
    request,
    rounds,
    run,
    tiny_llama,
)

PROMPTS = ((1, 2, 3, 4, 5), (7,), tuple(range(100, 180)))


@pytest.fixture(scope="module", params=["eager", "lean"])
def target(request, tmp_path_factory):
    model = tiny_llama()
    if request.param == "lean":
        return lean_model(model, tmp_path_factory.mktemp("target"))
    return model


@pytest.fixture(scope="module")
def plain(target):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    return {
        prompt: ids(run(engine, request(prompt, drafter="off", max_new_tokens=24)))
        for prompt in PROMPTS
    }


def _check(engine, plain, drafter, gammas):
    """Ask one engine for everything in turn, as a conversation that keeps changing would."""
    for gamma in gammas:
        for prompt, expected in plain.items():
            wanted = request(prompt, drafter=drafter, gamma=gamma, max_new_tokens=24)
            assert ids(run(engine, wanted)) == expected


@pytest.mark.parametrize("kind", HeadKind)
@pytest.mark.parametrize("drafter", ["mtp", "hybrid"])
def test_random_heads_on_the_target_change_nothing(target, plain, kind, drafter):
    head = random_head(make_runner(target), kind=kind, vocabulary=range(0, 256, 3))
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), head=head)
    _check(engine, plain, drafter, [1, 2, 3, 5, 8, "auto"])


@pytest.mark.parametrize("kind", HeadKind)
@pytest.mark.parametrize("drafter", ["mtp", "hybrid"])
def test_random_heads_on_a_draft_model_change_nothing(target, plain, kind, drafter):
    draft = noisy(tiny_llama())
    head = random_head(make_runner(draft), kind=kind)
    engine = Engine.from_parts(target=target, draft=draft, tokenizer=byte_tokenizer(), head=head)
    _check(engine, plain, drafter, [1, 2, 5, "auto"])


@pytest.mark.parametrize("kind", HeadKind)
def test_replies_of_every_drafter_in_turn_are_the_same(target, plain, kind):
    draft = noisy(tiny_llama())
    head = random_head(make_runner(target), kind=kind)
    engine = Engine.from_parts(target=target, draft=draft, tokenizer=byte_tokenizer(), head=head)
    for drafter in ("model", "mtp", "off", "hybrid", "mtp", "ngram", "mtp"):
        _check(engine, plain, drafter, [3])


def test_a_head_that_is_always_right_is_always_accepted():
    target = forgetful_llama()
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), head=perfect_head(target))
    expected = ids(run(engine, request(drafter="off")))
    for gamma in (3, 7):
        events = run(engine, request(drafter="mtp", gamma=gamma))
        assert ids(events) == expected
        assert all(r.accepted == r.proposed > 0 for r in rounds(events))
        assert finished(events).metrics.rounds == -(-32 // (gamma + 1))


def test_a_head_that_is_always_wrong_is_never_accepted():
    target = forgetful_llama()
    head = perfect_head(target)
    with torch.no_grad():
        head.final_norm.neg_()
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), head=head)
    expected = ids(run(engine, request(drafter="off")))
    events = run(engine, request(drafter="mtp", gamma=3))
    assert ids(events) == expected
    assert sum(r.accepted for r in rounds(events)) == 0


def test_a_right_head_on_a_wrong_draft_model_changes_nothing():
    target = forgetful_llama()
    draft = anti(target)
    engine = Engine.from_parts(
        target=target, draft=draft, tokenizer=byte_tokenizer(), head=perfect_head(draft)
    )
    events = run(engine, request(drafter="mtp", gamma=4))
    assert ids(events) == ids(run(engine, request(drafter="off")))
    assert engine.loaded.head == "sequential on LlamaForCausalLM"


def test_a_right_head_on_a_right_draft_model_saves_its_passes():
    target = forgetful_llama()
    draft = noisy(target, scale=1e-6)
    head = perfect_head(draft)
    engine = Engine.from_parts(target=target, draft=draft, tokenizer=byte_tokenizer(), head=head)
    passes = []
    feed = engine._parts.draft.cache.runner.forward
    engine._parts.draft.cache.runner.forward = lambda ids, rows: (
        passes.append(len(ids)) or feed(ids, rows)
    )
    events = run(engine, request(drafter="mtp", gamma=4))
    assert all(r.accepted == r.proposed > 0 for r in rounds(events))
    # One for the prompt, and one a round.
    assert len(passes) == 1 + len(rounds(events))


def test_a_head_for_another_model_is_refused(target):
    head = random_head(make_runner(tiny_llama(seed=5)))
    with pytest.raises(UserError, match="another model"):
        Engine.from_parts(target=target, tokenizer=byte_tokenizer(), head=head)


def test_without_a_head_mtp_says_why_it_is_off(target):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    events = run(engine, request(drafter="mtp"))
    (notice,) = [event for event in events if getattr(event, "kind", "") == "speculation-off"]
    assert "no head was trained for this model" in notice.message
    assert engine.loaded.head is None

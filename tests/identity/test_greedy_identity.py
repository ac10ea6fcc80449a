"""Greedy speculative ids equal plain ids in float32, whatever drafts and however far ahead."""

import pytest

from core.engine import Engine
from core.events import Origin
from tests.helpers import tiny
from tests.helpers.tiny import byte_tokenizer, ids, request, rounds, run, tokens

GAMMAS = range(9)
PROMPT = (1, 2, 3, 4, 5, 1, 2, 3)


@pytest.fixture(scope="module")
def target():
    return tiny.tiny_llama()


@pytest.fixture(scope="module")
def plain_ids(target):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    return ids(run(engine, request(PROMPT, drafter="off", max_new_tokens=48)))


@pytest.fixture(scope="module")
def drafts(target):
    return {
        "oracle": target,
        "noisy": tiny.noisy(target),
        "anti": tiny.anti(target),
        "unrelated": tiny.tiny_llama(seed=5),
    }


def test_the_plain_path_equals_transformers_generate(target, plain_ids):
    import torch

    prompt = torch.tensor([PROMPT])
    reference = target.generate(prompt, max_new_tokens=48, do_sample=False)
    assert plain_ids == reference[0, len(PROMPT) :].tolist()


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("name", ["oracle", "noisy", "anti", "unrelated"])
@pytest.mark.parametrize("drafter", ["model", "hybrid"])
def test_a_draft_model_does_not_change_the_reply(target, plain_ids, drafts, drafter, name, gamma):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=drafts[name])
    events = run(engine, request(PROMPT, drafter=drafter, gamma=gamma, max_new_tokens=48))
    assert ids(events) == plain_ids


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("drafter", ["ngram", "hybrid", "off", "model"])
def test_without_a_draft_model_no_drafter_changes_the_reply(target, plain_ids, drafter, gamma):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    events = run(engine, request(PROMPT, drafter=drafter, gamma=gamma, max_new_tokens=48))
    assert ids(events) == plain_ids


def test_an_oracle_draft_is_always_accepted(target):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=target)
    events = run(engine, request(PROMPT, gamma=4, max_new_tokens=50))
    assert all(round_.accepted == round_.proposed for round_ in rounds(events))
    assert sum(round_.proposed for round_ in rounds(events)) == 40


def test_an_anti_draft_is_never_accepted_at_temperature_zero(target):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=tiny.anti(target))
    events = run(engine, request(PROMPT, gamma=4, max_new_tokens=20))
    assert sum(round_.accepted for round_ in rounds(events)) == 0
    assert {token.origin for token in tokens(events)} <= {Origin.RESAMPLED, Origin.PLAIN}


@pytest.mark.parametrize("name", ["oracle", "anti"])
def test_a_prompt_of_one_token_equals_plain(target, drafts, name):
    plain = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    expected = ids(run(plain, request((7,), drafter="off")))
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=drafts[name])
    assert ids(run(engine, request((7,), gamma=5))) == expected


@pytest.mark.parametrize("gamma", [1, 4, 8])
@pytest.mark.parametrize(
    "penalties",
    [
        {"repetition_penalty": 1.3},
        {"presence_penalty": 0.8},
        {"frequency_penalty": 0.5},
        {"repetition_penalty": 1.2, "presence_penalty": 0.4, "frequency_penalty": 0.3},
    ],
)
def test_penalties_inside_a_round_equal_plain(target, drafts, penalties, gamma):
    prompt = (9, 9, 8, 9, 9, 8, 9, 9, 8)
    plain = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    expected = ids(run(plain, request(prompt, drafter="off", **penalties)))
    for name in ("oracle", "noisy"):
        engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=drafts[name])
        assert ids(run(engine, request(prompt, gamma=gamma, **penalties))) == expected


@pytest.mark.parametrize("gamma", [1, 5, 8])
def test_sliding_windows_equal_plain_as_target_and_as_draft(target, gamma):
    windowed = tiny.sliding()
    prompt = (1, 2, 3, 4, 5, 6)
    plain = Engine.from_parts(target=windowed, tokenizer=byte_tokenizer())
    expected = ids(run(plain, request(prompt, drafter="off", max_new_tokens=40)))
    for draft in (windowed, tiny.noisy(windowed), target):
        engine = Engine.from_parts(target=windowed, tokenizer=byte_tokenizer(), draft=draft)
        for _ in range(2):
            events = run(engine, request(prompt, gamma=gamma, max_new_tokens=40))
            assert ids(events) == expected
    full = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    expected = ids(run(full, request(prompt, drafter="off", max_new_tokens=40)))
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=windowed)
    assert ids(run(engine, request(prompt, gamma=gamma, max_new_tokens=40))) == expected


@pytest.mark.parametrize("gamma", [0, 3, 8])
def test_a_padded_vocabulary_changes_nothing_either_way_round(target, plain_ids, gamma):
    padded = tiny.wide(target)
    for one, other in ((target, padded), (padded, target)):
        engine = Engine.from_parts(target=one, tokenizer=byte_tokenizer(), draft=other)
        events = run(engine, request(PROMPT, gamma=gamma, max_new_tokens=48))
        assert ids(events) == plain_ids


@pytest.mark.parametrize("gamma", GAMMAS)
def test_scripted_drafts_right_at_first_and_wrong_after_equal_plain(target, plain_ids, gamma):
    proposals, done = [], 0
    while done < 48:
        right = len(proposals) % (gamma + 1)
        proposal = plain_ids[done : done + right]
        if done + right < 48 and len(proposal) < gamma:
            proposal = [*proposal, (plain_ids[done + right] + 1) % tiny.VOCAB]
        proposals.append(proposal)
        done += right + 1
    drafter = tiny.ScriptedDrafter(proposals)
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), drafter=drafter)
    events = run(engine, request(PROMPT, gamma=gamma, max_new_tokens=48))
    assert ids(events) == plain_ids

"""Heads as drafters: what they propose, and that the text is the plain one whatever it is."""

import pytest
import torch

from core.decoding.gamma import FixedGamma
from core.decoding.sampling import Sampler
from core.drafting.base import DraftContext
from core.drafting.model import ModelDrafter
from core.drafting.mtp import MtpDrafter
from core.models.cache import TokenCache
from core.models.lean.runner import LeanRunner
from core.models.mtp.card import HeadKind
from core.models.mtp.inference import make_head_runner
from core.models.runner import EagerRunner
from core.requests import SamplingParams
from tests.helpers.heads import forgetful_llama, lean_model, perfect_head, random_head
from tests.helpers.tiny import VOCAB, tiny_llama

IDS = [5, 9, 200, 3, 77, 41, 8, 120]


def _context(ids, *, stop_ids=frozenset(), **sampling):
    sampler = Sampler(SamplingParams(**sampling), vocab_size=VOCAB, prompt_ids=ids)
    return DraftContext(
        ids,
        prompt_length=len(ids),
        sampler=sampler,
        gamma=FixedGamma(16),
        stop_ids=stop_ids,
    )


def _on_target(head, host):
    """A drafter on a target that has read all of IDS but the newest."""
    cache = TokenCache(host)
    drafter = MtpDrafter(make_head_runner(head, host, VOCAB), cache, vocab_size=VOCAB)
    return drafter, cache


def _follow(cache, ids):
    cache.keep_prefix_of(ids)
    if len(ids) - 1 > len(cache):
        cache.feed(ids[len(cache) : len(ids) - 1], 1)


@pytest.mark.parametrize("vocabulary", [None, tuple(range(100, 256))])
def test_a_head_proposes_what_it_says_token_by_token(vocabulary):
    model = tiny_llama()
    host = EagerRunner(model)
    head = random_head(host, vocabulary=vocabulary)
    drafter, cache = _on_target(head, host)
    _follow(cache, IDS)
    draft = drafter.propose(_context(IDS), 4)
    ids = list(IDS)
    with torch.no_grad():
        for token in draft.ids:
            place = len(IDS) - 2
            step = len(ids) - len(IDS) + 1
            fresh = EagerRunner(model)
            fresh.keep_states((1, 2))
            fresh.forward(ids, 1)
            outputs = head.forward_steps(fresh.states[None], host.embed(ids)[None], depth=step)
            logits = head.logits(outputs[-1][0, place], model.lm_head.weight)
            known = list(vocabulary or range(VOCAB))
            assert token == known[int(logits[known].argmax())]
            ids.append(token)
    assert draft.source == "mtp"
    assert draft.probs is None
    assert len(draft.ids) == len(draft.confidence) == draft.steps == 4


@pytest.mark.parametrize("chunk", [3, 256])
def test_what_a_head_read_is_rebuilt_from_true_tokens(monkeypatch, chunk):
    monkeypatch.setattr("core.drafting.mtp.PREFILL_CHUNK", chunk)
    host = EagerRunner(tiny_llama())
    head = random_head(host)
    drafter, cache = _on_target(head, host)
    changing = [IDS[:3], IDS[:4], [*IDS[:3], 7, 8, 9], [*IDS[:3], 7, 30], [1, 2], IDS, IDS[:5], IDS]
    for ids in changing:
        _follow(cache, ids)
        drafter.reset()
        draft = drafter.propose(_context(list(ids)), 4)
        fresh, its_cache = _on_target(head, EagerRunner(tiny_llama()))
        _follow(its_cache, ids)
        expected = fresh.propose(_context(list(ids)), 4)
        assert draft.ids == expected.ids
        assert draft.confidence == pytest.approx(expected.confidence, abs=1e-4)


def test_a_growing_reply_needs_no_reset():
    host = EagerRunner(tiny_llama())
    head = random_head(host)
    drafter, cache = _on_target(head, host)
    ids = list(IDS)
    context = _context(ids)
    for more in ([], [3], [1, 2, 3], [9]):
        ids.extend(more)
        _follow(cache, ids)
        draft = drafter.propose(context, 3)
        fresh, its_cache = _on_target(head, EagerRunner(tiny_llama()))
        _follow(its_cache, ids)
        assert draft.ids == fresh.propose(_context(list(ids)), 3).ids


def test_a_perfect_head_proposes_what_the_target_would_say():
    model = forgetful_llama()
    drafter, cache = _on_target(perfect_head(model), EagerRunner(model))
    _follow(cache, IDS)
    draft = drafter.propose(_context(IDS), 6)
    plain = EagerRunner(model)
    logits, said = plain.forward(IDS, 1), []
    for _ in range(6):
        said.append(int(logits.argmax()))
        logits = plain.forward(said[-1:], 1)
    assert list(draft.ids) == said


def test_a_sampled_proposal_says_what_it_was_drawn_from():
    model = forgetful_llama()
    vocabulary = tuple(range(0, 256, 2))
    drafter, cache = _on_target(perfect_head(model, vocabulary), EagerRunner(model))
    _follow(cache, IDS)
    context = _context(IDS, temperature=1.5, top_k=20, repetition_penalty=1.3, seed=1)
    draft = drafter.propose(context, 3)
    assert draft.probs.shape == (3, VOCAB)
    sampler = Sampler(context.sampler.params, vocab_size=VOCAB, prompt_ids=IDS)
    for place in range(3):
        drafted = list(draft.ids[:place])
        logits = EagerRunner(model).forward([*IDS, *drafted], 1)
        only = torch.full_like(logits, float("-inf"))
        only[:, list(vocabulary)] = logits[:, list(vocabulary)]
        expected = sampler.draft_probs(only, drafted)[0]
        torch.testing.assert_close(draft.probs[place], expected, atol=1e-5, rtol=1e-4)
        assert draft.probs[place, draft.ids[place]] > 0


def test_parallel_heads_end_at_their_depth_and_take_one_step():
    host = EagerRunner(tiny_llama())
    head = random_head(host, kind=HeadKind.PARALLEL, depth=3)
    drafter, cache = _on_target(head, host)
    _follow(cache, IDS)
    draft = drafter.propose(_context(IDS), 8)
    with torch.no_grad():
        outputs = head.forward_steps(cache.states(len(IDS) - 2))
        said = [int(head.logits(o, host.unembedding(range(VOCAB))).argmax()) for o in outputs]
    assert list(draft.ids) == said
    assert draft.steps == 1
    assert draft.fixed_ms > 0
    assert len(drafter.propose(_context(IDS), 2).ids) == 2


@pytest.mark.parametrize("kind", HeadKind)
def test_on_a_draft_model_the_model_gives_the_first_token_and_the_head_the_others(kind):
    small = forgetful_llama() if kind == HeadKind.SEQUENTIAL else tiny_llama()
    runner = EagerRunner(small)
    sequential = kind == HeadKind.SEQUENTIAL
    head = perfect_head(small) if sequential else random_head(runner, kind=kind, depth=3)
    model = ModelDrafter(runner)
    head_runner = make_head_runner(head, runner, VOCAB)
    drafter = MtpDrafter(head_runner, model.cache, vocab_size=VOCAB, model=model)
    for ids in (IDS, IDS[:4], [*IDS, 3], IDS[:1]):
        drafter.reset()
        draft = drafter.propose(_context(list(ids)), 4)
        plain = EagerRunner(small)
        plain.keep_states((2,))
        logits, said = plain.forward(ids, 1), []
        if sequential:
            for _ in range(4):
                said.append(int(logits.argmax()))
                logits = plain.forward(said[-1:], 1)
        else:
            said.append(int(logits.argmax()))
            with torch.no_grad():
                for output in head.forward_steps(plain.states[-1:]):
                    logits = head.logits(output, runner.unembedding(range(VOCAB)))
                    said.append(int(logits.argmax()))
        assert list(draft.ids) == said
        assert draft.steps == (4 if sequential else 2)
        assert draft.fixed_ms > 0
    assert len(drafter.propose(_context(IDS), 1).ids) == 1


def test_a_proposal_ends_at_what_ends_the_reply():
    host = EagerRunner(tiny_llama())
    for kind in HeadKind:
        drafter, cache = _on_target(random_head(host, kind=kind), host)
        _follow(cache, IDS)
        second = drafter.propose(_context(IDS), 3).ids[1]
        draft = drafter.propose(_context(IDS, stop_ids=frozenset({second})), 3)
        assert draft.ids[-1] == second
        assert len(draft.ids) <= 2
        cache.clear()


def test_a_head_has_nothing_to_say_of_what_the_target_has_not_read():
    host = EagerRunner(tiny_llama())
    drafter, cache = _on_target(random_head(host), host)
    _follow(cache, IDS[:-2])
    assert drafter.propose(_context(IDS), 4) is None


def test_a_head_has_nothing_to_say_after_a_single_token():
    host = EagerRunner(tiny_llama())
    for kind in HeadKind:
        drafter, _ = _on_target(random_head(host, kind=kind), host)
        assert drafter.propose(_context([5]), 4) is None
        assert list(drafter.prefill([], lambda: False)) == []


@pytest.mark.parametrize("kind", HeadKind)
def test_a_head_that_gives_no_numbers_stops_with_a_notice(kind):
    host = EagerRunner(tiny_llama())
    head = random_head(host, kind=kind)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.fill_(float("nan"))
    drafter, cache = _on_target(head, host)
    _follow(cache, IDS)
    assert drafter.propose(_context(IDS), 4).ids == ()
    assert drafter.take_notice().kind == "draft-broken"
    assert drafter.take_notice() is None
    assert drafter.propose(_context(IDS), 4) is None


def test_a_prompt_is_read_in_chunks_and_not_again(monkeypatch):
    monkeypatch.setattr("core.drafting.mtp.PREFILL_CHUNK", 3)
    host = EagerRunner(tiny_llama())
    head = random_head(host)
    drafter, cache = _on_target(head, host)
    _follow(cache, IDS)
    assert list(drafter.prefill(IDS[:-1], lambda: False)) == [3, 6]
    assert list(drafter.prefill(IDS[:-1], lambda: True)) == [6]
    asked = []
    embed = host.embed
    monkeypatch.setattr(host, "embed", lambda ids: asked.append(len(ids)) or embed(ids))
    drafter.propose(_context(IDS), 2)
    assert asked == [1, 1]
    drafter.clear()
    _follow(cache, IDS)
    drafter.propose(_context(IDS), 1)
    assert asked[2:] == [3, 3, 1]


def test_beside_a_target_in_int8_the_proposals_are_nearly_always_the_same(tmp_path):
    model = forgetful_llama()
    host = LeanRunner(lean_model(model, tmp_path))
    drafter, cache = _on_target(perfect_head(model), host)
    same = 0
    for token in range(0, 250, 25):
        ids = [*IDS, token]
        _follow(cache, ids)
        drafter.reset()
        drafted = drafter.propose(_context(ids), 1).ids[0]
        same += drafted == int(EagerRunner(model).forward(ids, 1).argmax())
    assert same >= 8


@pytest.mark.parametrize("kind", HeadKind)
@pytest.mark.parametrize(
    ("limits", "notice"),
    [({"context_limit": len(IDS)}, "draft-context"), ({"width": 200}, "draft-vocabulary")],
)
def test_case_13_where_its_draft_model_cannot_follow_it_stops_with_one_notice(kind, limits, notice):
    runner = EagerRunner(tiny_llama())
    model = ModelDrafter(runner)
    head = make_head_runner(random_head(runner, kind=kind), runner, VOCAB)
    drafter = MtpDrafter(head, model.cache, vocab_size=VOCAB, model=model)
    for name, value in limits.items():
        setattr(runner, name, value)
    for ids in (IDS, [*IDS, 3]):
        assert drafter.propose(_context(ids), 4) is None
    assert drafter.take_notice().kind == notice
    assert drafter.propose(_context([*IDS, 3, 4]), 4) is None
    assert drafter.take_notice() is None
    drafter.reset()
    assert drafter.propose(_context(IDS[:2]), 1) is not None


def test_a_draft_model_that_gives_no_numbers_is_named_and_not_its_head():
    model = tiny_llama()
    runner = EagerRunner(model)
    head = make_head_runner(random_head(runner), runner, VOCAB)
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    drafting = ModelDrafter(runner)
    drafter = MtpDrafter(head, drafting.cache, vocab_size=VOCAB, model=drafting)
    assert drafter.propose(_context(IDS), 4).ids == ()
    notice = drafter.take_notice()
    assert notice.kind == "draft-broken"
    assert "The draft model gives no valid numbers" in notice.message
    assert drafter.propose(_context(IDS), 4) is None

"""The engine's contract: what it yields, where a reply ends, and what it leaves behind."""

import pytest

from core.cancel import CancelToken
from core.engine import Engine
from core.errors import UserError
from core.events import Failed, Finished, Notice, PrefillProgress, Round
from core.requests import GenerateRequest
from tests.helpers import tiny
from tests.helpers.tiny import byte_tokenizer, finished, ids, request, rounds, run, tokens

PROMPT = (1, 2, 3, 4, 5)


@pytest.fixture(scope="module")
def target():
    return tiny.tiny_llama()


@pytest.fixture(scope="module")
def plain_ids(target):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    return ids(run(engine, request(drafter="off", max_new_tokens=40)))


def oracle(target, tokenizer=None):
    return Engine.from_parts(target=target, tokenizer=tokenizer or byte_tokenizer(), draft=target)


def with_end_ids(target, end_ids):
    """The same model with other ids that end a reply."""
    copy = tiny.noisy(target, scale=0.0)
    copy.generation_config.eos_token_id = end_ids
    return copy


def cached(engine):
    return len(engine._parts.target)


@pytest.mark.parametrize("gamma", range(9))
@pytest.mark.parametrize("position", range(10))
def test_an_end_token_anywhere_in_a_round_ends_the_reply_there(target, plain_ids, position, gamma):
    end = plain_ids[position]
    first = plain_ids.index(end)
    model = with_end_ids(target, end)
    events = run(oracle(model), request(gamma=gamma, max_new_tokens=40))
    assert ids(events) == plain_ids[: first + 1]
    done = finished(events)
    assert done.reason == "stop"
    assert done.metrics.tokens == first + 1
    assert done.metrics.accepted == sum(t.origin == "accepted" for t in tokens(events))
    assert done.metrics.accepted == done.metrics.proposed
    assert done.text == "".join(token.text for token in tokens(events))


def test_any_of_several_end_tokens_ends_the_reply(target, plain_ids):
    model = with_end_ids(target, [plain_ids[20], plain_ids[6], 255])
    events = run(oracle(model), request(gamma=4, max_new_tokens=40))
    first = min(plain_ids.index(plain_ids[20]), plain_ids.index(plain_ids[6]))
    assert ids(events) == plain_ids[: first + 1]


@pytest.mark.parametrize("drafter", ["ngram", "model", "hybrid"])
@pytest.mark.parametrize("wanted", [1, 2, 3, 7])
def test_a_reply_never_has_more_tokens_than_asked_for(target, drafter, wanted):
    events = run(
        oracle(target), request((5, 6, 7, 5, 6, 7, 5, 6), drafter=drafter, max_new_tokens=wanted)
    )
    assert len(ids(events)) == wanted
    assert finished(events).reason == "length"


def test_zero_new_tokens_are_refused():
    with pytest.raises(UserError, match="max_new_tokens"):
        request(max_new_tokens=0)


def test_a_drafter_that_returns_too_much_is_cut_to_what_was_asked(target, plain_ids):
    drafter = tiny.ScriptedDrafter([plain_ids[:30]] + [plain_ids[i:] for i in range(1, 40)])
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), drafter=drafter)
    events = run(engine, request(gamma=3, max_new_tokens=10))
    assert ids(events) == plain_ids[:10]
    assert all(round_.proposed <= 3 for round_ in rounds(events))


def test_a_drafter_that_returns_an_unknown_id_is_cut_before_it(target, plain_ids):
    drafter = tiny.ScriptedDrafter([[plain_ids[0], 99_999, 3], [-1]])
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), drafter=drafter)
    events = run(engine, request(gamma=3, max_new_tokens=10))
    assert ids(events) == plain_ids[:10]
    assert rounds(events)[0].proposed == 1


@pytest.mark.parametrize("gamma", [0, 1, 4, 8])
def test_a_stop_string_at_every_offset_gives_the_plain_text(target, gamma):
    tokenizer = byte_tokenizer()
    plain = Engine.from_parts(target=target, tokenizer=tokenizer)
    engine = oracle(target, tokenizer)
    text = finished(run(plain, request(drafter="off", max_new_tokens=40))).text
    for start in range(len(text) - 3):
        stop = text[start : start + 3]
        expected = text[: text.find(stop)]
        for which, drafter in ((plain, "off"), (engine, "model")):
            events = run(
                which, request(drafter=drafter, gamma=gamma, max_new_tokens=40, stop=(stop,))
            )
            done = finished(events)
            assert done.text == expected
            assert "".join(token.text for token in tokens(events)) == expected
            assert done.reason == "stop"
            assert done.metrics.tokens == len(tokens(events))


def test_a_reply_ends_with_exactly_one_terminal_event(target):
    for wanted in (request(), request(drafter="off"), request((tiny.VOCAB + 1,))):
        events = list(oracle(target).generate(wanted, CancelToken()))
        assert [isinstance(e, Finished | Failed) for e in events].count(True) == 1
        assert isinstance(events[-1], Finished | Failed)


def test_the_caches_hold_all_but_the_newest_token_between_rounds(target):
    engine = oracle(target)
    for event in engine.generate(request(gamma=3, max_new_tokens=20), CancelToken()):
        if isinstance(event, Round):
            assert cached(engine) == event.context_length - 1
            assert len(engine._parts.draft.cache) <= event.context_length - 1


def test_closing_the_iterator_early_leaves_the_engine_ready(target, plain_ids):
    engine = oracle(target)
    events = engine.generate(request(gamma=3, max_new_tokens=40), CancelToken())
    for event in events:
        if isinstance(event, Round):
            break
    events.close()
    assert ids(run(engine, request(gamma=3, max_new_tokens=40))) == plain_ids


def test_cancelling_ends_within_one_round_and_keeps_what_was_decided(target):
    engine, cancel = oracle(target), CancelToken()
    seen = []
    for event in engine.generate(request(gamma=3, max_new_tokens=200), cancel):
        seen.append(event)
        if isinstance(event, Round):
            cancel.cancel()
    assert len(rounds(seen)) == 1
    assert finished(seen).reason == "cancelled"
    assert finished(seen).text == "".join(token.text for token in tokens(seen))
    assert cached(engine) == rounds(seen)[0].context_length - 1


def test_cancelling_while_the_prompt_is_read_ends_within_one_chunk(target):
    model = tiny.tiny_llama(context=4096)
    engine, cancel = oracle(model), CancelToken()
    seen = []
    for event in engine.generate(request([7] * 2000, max_new_tokens=50), cancel):
        seen.append(event)
        if isinstance(event, PrefillProgress) and event.done > 0:
            cancel.cancel()
    assert not rounds(seen)
    assert finished(seen).reason == "cancelled"
    assert seen[-2].done < 600


def test_a_cancelled_request_that_never_began_yields_one_event(target):
    cancel = CancelToken()
    cancel.cancel()
    events = list(oracle(target).generate(request(), cancel))
    assert finished(events).reason == "cancelled"
    assert not rounds(events)


def test_a_longer_prompt_reads_only_what_is_new(target):
    engine = oracle(target)
    reply = ids(run(engine, request(gamma=3, max_new_tokens=10)))
    prompt = (*PROMPT, *reply, 9, 8, 7)
    events = run(engine, request(prompt, max_new_tokens=10))
    assert finished(events).metrics.reused_tokens == len(PROMPT) + len(reply) - 1
    fresh = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    assert ids(events) == ids(run(fresh, request(prompt, drafter="off", max_new_tokens=10)))


def test_an_edited_prompt_keeps_the_common_prefix_of_both_models(target):
    engine = oracle(target)
    run(engine, request((1, 2, 3, 4, 5, 6), max_new_tokens=10))
    events = run(engine, request((1, 2, 3, 9, 5, 6), max_new_tokens=10))
    assert finished(events).metrics.reused_tokens == 3
    fresh = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    expected = ids(run(fresh, request((1, 2, 3, 9, 5, 6), drafter="off", max_new_tokens=10)))
    assert ids(events) == expected


def test_a_regenerated_reply_equals_the_first_at_temperature_zero(target, plain_ids):
    engine = oracle(target)
    for _ in range(3):
        assert ids(run(engine, request(max_new_tokens=40))) == plain_ids


def test_drafting_stops_at_the_drafts_own_context_with_a_notice(target):
    draft = tiny.noisy(tiny.tiny_llama(context=64), scale=0.0)
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=draft)
    events = run(engine, request(gamma=4, max_new_tokens=200))
    plain = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    assert ids(events) == ids(run(plain, request(drafter="off", max_new_tokens=200)))
    assert [e.kind for e in events if isinstance(e, Notice)] == ["draft-context"]
    assert all(r.proposed == 0 for r in rounds(events) if r.context_length > 64 + 1)
    assert any(r.proposed > 0 for r in rounds(events))


@pytest.mark.parametrize("gamma", [0, 5, 8])
def test_a_reply_ends_at_the_context_and_no_position_passes_it(gamma):
    model = tiny.tiny_llama(context=32)
    events = run(oracle(model), request(gamma=gamma, max_new_tokens=500))
    assert finished(events).reason == "context"
    assert rounds(events)[-1].context_length == 32
    assert len(ids(events)) == 32 - len(PROMPT)


def test_a_prompt_that_fills_the_context_is_refused_in_words(target):
    model = tiny.tiny_llama(context=32)
    events = list(oracle(model).generate(request([3] * 32), CancelToken()))
    assert isinstance(events[-1], Failed)
    assert events[-1].kind == "user"
    assert "32" in events[-1].message


def test_asking_for_a_draft_model_that_is_not_there_decodes_plainly_and_says_why(target, plain_ids):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    events = run(engine, request(drafter="model", max_new_tokens=40))
    assert ids(events) == plain_ids
    notices = [event for event in events if isinstance(event, Notice)]
    assert [notice.kind for notice in notices] == ["speculation-off"]
    assert "no draft model" in notices[0].message
    assert {token.origin for token in tokens(events)} == {"plain"}


class Breaking:
    """A drafter that fails in its third round."""

    def __init__(self) -> None:
        self.calls = 0

    def propose(self, context, gamma):
        self.calls += 1
        if self.calls == 3:
            raise RuntimeError("broken on purpose")

    def commit(self, accepted, committed_ids):
        pass

    def reset(self):
        pass


def test_a_fault_in_mid_reply_keeps_the_text_and_the_next_request_works(target, plain_ids, caplog):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), drafter=Breaking())
    events = list(engine.generate(request(max_new_tokens=40), CancelToken()))
    last = events[-1]
    assert isinstance(last, Failed)
    assert last.kind == "bug"
    assert "broken on purpose" in last.detail
    assert "broken on purpose" not in last.message
    assert last.text == "".join(token.text for token in tokens(events))
    assert last.metrics.tokens == 2
    assert ids(run(engine, request(max_new_tokens=40))) == plain_ids


def test_an_engine_without_models_says_so():
    events = list(Engine().generate(request(), CancelToken()))
    assert isinstance(events[-1], Failed)
    assert events[-1].kind == "user"
    assert "Load a model" in events[-1].message


def test_unloading_lets_the_models_go(target):
    import weakref

    model = tiny.tiny_llama(seed=3)
    engine = oracle(model)
    run(engine, request())
    alive = weakref.ref(model)
    engine.unload()
    del model
    import gc

    gc.collect()
    assert alive() is None
    assert engine.loaded is None


def test_rounds_time_their_parts_and_metrics_add_up(target):
    events = run(oracle(target), request(gamma=4, max_new_tokens=30))
    done = finished(events).metrics
    for round_ in rounds(events):
        assert round_.draft_ms + round_.verify_ms <= round_.round_ms + 1.0
    assert done.tokens == 30
    assert done.rounds == len(rounds(events))
    assert done.mean_acceptance_length == pytest.approx(1 + done.accepted / done.rounds)
    assert done.time_to_first_token_ms == rounds(events)[0].elapsed_ms
    assert done.prompt_tokens == len(PROMPT)


def test_a_seed_repeats_a_sampled_reply_and_another_does_not(target):
    engine = oracle(target)
    first = ids(run(engine, request(temperature=1.0, seed=11)))
    again = ids(run(engine, request(temperature=1.0, seed=11)))
    other = ids(run(engine, request(temperature=1.0, seed=12)))
    assert first == again
    assert first != other


def test_bonus_tokens_go_through_the_sampler(target):
    engine = oracle(target)
    bonus = set()
    for seed in range(60):
        events = run(engine, request(gamma=1, max_new_tokens=2, temperature=1.5, seed=seed))
        bonus |= {token.id for token in tokens(events) if token.origin == "bonus"}
    assert len(bonus) > 3


def test_rejected_tokens_are_told_and_never_part_of_the_reply(target):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=tiny.anti(target))
    events = run(engine, request(gamma=4, max_new_tokens=20))
    for round_ in rounds(events):
        assert round_.proposed == round_.accepted + len(round_.rejected)
        assert all(token.origin == "rejected" for token in round_.rejected)


def test_messages_go_through_the_chat_template(target):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[reply]"
    )
    engine = Engine.from_parts(target=target, tokenizer=tokenizer)
    wanted = GenerateRequest(messages=(("user", "Hi"),), max_new_tokens=4)
    assert engine.count_prompt_tokens(wanted) == len("[user]Hi[reply]")
    assert len(ids(run(engine, wanted))) == 4


@pytest.mark.parametrize("drafter", ["off", "model", "hybrid"])
def test_a_reply_left_unfinished_does_not_disturb_the_next(target, plain_ids, drafter):
    import gc

    engine = oracle(target)
    left = engine.generate(request(gamma=3, max_new_tokens=40), CancelToken())
    while not isinstance(next(left), Round):
        pass
    cycle = [left]
    cycle.append(cycle)
    del left
    events = []
    for event in engine.generate(
        request(drafter=drafter, gamma=3, max_new_tokens=40), CancelToken()
    ):
        events.append(event)
        if len(rounds(events)) == 2:
            cycle = None
            gc.collect()
    assert ids(events) == plain_ids


def test_beginning_a_reply_closes_the_one_before(target, plain_ids):
    engine = oracle(target)
    first = engine.generate(request(max_new_tokens=40), CancelToken())
    while not isinstance(next(first), Round):
        pass
    assert ids(run(engine, request(max_new_tokens=40))) == plain_ids
    assert list(first) == []


class Broken:
    """A model of which every logit becomes NaN after some calls."""

    def __init__(self, model, calls):
        self.model = model
        self.calls = calls
        self.head = model.lm_head.forward

    def __call__(self, hidden):
        self.calls -= 1
        return self.head(hidden) * (1.0 if self.calls >= 0 else float("nan"))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_target_without_valid_numbers_fails_in_words(temperature):
    model = tiny.tiny_llama()
    model.lm_head.forward = Broken(model, 3)
    engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer())
    wanted = request(drafter="off", temperature=temperature, seed=1)
    events = list(engine.generate(wanted, CancelToken()))
    assert isinstance(events[-1], Failed)
    assert events[-1].kind == "user"
    assert "no valid numbers" in events[-1].message
    assert 0 < len(ids(events)) < 4


@pytest.mark.parametrize("gamma", [4, "auto"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_without_valid_numbers_stops_drafting_with_a_notice(
    target, plain_ids, gamma, temperature
):
    draft = tiny.noisy(target, scale=0.0)
    draft.lm_head.forward = Broken(draft, 7)
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=draft)
    events = run(engine, request(gamma=gamma, temperature=temperature, max_new_tokens=40))
    assert [e.kind for e in events if isinstance(e, Notice)] == ["draft-broken"]
    assert rounds(events)[-1].proposed == 0
    if temperature == 0.0:
        assert ids(events) == plain_ids


class CommitBreaks(tiny.ScriptedDrafter):
    def commit(self, accepted, committed_ids):
        raise RuntimeError("broken on purpose")


def test_a_drafter_that_fails_after_a_round_does_not_cost_its_text(target, plain_ids, caplog):
    engine = Engine.from_parts(
        target=target, tokenizer=byte_tokenizer(), drafter=CommitBreaks([plain_ids[:2]])
    )
    events = list(engine.generate(request(max_new_tokens=40), CancelToken()))
    assert isinstance(events[-1], Failed)
    assert ids(events) == plain_ids[:3]
    assert events[-1].text == "".join(token.text for token in tokens(events))


def test_ids_of_a_draft_may_be_anything_that_counts_as_an_integer(target, plain_ids):
    import torch

    drafter = tiny.ScriptedDrafter([torch.tensor(plain_ids[:3])])
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), drafter=drafter)
    events = run(engine, request(max_new_tokens=10))
    assert ids(events) == plain_ids[:10]
    assert all(type(token.id) is int for token in tokens(events))


def test_an_empty_tuple_of_prompt_ids_means_the_messages(target):
    wanted = GenerateRequest(messages=(("user", "Hi"),), prompt_ids=(), max_new_tokens=3)
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
    assert len(ids(run(engine, wanted))) == 3


def test_a_nucleus_too_small_for_any_token_still_holds_the_likeliest(target, plain_ids):
    for drafter in ("off", "model"):
        wanted = request(drafter=drafter, temperature=1.0, top_p=1e-50, max_new_tokens=40)
        assert ids(run(oracle(target), wanted)) == plain_ids

"""Cases that broke others (numbers as in the project's list of them), through the engine."""

import random
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from app.controllers.cost import WINDOW_ROUNDS, DraftingCost, slower_note
from core.cancel import CancelToken
from core.decoding import loop
from core.drafting.base import Draft
from core.engine import Engine
from core.events import Failed
from core.models.lean.model import read_lean_model
from core.requests import AUTO_GAMMA, SpeculationParams
from tests.helpers import tiny
from tests.helpers.tiny import byte_tokenizer, finished, ids, request, rounds, run

ARCHITECTURE = Path(__file__).resolve().parents[3] / "docs" / "architecture.md"
AUTO = SpeculationParams(drafter="model", gamma=AUTO_GAMMA)
PROMPT = (1, 2, 3, 1, 2, 3, 1, 2)
LIMIT = 48


@pytest.fixture(scope="module")
def target():
    return tiny.tiny_llama()


def plain_ids(model, **wanted):
    engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer())
    return ids(run(engine, request(PROMPT, drafter="off", **wanted)))


# 14. Automatic gamma was carried over silently between chats.


def test_case_14_what_an_automatic_gamma_learns_lives_with_the_pair_and_is_documented(target):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=tiny.anti(target))
    controller = engine._parts.gamma_controller(AUTO)
    for prompt in (PROMPT, (9, 8, 7)):  # two chats that have nothing in common
        run(engine, request(prompt, gamma=AUTO_GAMMA, max_new_tokens=40))
        assert engine._parts.gamma_controller(AUTO) is controller
    assert controller.belief() is not None
    again = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=tiny.anti(target))
    assert again._parts.gamma_controller(AUTO) is not controller
    words = " ".join(ARCHITECTURE.read_text(encoding="utf-8").split())
    assert "lives as long as the loaded pair" in words
    assert "serves every reply of every chat" in words


@pytest.mark.parametrize("drafter", ["model", "ngram", "hybrid"])
def test_case_14_the_gamma_shown_is_the_gamma_used(target, drafter):
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=tiny.noisy(target))
    for prompt in (PROMPT, (9, 8, 7)):
        events = run(engine, request(prompt, drafter=drafter, gamma=AUTO_GAMMA, max_new_tokens=60))
        for round_ in rounds(events):
            assert round_.gamma == round_.proposed == round_.accepted + len(round_.rejected)
            assert len(round_.tokens) == round_.accepted + 1
    fixed = rounds(run(engine, request(PROMPT, gamma=3, max_new_tokens=60)))
    assert {round_.gamma for round_ in fixed} == {3}


# 15. A drafter that always misses.


class Clock:
    """Time as the loop sees it: a pass takes 10 ms and 1 more a row, a drafted token 2."""

    def __init__(self):
        self.now_s = 0.0

    def perf_counter(self):
        return self.now_s


class RandomDrafter:
    """Proposes anything, as an untrained head does, and never by luck what stands."""

    def __init__(self, avoid, clock):
        self._random = random.Random(7)
        self._avoid = avoid
        self._clock = clock

    def propose(self, context, gamma):
        self._clock.now_s += 0.002 * gamma
        drawn = [self._random.randrange(tiny.VOCAB) for _ in range(gamma)]
        right = self._avoid(len(context))
        return Draft(
            tuple((token + 1) % tiny.VOCAB if token == right else token for token in drawn)
        )

    def commit(self, accepted, committed_ids):
        pass

    def reset(self):
        pass


@pytest.fixture(scope="module")
def missed(target):
    """A long greedy reply by an automatic gamma whose drafter never hits, and the plain one."""
    expected = plain_ids(target, max_new_tokens=120)
    whole = [*PROMPT, *expected]
    clock = Clock()
    drafter = RandomDrafter(lambda length: whole[length] if length < len(whole) else -1, clock)
    engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), drafter=drafter)
    runner = engine._parts.target.runner
    forward = runner.forward

    def timed(ids, rows):
        clock.now_s += 0.01 + 0.001 * len(ids)
        return forward(ids, rows)

    runner.forward = timed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "time", clock)
        events = run(engine, request(PROMPT, gamma=AUTO_GAMMA, max_new_tokens=120))
    return events, expected


def test_case_15_the_text_is_correct_though_every_draft_misses(missed):
    events, expected = missed
    assert ids(events) == expected
    assert sum(round_.proposed for round_ in rounds(events)) > 0
    assert sum(round_.accepted for round_ in rounds(events)) == 0


def test_case_15_an_automatic_gamma_goes_to_nought_and_says_why(missed):
    told = rounds(missed[0])
    assert told[1].proposed > 0  # after one plain round, to know what it costs
    assert sum(round_.proposed > 0 for round_ in told[-WINDOW_ROUNDS:]) <= 4
    assert told[-1].belief.chosen == 0
    assert told[-1].belief.reason == "A draft costs more time than it saves."
    cost = DraftingCost()
    for round_ in told:
        cost.add(round_)
    assert cost.note().startswith("Automatic gamma has settled at 0.")


@pytest.mark.parametrize("gamma", [4, AUTO_GAMMA])
def test_case_15_a_reply_that_it_made_slower_says_that_speculation_is_costing_speed(missed, gamma):
    words = slower_note(0.6, gamma, rounds(missed[0])[-1].belief)
    assert words.startswith("Speculation is costing speed: this reply ran at 0.60×")


# 27. Prompt longer than the context, a chat that fills it, gamma crossing the limit.


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A model that holds 48 tokens, for the eager runner and for the int8 one."""
    config = LlamaConfig(
        vocab_size=tiny.VOCAB,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=LIMIT,
        initializer_range=0.2,
        eos_token_id=None,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).eval()
    folder = tmp_path_factory.mktemp("short")
    model.save_pretrained(folder)
    lean = read_lean_model(folder, model.config, model.generation_config, lambda _: None)
    return {"eager": model, "lean": lean}


def watched(engine):
    """Where the passes of both models end: a list that grows as they run."""
    ends = []
    parts = engine._parts
    draft = [parts.draft._runner] if parts.draft is not None else []
    for runner in (parts.target.runner, *draft):

        def forward(ids, rows, runner=runner, passed=runner.forward):
            logits = passed(ids, rows)
            ends.append(runner.length)
            return logits

        def forward_shallow(ids, start, layers, passed=runner.forward_shallow):
            ends.append(start + len(ids))
            return passed(ids, start, layers)

        runner.forward, runner.forward_shallow = forward, forward_shallow
    return ends


@pytest.mark.parametrize("kind", ["eager", "lean"])
@pytest.mark.parametrize("length", [LIMIT, LIMIT + 1, 10 * LIMIT])
def test_case_27_a_prompt_that_does_not_fit_is_counted_and_refused_with_a_choice(
    short, kind, length
):
    engine = Engine.from_parts(target=short[kind], tokenizer=byte_tokenizer(), draft=short[kind])
    ends = watched(engine)
    wanted = request([7] * length)
    assert engine.count_prompt_tokens(wanted) == length
    assert engine.loaded.context_limit == LIMIT
    last = list(engine.generate(wanted, CancelToken()))[-1]
    assert isinstance(last, Failed)
    assert last.kind == "user"
    assert f"takes {length:,} tokens and the model holds {LIMIT}" in last.message
    assert "Shorten the message, or start a new chat." in last.message
    assert ends == []
    assert ids(run(engine, request(PROMPT, max_new_tokens=5)))


@pytest.mark.parametrize("kind", ["eager", "lean"])
@pytest.mark.parametrize("drafter", ["model", "ngram", "hybrid", "early-exit"])
@pytest.mark.parametrize("gamma", [0, 1, 7, 16, AUTO_GAMMA])
def test_case_27_a_gamma_that_crosses_the_limit_passes_no_position(short, kind, drafter, gamma):
    for start in (LIMIT - 1, LIMIT - 2, LIMIT - 9):
        model = short[kind]
        engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer(), draft=model)
        ends = watched(engine)
        prompt = [1 + place % 5 for place in range(start)]
        events = run(engine, request(prompt, drafter=drafter, gamma=gamma, max_new_tokens=500))
        assert finished(events).reason == "context"
        assert rounds(events)[-1].context_length == LIMIT
        assert len(ids(events)) == LIMIT - start
        assert max(ends) < LIMIT


@pytest.mark.parametrize("kind", ["eager", "lean"])
def test_case_27_a_chat_that_fills_the_context_ends_there_and_takes_no_more(short, kind):
    engine = Engine.from_parts(target=short[kind], tokenizer=byte_tokenizer(), draft=short[kind])
    ends = watched(engine)
    chat = list(PROMPT)
    while True:
        events = list(engine.generate(request(chat, gamma=5, max_new_tokens=9), CancelToken()))
        if isinstance(events[-1], Failed):
            break
        chat += [*ids(events), 3, 4]  # what the person says next
        assert finished(events).reason == ("length" if len(chat) < LIMIT + 2 else "context")
    assert "start a new chat" in events[-1].message
    assert len(chat) >= LIMIT
    assert max(ends) < LIMIT

"""The target's first layers as drafter: the reply is the target's, and no row of it is spoilt."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from core.cancel import CancelToken
from core.decoding.gamma import AutoGamma
from core.decoding.sampling import Sampler
from core.drafting.base import Draft, DraftContext
from core.drafting.early_exit import EarlyExitDrafter, exit_depth
from core.engine import Engine
from core.events import Round
from core.models.cache import TokenCache
from core.models.lean.model import read_lean_model
from core.models.lean.runner import LeanRunner
from core.requests import AUTO_GAMMA, SamplingParams
from tests.helpers import tiny
from tests.helpers.tiny import byte_tokenizer, finished, ids, request, rounds, run

PROMPT = tuple((7 * i * i + 3 * i) % 256 for i in range(20))
NEW = 100


@pytest.fixture(scope="module")
def lean(tmp_path_factory):
    """Four layers of which the later ones change little, so that the first are right at times."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.2,
        eos_token_id=None,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for layer in model.model.layers[1:]:
            for name, parameter in layer.named_parameters():
                if name.endswith(("o_proj.weight", "down_proj.weight")):
                    parameter.mul_(0.3)
    folder = tmp_path_factory.mktemp("exits")
    model.save_pretrained(folder)
    return read_lean_model(folder, model.config, model.generation_config, lambda _: None)


@pytest.fixture(scope="module")
def plain_ids(lean):
    engine = Engine.from_parts(target=lean, tokenizer=byte_tokenizer())
    return ids(run(engine, request(PROMPT, drafter="off", max_new_tokens=NEW)))


@pytest.mark.parametrize("gamma", [*range(1, 9), AUTO_GAMMA])
def test_an_early_exit_does_not_change_the_reply(lean, plain_ids, gamma):
    engine = Engine.from_parts(target=lean, tokenizer=byte_tokenizer())
    events = run(engine, request(PROMPT, drafter="early-exit", gamma=gamma, max_new_tokens=NEW))
    assert ids(events) == plain_ids
    accepted = sum(round_.accepted for round_ in rounds(events))
    if gamma != AUTO_GAMMA:
        assert 0 < accepted < sum(round_.proposed for round_ in rounds(events))


def test_all_layers_as_an_exit_are_always_right(lean, plain_ids):
    engine = Engine.from_parts(target=lean, tokenizer=byte_tokenizer())
    engine._parts.early_exit._layers = 4
    events = run(engine, request(PROMPT, drafter="early-exit", gamma=4, max_new_tokens=NEW))
    assert ids(events) == plain_ids
    assert all(round_.accepted == round_.proposed for round_ in rounds(events))


def test_it_leaves_nothing_behind_for_the_next_reply(lean, plain_ids):
    engine = Engine.from_parts(target=lean, tokenizer=byte_tokenizer())
    cancel = CancelToken()
    for event in engine.generate(
        request(PROMPT, drafter="early-exit", gamma=8, max_new_tokens=NEW), cancel
    ):
        if isinstance(event, Round):
            cancel.cancel()
    longer = (*PROMPT, *plain_ids[:30])
    events = run(engine, request(longer, drafter="early-exit", gamma=3, max_new_tokens=NEW - 30))
    assert ids(events) == plain_ids[30:]


@pytest.mark.parametrize("gamma", [3, 8])
def test_it_drafts_up_to_the_end_of_the_context_and_not_past_it(lean, gamma):
    engine = Engine.from_parts(target=lean, tokenizer=byte_tokenizer())
    engine._parts.target.runner.context_limit = 64
    events = run(engine, request(PROMPT, drafter="early-exit", gamma=gamma, max_new_tokens=500))
    assert finished(events).reason == "context"
    assert rounds(events)[-1].context_length == 64


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=0.8, seed=3),
        SamplingParams(temperature=0.8, top_k=5, top_p=0.9, repetition_penalty=1.3, seed=3),
    ],
    ids=["plain", "filtered"],
)
def test_what_it_draws_from_is_told_exactly(lean, params):
    runner = LeanRunner(lean)
    cache = TokenCache(runner)
    cache.feed(PROMPT[:-1], 1)
    context = DraftContext(
        list(PROMPT),
        prompt_length=10,
        sampler=Sampler(params, vocab_size=256, prompt_ids=PROMPT),
    )
    draft = EarlyExitDrafter(cache, 1).propose(context, 4)
    assert draft is not None
    assert (draft.source, draft.steps, len(draft.confidence)) == ("early-exit", 4, 4)
    assert len(cache) == runner.length == len(PROMPT) - 1
    again = Sampler(params, vocab_size=256, prompt_ids=PROMPT)
    fed = (PROMPT[-1], *draft.ids)
    for number in range(4):
        logits = runner.forward_shallow([fed[number]], len(PROMPT) - 1 + number, 1)
        expected = again.draft_probs(logits, draft.ids[:number])
        assert torch.equal(draft.probs[number : number + 1], expected)
        assert draft.probs[number, draft.ids[number]] > 0
        assert draft.confidence[number] == pytest.approx(float(expected.amax()))


def test_where_it_never_pays_the_automatic_length_goes_to_nought():
    auto = AutoGamma()
    for _ in range(40):
        auto.next()
        # A shallow pass at 0.6 of a whole one, and never right.
        draft = Draft((1,), source="early-exit", confidence=(0.4,), steps=1)
        auto.observe(draft, 0, 6.0, 10.0)
    assert auto.belief().chosen == 0


def test_a_model_says_where_it_exits_or_a_quarter_of_it_drafts():
    assert exit_depth(28) == 7
    assert exit_depth(30) == 8
    assert exit_depth(2) == 1
    assert exit_depth(28, 4) == 4
    for nonsense in (None, 0, -1, 28, 99):
        assert exit_depth(28, nonsense) == 7


def test_it_is_offered_where_the_runner_can_exit_and_else_refused_in_words(lean):
    for target, offered in ((lean, True), (tiny.tiny_llama(), False)):
        engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer())
        option = next(o for o in engine.loaded.drafters if o.kind == "early-exit")
        assert option.available == offered
        assert bool(option.reason) != offered

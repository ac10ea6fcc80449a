"""Models with recurrent states: drafts change nothing, and what was rejected leaves no trace."""

import pytest
import torch

from core.cancel import CancelToken
from core.engine import Engine
from core.errors import UserError
from core.events import PrefillProgress, Round
from core.models.cache import PREFILL_CHUNK, TokenCache
from core.models.recurrent import RecurrentRunner, eager_runner
from core.requests import LoadRequest
from tests.helpers import tiny
from tests.helpers.checkpoints import save_folder
from tests.helpers.tiny import byte_tokenizer, finished, ids, request, rounds, run
from tests.helpers.tiny_recurrent import MODELS, UNKNOWN, tiny_recurrent

PROMPT = (1, 2, 3, 4, 5, 1, 2, 3)
TEXT = [(7 * i * i + 3 * i) % 256 for i in range(60)]
NEW = 24
TOLERANCE = {"atol": 2e-3, "rtol": 1e-3}


def opposite(model):
    """A model that likes least what ``model`` likes best."""
    other = tiny.noisy(model, scale=0.0)
    head = other.get_output_embeddings()
    with torch.no_grad():
        head.weight = torch.nn.Parameter(-head.weight)
    return other


@pytest.fixture(scope="module")
def models():
    return {name: tiny_recurrent(name) for name in MODELS}


@pytest.fixture(scope="module")
def plain(models):
    """What each model replies without speculation."""
    made = {}
    for name, model in models.items():
        engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer())
        made[name] = ids(run(engine, request(PROMPT, drafter="off", max_new_tokens=NEW)))
    return made


@pytest.mark.parametrize("name", MODELS)
def test_case_10_plain_text_is_what_whole_passes_say(models, plain, name):
    """No caches, so that nothing can be lost between passes."""
    whole = list(PROMPT)
    for _ in range(NEW):
        with torch.no_grad():
            logits = models[name](torch.tensor([whole]), use_cache=False).logits
        whole.append(int(logits[0, -1].argmax()))
    assert plain[name] == whole[len(PROMPT) :]


@pytest.mark.parametrize("gamma", range(9))
@pytest.mark.parametrize("name", ["delta-net", "jamba"])
def test_case_10_drafts_do_not_change_a_recurrent_targets_reply(models, plain, name, gamma):
    model = models[name]
    for draft in (model, tiny.noisy(model), opposite(model)):
        engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer(), draft=draft)
        assert ids(run(engine, request(PROMPT, gamma=gamma, max_new_tokens=NEW))) == plain[name]


@pytest.mark.parametrize("gamma", [1, 4])
@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("delta-net", "jamba")])
def test_case_10_every_kind_of_state_rolls_back(models, plain, name, gamma):
    model = models[name]
    for draft in (tiny.noisy(model), opposite(model)):
        engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer(), draft=draft)
        assert ids(run(engine, request(PROMPT, gamma=gamma, max_new_tokens=NEW))) == plain[name]


def test_case_10_an_oracle_draft_with_states_is_always_accepted(models):
    model = models["delta-net"]
    engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer(), draft=model)
    events = run(engine, request(PROMPT, gamma=4, max_new_tokens=NEW))
    assert all(round_.accepted == round_.proposed for round_ in rounds(events))


@pytest.mark.parametrize("gamma", [2, 6])
def test_case_10_a_recurrent_draft_serves_another_target(models, gamma):
    target = tiny.tiny_llama()
    expected = ids(
        run(
            Engine.from_parts(target=target, tokenizer=byte_tokenizer()),
            request(PROMPT, drafter="off", max_new_tokens=NEW),
        )
    )
    for name in ("delta-net", "jamba"):
        engine = Engine.from_parts(target=target, tokenizer=byte_tokenizer(), draft=models[name])
        events = run(engine, request(PROMPT, gamma=gamma, max_new_tokens=NEW))
        assert ids(events) == expected
        assert sum(round_.proposed for round_ in rounds(events)) > 0


@pytest.mark.parametrize("name", ["delta-net", "jamba"])
def test_case_10_a_conversation_goes_on_from_the_states_that_it_left(models, name):
    model = models[name]
    engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer(), draft=tiny.noisy(model))
    reply = ids(run(engine, request(PROMPT, gamma=4, max_new_tokens=NEW)))
    longer = (*PROMPT, *reply, 9, 8, 7)
    events = run(engine, request(longer, gamma=4, max_new_tokens=NEW))
    assert finished(events).metrics.reused_tokens == len(PROMPT) + len(reply) - 1
    fresh = Engine.from_parts(target=model, tokenizer=byte_tokenizer())
    assert ids(events) == ids(run(fresh, request(longer, drafter="off", max_new_tokens=NEW)))
    for prompt in (PROMPT, (*PROMPT[:4], 77, 78)):
        expected = ids(run(fresh, request(prompt, drafter="off", max_new_tokens=NEW)))
        assert ids(run(engine, request(prompt, gamma=4, max_new_tokens=NEW))) == expected


@pytest.mark.parametrize("name", ["delta-net", "jamba"])
def test_case_10_a_prompt_of_several_chunks_equals_one_pass(models, name):
    model = models[name]
    text = [(7 * i * i + 3 * i) % 256 for i in range(PREFILL_CHUNK + 20)]
    cache = TokenCache(eager_runner(model))
    for _ in cache.prefill(text[:-1], lambda: False):
        pass
    last = cache.feed(text[-1:], 1)
    with torch.no_grad():
        whole = model(torch.tensor([text]), use_cache=False).logits[0, -1:]
    torch.testing.assert_close(last, whole, **TOLERANCE)


def test_case_10_cancelling_in_mid_prompt_or_mid_reply_leaves_states_that_hold(models):
    model = models["delta-net"]
    engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer(), draft=opposite(model))
    prompt = [(5 * i) % 256 for i in range(PREFILL_CHUNK + 40)]
    for when in (PrefillProgress, Round):
        cancel = CancelToken()
        for event in engine.generate(request(prompt, gamma=4), cancel):
            if isinstance(event, when):
                cancel.cancel()
    fresh = Engine.from_parts(target=model, tokenizer=byte_tokenizer())
    expected = ids(run(fresh, request(prompt, drafter="off", max_new_tokens=NEW)))
    assert ids(run(engine, request(prompt, gamma=4, max_new_tokens=NEW))) == expected


@pytest.mark.parametrize("read", [0, 10])
@pytest.mark.parametrize("name", ["delta-net", "jamba"])
def test_case_10_a_pass_that_broke_off_is_forgotten(models, monkeypatch, name, read):
    cache = TokenCache(eager_runner(models[name]))
    if read:
        cache.feed(TEXT[:read], 1)
    with monkeypatch.context() as patch:
        patch.setattr(models[name].lm_head, "forward", _broken)
        with pytest.raises(RuntimeError, match="on purpose"):
            cache.feed(TEXT[read : read + 2], 2)
    assert len(cache) == cache.runner.length == 0
    again = cache.feed(TEXT[:12], 2)
    torch.testing.assert_close(again, eager_runner(models[name]).forward(TEXT[:12], 2))


def _broken(*_args, **_kwargs):
    raise RuntimeError("broken on purpose")


@pytest.mark.parametrize("name", MODELS)
def test_rejections_in_a_row_are_made_good_without_reading_ever_more_again(models, name):
    runner, steady = eager_runner(models[name]), eager_runner(models[name])
    runner.forward(TEXT[:10], 1)
    runner.crop(10)
    steady.forward(TEXT[:10], 1)
    widest = 0
    for position in range(10, 40):
        rows = runner.forward([TEXT[position], 9, 8, 7], 4)
        assert runner.crop(position + 1) == runner.length == position + 1
        widest = max(widest, len(runner._again))
        torch.testing.assert_close(rows[:1], steady.forward([TEXT[position]], 1), **TOLERANCE)
    assert widest <= 9


def test_it_goes_back_to_anywhere_since_the_last_crop_and_else_to_nothing(models):
    runner = eager_runner(models["delta-net"])
    runner.forward(TEXT[:10], 1)
    assert runner.crop(10) == 10
    for token in TEXT[10:16]:
        runner.forward([token], 1)
    for length in (15, 12, 11):
        assert runner.crop(length) == runner.length == length
    row = runner.forward([TEXT[11]], 1)
    fresh = eager_runner(models["delta-net"])
    torch.testing.assert_close(row, fresh.forward(TEXT[:12], 1), **TOLERANCE)
    assert runner.crop(12) == 12
    assert runner.forward([TEXT[12]], 1).shape == (1, 256)
    assert runner.crop(5) == 0
    torch.testing.assert_close(
        runner.forward(TEXT[:5], 1), eager_runner(models["delta-net"]).forward(TEXT[:5], 1)
    )


@pytest.mark.parametrize("name", ["delta-net", "jamba"])
def test_kept_states_are_those_of_the_tokens_that_were_given(models, name):
    cache = TokenCache(eager_runner(models[name]))
    cache.keep_states((1, 2))
    cache.feed(TEXT[:10], 1)
    cache.rewind(10)
    for position in range(10, 16):
        cache.feed([TEXT[position], 9, 8], 3)
        cache.rewind(position + 1)
    with torch.no_grad():
        output = models[name](torch.tensor([TEXT[:16]]), output_hidden_states=True)
    expected = torch.cat([output.hidden_states[layer][0] for layer in (1, 2)], dim=1)
    torch.testing.assert_close(cache.states(0), expected, **TOLERANCE)


def test_the_snapshot_holds_states_and_no_attention(models):
    runner = eager_runner(models["falcon-h1"])
    assert isinstance(runner, RecurrentRunner)
    sizes = []
    for count in (8, 200):
        runner.forward([5] * count, 1)
        runner.crop(runner.length)
        runner.forward([6], 1)
        sizes.append(sum(copy.numel() for copy in runner._snapshot._copies.values()))
    assert sizes[0] == sizes[1] > 0


def test_a_model_that_reads_singly_says_so_when_it_is_loaded(models):
    for name, told in (("jamba", 1), ("delta-net", 0)):
        engine = Engine.from_parts(target=models[name], tokenizer=byte_tokenizer())
        assert len(engine.loaded.notices) == told
        assert all("one token at a time" in notice for notice in engine.loaded.notices)


@pytest.mark.parametrize("name", ["delta-net", "jamba"])
def test_what_a_pass_over_several_tokens_cannot_take_up_is_read_singly(models, name):
    assert eager_runner(models[name]).one_by_one == (name == "jamba")


@pytest.mark.parametrize("name", UNKNOWN)
def test_case_10_what_keeps_its_memory_elsewhere_is_refused_in_words(name):
    with pytest.raises(UserError, match="in a form that Paceline does not know"):
        Engine.from_parts(target=tiny_recurrent(name), tokenizer=byte_tokenizer())


def test_case_10_models_with_states_load_from_folders_or_are_refused_there(tmp_path):
    for name in ("delta-net", "recurrent-gemma"):
        save_folder(tmp_path / name, tiny_recurrent(name))
    engine = Engine()
    wanted = LoadRequest(target=str(tmp_path / "delta-net"), precision="float32")
    loaded = engine.load(wanted, lambda _: None, CancelToken())
    assert all(option.available for option in loaded.drafters if option.kind == "ngram")
    plain = ids(run(engine, request(PROMPT, drafter="off", max_new_tokens=NEW)))
    assert ids(run(engine, request(PROMPT, drafter="ngram", max_new_tokens=NEW))) == plain
    with pytest.raises(UserError, match="in a form that Paceline does not know"):
        engine.load(
            LoadRequest(target=str(tmp_path / "recurrent-gemma")), lambda _: None, CancelToken()
        )
    assert engine.loaded is None


def test_case_10_a_draft_that_is_refused_leaves_the_target_usable():
    target = tiny.tiny_llama()
    engine = Engine.from_parts(
        target=target, tokenizer=byte_tokenizer(), draft=tiny_recurrent("recurrent-gemma")
    )
    events = run(engine, request(PROMPT, max_new_tokens=4))
    assert len(ids(events)) == 4
    assert engine.loaded.draft is None
    assert engine.loaded.memory_bytes == target.get_memory_footprint()
    reason = next(option.reason for option in engine.loaded.drafters if option.kind == "model")
    assert "form that Paceline does not know" in reason

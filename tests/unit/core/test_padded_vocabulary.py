"""A model's output may be wider than its tokenizer; no reply ever holds what only pads it."""

import pytest
import torch
from tokenizers import AddedToken

from core.engine import Engine
from core.models.lean.model import read_lean_model
from tests.helpers import tiny
from tests.helpers.tiny import byte_tokenizer, ids, request, run

REAL = 256


@pytest.fixture(scope="module")
def padded():
    """WIDE whose padding is what its head likes best."""
    model = tiny.wide(tiny.tiny_llama())
    with torch.no_grad():
        model.lm_head.weight[REAL:] *= 50.0
    return model


@pytest.fixture(scope="module")
def lean(padded, tmp_path_factory):
    folder = tmp_path_factory.mktemp("padded")
    padded.save_pretrained(folder)
    return read_lean_model(folder, padded.config, padded.generation_config, lambda _: None)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
@pytest.mark.parametrize("drafter", ["off", "ngram", "early-exit"])
@pytest.mark.parametrize("which", ["padded", "lean"])
def test_padding_is_never_chosen_without_a_draft(request_model, which, drafter, temperature):
    engine = Engine.from_parts(target=request_model(which), tokenizer=byte_tokenizer())
    wanted = request(
        (5, 6, 7, 5, 6), drafter=drafter, max_new_tokens=40, temperature=temperature, seed=1
    )
    assert max(ids(run(engine, wanted))) < REAL


@pytest.fixture
def request_model(padded, lean):
    return {"padded": padded, "lean": lean}.__getitem__


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_padding_that_target_and_draft_share_is_never_chosen(padded, temperature):
    draft = tiny.noisy(padded)
    engine = Engine.from_parts(target=padded, tokenizer=byte_tokenizer(), draft=draft)
    wanted = request(gamma=4, max_new_tokens=40, temperature=temperature, seed=1)
    events = run(engine, wanted)
    assert max(ids(events)) < REAL
    rejected = [token.id for e in tiny.rounds(events) for token in e.rejected]
    assert max(rejected, default=0) < REAL


def test_the_real_tokens_keep_their_chances(padded):
    engine = Engine.from_parts(target=padded, tokenizer=byte_tokenizer())
    plain = Engine.from_parts(target=tiny.tiny_llama(), tokenizer=byte_tokenizer())
    wanted = request(drafter="off", max_new_tokens=40)
    assert ids(run(engine, wanted)) == ids(run(plain, wanted))


def test_added_tokens_are_real_even_where_ids_are_left_out_before_them():
    """The last id decides, and not how many there are."""
    tokenizer = byte_tokenizer()
    vocab = {f"t{i}": i for i in range(100)} | {"<end>": 300}
    sparse = _Tokenizer(tokenizer, vocab)
    engine = Engine.from_parts(target=tiny.wide(tiny.tiny_llama()), tokenizer=sparse)
    assert engine._parts.target.runner.vocab_size == 301
    tokenizer.add_tokens([AddedToken("<new>", special=True)])
    engine = Engine.from_parts(target=tiny.wide(tiny.tiny_llama()), tokenizer=tokenizer)
    assert engine._parts.target.runner.vocab_size == REAL + 1


def test_an_end_token_that_the_tokenizer_does_not_know_can_still_end_a_reply():
    model = tiny.wide(tiny.tiny_llama())
    model.generation_config.eos_token_id = 270
    engine = Engine.from_parts(target=model, tokenizer=byte_tokenizer())
    assert engine._parts.target.runner.vocab_size == 271


def test_a_model_narrower_than_its_tokenizer_keeps_its_own_width():
    engine = Engine.from_parts(target=tiny.tiny_llama(vocab=200), tokenizer=byte_tokenizer())
    assert engine._parts.target.runner.vocab_size == 200


class _Tokenizer:
    """A tokenizer with another vocabulary."""

    def __init__(self, tokenizer, vocab):
        self._tokenizer = tokenizer
        self._vocab = vocab

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def __len__(self):
        return len(self._vocab)

    def get_vocab(self):
        return dict(self._vocab)

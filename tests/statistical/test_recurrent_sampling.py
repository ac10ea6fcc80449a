"""A sampled reply of a model with recurrent states follows its own passes, whatever is rejected."""

import pytest
import torch

from core.decoding.sampling import filtered_probs
from core.engine import Engine
from core.models.recurrent import RecurrentRunner
from core.requests import SamplingParams
from tests.helpers import tiny
from tests.helpers.tiny_recurrent import tiny_recurrent
from tests.statistical.laws import chi_square_p_value
from tests.statistical.test_sampling import FALSE_ALARM_RATE

VOCAB = 3
TOKENS = 3
REPLIES = 120
PROMPT = (1, 2, 0, 1)


@pytest.fixture(scope="module")
def target():
    model = tiny_recurrent("delta-net")
    model.resize_token_embeddings(VOCAB)
    with torch.no_grad():
        model.lm_head.weight.mul_(0.7)  # nothing so sure that chance has no part in it
    return model


def p_value(target, draft) -> float:
    """How likely the first three tokens of many replies are under whole passes."""
    engine = Engine.from_parts(target=target, tokenizer=tiny.byte_tokenizer(), draft=draft)
    counts = torch.zeros(VOCAB, VOCAB, VOCAB, dtype=torch.float64)
    for seed in range(REPLIES):
        wanted = tiny.request(PROMPT, gamma=2, max_new_tokens=TOKENS, temperature=1.0, seed=seed)
        counts[tuple(tiny.ids(tiny.run(engine, wanted)))] += 1
    pairs = torch.cartesian_prod(torch.arange(VOCAB), torch.arange(VOCAB))
    whole = torch.cat([torch.tensor([PROMPT] * len(pairs)), pairs], dim=1)
    with torch.no_grad():
        logits = target(whole, use_cache=False).logits[:, len(PROMPT) - 1 :]
    probs = filtered_probs(logits.reshape(-1, VOCAB), SamplingParams(temperature=1.0))
    probs = probs.double().view(VOCAB, VOCAB, TOKENS, VOCAB)
    first, second, third = probs[0, 0, 0], probs[:, 0, 1], probs[:, :, 2]
    law = first[:, None, None] * second[:, :, None] * third
    df = int((law > 0).sum()) - 1
    return chi_square_p_value(counts.flatten(), REPLIES * law.flatten(), df)


def test_case_10_sampled_replies_follow_the_targets_distribution(target):
    draft = tiny.noisy(target, scale=0.5)
    assert p_value(target, draft) > FALSE_ALARM_RATE


def test_states_that_are_not_put_back_are_caught(target, monkeypatch):
    draft = tiny.noisy(target, scale=0.5)
    monkeypatch.setattr("core.models.recurrent._Snapshot.put_back", lambda self, cache: None)
    # The trial at loading would see it at once, and speculation would be off.
    monkeypatch.setattr(RecurrentRunner, "_try_out", lambda self, kind: None)
    assert p_value(target, draft) < FALSE_ALARM_RATE

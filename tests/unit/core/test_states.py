"""The hidden states that a runner keeps for a head that drafts from them."""

import pytest
import torch

from core.models.cache import TokenCache
from core.models.runner import EagerRunner
from tests.helpers.tiny import tiny_llama

IDS = (5, 9, 200, 3, 77, 41)


def _states(layers: tuple[int, ...]) -> torch.Tensor:
    model = tiny_llama()
    with torch.no_grad():
        output = model(torch.tensor([IDS]), output_hidden_states=True)
    return torch.cat([output.hidden_states[layer][0] for layer in layers], dim=1)


@pytest.mark.parametrize("layers", [(0,), (2,), (0, 1, 2), (2, 1)])
def test_runner_keeps_the_states_that_were_asked_for(layers: tuple[int, ...]) -> None:
    runner = EagerRunner(tiny_llama())
    runner.keep_states(layers)
    runner.forward(IDS, 2)
    torch.testing.assert_close(runner.states, _states(layers))


def test_runner_keeps_none_unless_asked() -> None:
    runner = EagerRunner(tiny_llama())
    runner.forward(IDS, 1)
    assert runner.states is None


def test_cache_aligns_the_states_with_its_tokens_through_chunks_and_rewinds() -> None:
    cache = TokenCache(EagerRunner(tiny_llama()))
    cache.keep_states((1, 2))
    cache.feed(IDS[:2], 1)
    cache.feed((1, 2, 3), 1)
    cache.rewind(2)
    for token in IDS[2:]:
        cache.feed([token], 1)
    torch.testing.assert_close(cache.states(0), _states((1, 2)), atol=1e-4, rtol=1e-4)
    assert cache.states(4).shape == (2, 64)
    cache.rewind(3)
    assert len(cache.states(0)) == 3


def test_cache_forgets_what_it_read_without_the_states() -> None:
    cache = TokenCache(EagerRunner(tiny_llama()))
    cache.feed(IDS, 1)
    cache.keep_states((2,))
    assert len(cache) == 0
    cache.feed(IDS, 1)
    cache.keep_states((2,))
    assert len(cache) == len(IDS)


def test_embeddings_are_the_models_own() -> None:
    model = tiny_llama()
    runner = EagerRunner(model)
    with torch.no_grad():
        torch.testing.assert_close(runner.embed(IDS), model.model.embed_tokens.weight[list(IDS)])
        torch.testing.assert_close(runner.unembedding(IDS), model.lm_head.weight[list(IDS)])

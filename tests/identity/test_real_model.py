"""The embedded default model: speculative replies equal plain ones in float32."""

from itertools import pairwise

import pytest

from core.cancel import CancelToken
from core.engine import Engine
from core.requests import GenerateRequest, LoadRequest, SpeculationParams
from tests.helpers.tiny import finished, ids, run, tokens

PROMPTS = (
    "Explain hash tables to a ten-year-old.",
    "Write this line ten times: The quick brown fox jumps over the lazy dog.",
    "Write a Python function that reverses a string, with a docstring.",
)

pytestmark = pytest.mark.real_model


@pytest.fixture(scope="module")
def engine(smollm2_path, tmp_path_factory):
    engine = Engine(prepared_dir=tmp_path_factory.mktemp("prepared"))
    request = LoadRequest(target=str(smollm2_path), precision="float32")
    engine.load(request, lambda progress: None, CancelToken())
    yield engine
    engine.unload()


def ask(prompt, drafter, gamma=5):
    return GenerateRequest(
        messages=(("user", prompt),),
        speculation=SpeculationParams(drafter=drafter, gamma=gamma),
        max_new_tokens=64,
    )


@pytest.mark.parametrize("prompt", PROMPTS)
def test_prompt_lookup_on_the_default_model_equals_plain_decoding(engine, prompt):
    plain = run(engine, ask(prompt, "off"))
    for drafter, gamma in (("ngram", 3), ("hybrid", 8)):
        drafted = run(engine, ask(prompt, drafter, gamma))
        assert ids(drafted) == ids(plain)
        assert finished(drafted).text == finished(plain).text


def test_repeated_text_is_mostly_accepted_in_long_runs(engine):
    events = run(engine, ask(PROMPTS[1], "ngram", 8))
    accepted = [token.origin == "accepted" for token in tokens(events)]
    assert sum(accepted) > len(accepted) / 2
    assert any(all(pair) for pair in pairwise(accepted))


def test_the_reply_is_text_of_the_model_and_not_noise(engine):
    events = run(engine, ask("What is the capital of France? Answer in one word.", "off"))
    assert "Paris" in finished(events).text

"""The embedded default model: speculative replies equal plain ones in float32 and in int8."""

import pytest

from core.cancel import CancelToken
from core.engine import Engine
from core.requests import GenerateRequest, LoadRequest, SpeculationParams
from tests.helpers.tiny import finished, ids, run

PROMPTS = (
    "Explain hash tables to a ten-year-old.",
    "Repeat this three times: The quick brown fox jumps over the lazy dog.",
    "Write a Python function that reverses a string, with a docstring.",
)

pytestmark = pytest.mark.real_model


@pytest.fixture(scope="module", params=["float32", "int8"])
def engine(request, smollm2_path, prepared_dir):
    engine = Engine(prepared_dir=prepared_dir)
    wanted = LoadRequest(target=str(smollm2_path), precision=request.param)
    engine.load(wanted, lambda progress: None, CancelToken())
    yield engine
    engine.unload()


@pytest.fixture(scope="module")
def length(engine):
    """On the int8 runner identity holds bit for bit, so there a longer reply proves more."""
    return 200 if engine.loaded.precision == "int8" else 64


def ask(prompt, drafter, gamma=5, length=64):
    return GenerateRequest(
        messages=(("user", prompt),),
        speculation=SpeculationParams(drafter=drafter, gamma=gamma),
        max_new_tokens=length,
    )


@pytest.mark.parametrize("prompt", PROMPTS)
def test_drafting_for_the_default_model_equals_plain_decoding(engine, prompt, length):
    plain = run(engine, ask(prompt, "off", length=length))
    for drafter, gamma in (("ngram", 3), ("mtp", 3), ("hybrid", "auto"), ("hybrid", 8)):
        drafted = run(engine, ask(prompt, drafter, gamma, length))
        assert ids(drafted) == ids(plain)
        assert finished(drafted).text == finished(plain).text


def test_text_that_repeats_itself_is_accepted_in_long_runs(engine, smollm2):
    line = "The quick brown fox jumps over the lazy dog.\n"
    request = GenerateRequest(
        prompt_ids=tuple(smollm2.target.tokenizer.encode(6 * line)),
        speculation=SpeculationParams(drafter="ngram", gamma=8),
        max_new_tokens=64,
    )
    events = run(engine, request)
    assert finished(events).text.startswith(line)
    assert finished(events).metrics.mean_acceptance_length > 6.0


def test_the_shipped_head_drafts_what_the_default_model_says(engine):
    assert engine.loaded.head is not None
    rounds = tokens = 0
    for prompt in PROMPTS:
        metrics = finished(run(engine, ask(prompt, "mtp", 3))).metrics
        rounds += metrics.rounds
        tokens += metrics.tokens
    assert tokens / rounds > 1.5


def test_the_reply_is_text_of_the_model_and_not_noise(engine):
    events = run(engine, ask("What is the capital of France? Answer in one word.", "off"))
    assert "Paris" in finished(events).text

"""A bad value is refused where it is made, in one sentence that names field, value and range."""

import math

import pytest

from core.errors import UserError
from core.requests import (
    MAX_GAMMA,
    GenerateRequest,
    LoadRequest,
    SamplingParams,
    SpeculationParams,
)

HELLO = (("user", "Hello"),)

BAD_NUMBERS = [
    (
        SamplingParams,
        "temperature",
        [-0.1, 100.1, math.nan, math.inf, 10**400, "1", None, True],
        "0 to 100",
    ),
    (SamplingParams, "top_k", [-1, 2**31, 1.5, "5", None, True], "0 to 2147483647"),
    (SamplingParams, "top_p", [-0.1, 1.1, math.nan, "1", None], "0 to 1"),
    (SamplingParams, "min_p", [-0.1, 1.1, math.nan, "0", None], "0 to 1"),
    (
        SamplingParams,
        "repetition_penalty",
        [0, 0.0, -1.0, 100.5, math.nan, math.inf, None],
        "0.01 to 100",
    ),
    (SamplingParams, "presence_penalty", [-100.5, 100.5, math.nan, "0", None], "-100 to 100"),
    (SamplingParams, "frequency_penalty", [-100.5, 100.5, math.nan, "0", None], "-100 to 100"),
    (SamplingParams, "seed", [-1, 2**63, 1.0, "7", True], f"0 to {2**63 - 1}"),
    (SpeculationParams, "gamma", [-1, MAX_GAMMA + 1, 2.0, "4", None, True], "0 to 16"),
]

CASES = [
    (kind, field, value, allowed)
    for kind, field, values, allowed in BAD_NUMBERS
    for value in values
]


@pytest.mark.parametrize(("kind", "field", "value", "allowed"), CASES)
def test_a_bad_number_names_field_value_and_range(kind, field, value, allowed):
    with pytest.raises(UserError) as caught:
        kind(**{field: value})
    assert caught.value.message == f"{field} is {value!r}."
    assert allowed in caught.value.action


def test_a_nucleus_of_nothing_is_refused():
    with pytest.raises(UserError, match=r"top_p is 0\. It must be above 0"):
        SamplingParams(top_p=0.0)


@pytest.mark.parametrize(
    ("kind", "field", "value", "allowed"),
    [
        (SpeculationParams, "drafter", "magic", ["off", "model", "ngram", "hybrid"]),
        (SpeculationParams, "drafter", None, ["off"]),
        (SpeculationParams, "rule", "lucky", ["exact"]),
        (LoadRequest, "device", "tpu", ["auto", "cpu", "cuda"]),
        (LoadRequest, "precision", "int3", ["auto", "float32", "bfloat16", "int8", "nf4"]),
    ],
)
def test_an_unknown_choice_names_field_value_and_choices(kind, field, value, allowed):
    fields = {"target": "model.gguf"} if kind is LoadRequest else {}
    with pytest.raises(UserError) as caught:
        kind(**fields, **{field: value})
    assert caught.value.message == f"{field} is {value!r}."
    for choice in allowed:
        assert choice in caught.value.action


@pytest.mark.parametrize("value", [0, -1, 1.5, "5", None, True])
def test_the_reply_must_be_allowed_a_token(value):
    with pytest.raises(UserError) as caught:
        GenerateRequest(messages=HELLO, max_new_tokens=value)
    assert caught.value.message == f"max_new_tokens is {value!r}."
    assert "from 1" in caught.value.action


@pytest.mark.parametrize("fields", [{}, {"messages": ()}, {"prompt_ids": ()}])
def test_a_request_without_text_is_refused(fields):
    with pytest.raises(UserError, match=r"has no text\. Write a message first\."):
        GenerateRequest(**fields)


def test_an_unknown_role_is_named():
    with pytest.raises(UserError, match=r"role 'robot'\. It must be one of: system, user, assis"):
        GenerateRequest(messages=(("robot", "Hello"),))


@pytest.mark.parametrize("text", [None, 5, b"Hello"])
def test_a_message_must_be_text(text):
    with pytest.raises(UserError, match="not text"):
        GenerateRequest(messages=(("user", text),))


@pytest.mark.parametrize("stop", ["END", ("",), ("END", ""), (5,), (None,)])
def test_stop_strings_must_be_a_list_of_texts(stop):
    with pytest.raises(UserError, match="stop string"):
        GenerateRequest(messages=HELLO, stop=stop)


@pytest.mark.parametrize("value", [15, 0, -1, 2.5, True])
def test_a_context_too_short_to_chat_is_refused(value):
    with pytest.raises(UserError, match="context_limit is"):
        LoadRequest(target="model.gguf", context_limit=value)


def test_a_load_without_a_model_is_refused():
    with pytest.raises(UserError, match=r"No model was chosen\."):
        LoadRequest(target="")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (SamplingParams, {"temperature": 0}),
        (SamplingParams, {"temperature": 100.0, "top_p": 1, "min_p": 1.0, "top_k": 0}),
        (SamplingParams, {"repetition_penalty": 0.01, "seed": 0}),
        (SamplingParams, {"presence_penalty": -100.0, "frequency_penalty": 100.0}),
        (SpeculationParams, {"gamma": 0}),
        (SpeculationParams, {"gamma": MAX_GAMMA, "drafter": "hybrid"}),
        (GenerateRequest, {"prompt_ids": (1,), "max_new_tokens": 1}),
        (LoadRequest, {"target": "a", "draft": "b", "context_limit": 16}),
    ],
)
def test_values_at_the_edge_of_their_range_are_taken(kind, fields):
    made = kind(**fields)
    for name, value in fields.items():
        assert getattr(made, name) == value


@pytest.mark.parametrize("temperature", [1e-46, 5e-324, 1e-7])
def test_a_temperature_too_small_to_divide_by_is_refused(temperature):
    with pytest.raises(UserError, match=r"temperature is .* 0 \(greedy\) or"):
        SamplingParams(temperature=temperature)


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt_ids": (2.5,)},
        {"prompt_ids": ("a",)},
        {"prompt_ids": (-1,)},
        {"messages": (("user", "a", "b"),)},
        {"messages": ("hello",)},
        {"messages": (("user", "half \ud800 a character"),)},
        {"messages": (("user", "a"),), "stop": None},
        {"messages": (("user", "a"),), "stop": "text"},
        {"messages": (("user", "a"),), "stop": ("",)},
    ],
)
def test_what_no_request_can_hold_is_refused_in_words(wrong):
    with pytest.raises(UserError):
        GenerateRequest(**wrong)

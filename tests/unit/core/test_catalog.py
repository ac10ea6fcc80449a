"""The catalog that ships, and what it refuses."""

import json

import pytest

from core.errors import BugError, UserError
from core.hub.catalog import CATALOG_PATH, load_catalog, parse_catalog


def shipped() -> dict:
    return json.loads(CATALOG_PATH.read_text(encoding="utf-8"))


def test_the_shipped_catalog_has_the_models_and_pairs_that_the_program_names():
    catalog = load_catalog()
    assert list(catalog.models) == ["smollm2-135m", "qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"]
    assert catalog.pairs["smollm2-135m"].draft is None
    assert catalog.pairs["qwen2.5-coder"].target == "qwen2.5-coder-1.5b"
    assert catalog.pairs["qwen2.5-coder"].draft == "qwen2.5-coder-0.5b"


def test_every_model_says_its_licence_its_size_and_what_it_suits():
    for model in load_catalog().models.values():
        assert model.licence == "Apache-2.0"
        assert model.size_bytes == sum(part.size_bytes for part in model.parts)
        assert model.suits.endswith(".")


def test_a_pair_stands_for_its_target_and_its_draft():
    catalog = load_catalog()
    ids = [model.id for model in catalog.members("qwen2.5-coder")]
    assert ids == ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"]
    assert [model.id for model in catalog.members("smollm2-135m")] == ["smollm2-135m"]


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(UserError, match=r"nothing called 'gpt-5'.*qwen2\.5-coder"):
        load_catalog().members("gpt-5")
    with pytest.raises(UserError, match=r"no model called 'gpt-5'.*smollm2-135m"):
        load_catalog().model("gpt-5")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "../escape"),
        ("file", "../../.bashrc"),
        ("file", "a\\b.gguf"),
        ("sha256", "abc"),
        ("size_bytes", 1),
        ("parts", []),
        ("licence", ""),
        ("unknown", 1),
    ],
)
def test_a_contradictory_entry_is_a_fault_of_the_program(field: str, value: object):
    data = shipped()
    data["models"][0][field] = value
    with pytest.raises(BugError):
        parse_catalog(data)


@pytest.mark.parametrize("gamma", ["auto", 0, 16])
def test_a_pair_starts_with_an_automatic_or_a_fixed_gamma(gamma: object):
    data = shipped()
    data["pairs"][0]["gamma"] = gamma
    assert next(iter(parse_catalog(data).pairs.values())).gamma == gamma


@pytest.mark.parametrize("gamma", ["many", 17, -1, None, 2.5, True])
def test_a_pair_with_another_gamma_is_a_fault_of_the_program(gamma: object):
    data = shipped()
    data["pairs"][0]["gamma"] = gamma
    with pytest.raises(BugError, match="gamma is"):
        parse_catalog(data)


def test_the_shipped_pairs_let_the_engine_choose_gamma():
    assert {pair.gamma for pair in load_catalog().pairs.values()} == {"auto"}


def test_a_pair_of_an_unknown_model_is_a_fault_of_the_program():
    data = shipped()
    data["pairs"][0]["target"] = "nobody"
    with pytest.raises(BugError, match="nobody"):
        parse_catalog(data)


def test_an_id_that_appears_twice_is_a_fault_of_the_program():
    data = shipped()
    data["models"].append(data["models"][0])
    with pytest.raises(BugError, match="twice"):
        parse_catalog(data)

"""The benchmark's prompts, and how a configuration is written."""

import pytest

from core.bench.cases import Suite, load_cases, parse_suite, parse_suites
from core.bench.configuration import (
    default_configurations,
    parse_configuration,
    parse_configurations,
    with_baselines,
)
from core.errors import BugError, UserError
from core.events import DrafterOption
from core.requests import DrafterKind


def test_every_suite_has_four_to_six_different_prompts() -> None:
    for suite in Suite:
        cases = load_cases([suite])
        assert 4 <= len(cases) <= 6
        assert len({case.text for case in cases}) == len(cases)
        assert {case.suite for case in cases} == {suite}


def test_texts_to_summarise_are_as_long_as_the_reference_and_may_get_512_tokens() -> None:
    for case in load_cases([Suite.SUMMARISE]):
        assert 150 < len(case.text.split()) < 260
        assert case.max_new_tokens == 512


def test_an_edit_gives_the_code_that_is_to_be_changed() -> None:
    assert all(case.text.count("```") == 2 for case in load_cases([Suite.EDIT]))


def test_fewer_prompts_and_shorter_replies_can_be_asked_for() -> None:
    cases = load_cases([Suite.CHAT, Suite.EDIT], per_suite=2, max_new_tokens=5)
    assert [case.suite for case in cases] == ["chat", "chat", "edit", "edit"]
    assert {case.max_new_tokens for case in cases} == {5}


def test_suites_are_named_with_commas_each_once_or_all_of_them() -> None:
    assert parse_suites("edit, code,edit") == (Suite.EDIT, Suite.CODE)
    assert parse_suites("all") == tuple(Suite)


@pytest.mark.parametrize("text", ["", "songs", "code,,edit", "code,all"])
def test_a_suite_that_does_not_exist_is_named_with_those_that_do(text: str) -> None:
    with pytest.raises(UserError, match="no suite called") as caught:
        parse_suites(text)
    assert "summarise" in caught.value.action


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "chat"},
        {"max_new_tokens": 0},
        {"prompts": []},
        {"prompts": [{"id": "a", "text": ["x"]}, {"id": "a", "text": ["y"]}]},
        {"prompts": [{"id": "a", "text": [" "]}]},
        {"prompts": [{"id": "a"}]},
        {"more": 1},
    ],
    ids=str,
)
def test_a_file_of_prompts_that_contradicts_itself_is_a_fault(change: dict[str, object]) -> None:
    good = {
        "suite": "code",
        "about": "",
        "max_new_tokens": 8,
        "prompts": [{"id": "a", "text": ["x", "y"]}],
    }
    assert parse_suite(good, Suite.CODE)[0].text == "x\ny"
    with pytest.raises(BugError, match="code"):
        parse_suite({**good, **change}, Suite.CODE)


@pytest.mark.parametrize(
    ("text", "drafter", "gamma", "rule", "temperature"),
    [
        ("off", "off", "auto", "exact", 0.0),
        ("off@0.7", "off", "auto", "exact", 0.7),
        ("model:4", "model", 4, "exact", 0.0),
        ("hybrid:auto", "hybrid", "auto", "exact", 0.0),
        ("ngram:8:block", "ngram", 8, "block", 0.0),
        ("model:auto:typical@1", "model", "auto", "typical", 1.0),
    ],
)
def test_a_configuration_is_read_and_written_in_the_same_way(
    text: str, drafter: str, gamma: int | str, rule: str, temperature: float
) -> None:
    read = parse_configuration(text)
    assert (read.drafter, read.gamma, read.rule, read.temperature) == (
        drafter,
        gamma,
        rule,
        temperature,
    )
    assert read.name == text
    assert parse_configuration(read.name) == read


def test_a_configuration_can_name_one_of_several_heads() -> None:
    read = parse_configuration("mtp/mine:3@0.7")
    assert (read.drafter, read.head, read.gamma, read.temperature) == ("mtp", "mine", 3, 0.7)
    assert read.name == "mtp/mine:3@0.7"
    assert read.baseline.name == "off@0.7"


def test_what_is_left_out_is_automatic_exact_and_greedy() -> None:
    assert parse_configuration(" hybrid ") == parse_configuration("hybrid:auto:exact@0")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no drafter"),
        ("magic:4", "names no drafter"),
        ("off:4", "too many parts"),
        ("model:4:exact:more", "too many parts"),
        ("model:", "draft length ''"),
        ("model:0", "draft length '0'"),
        ("model:17", "draft length '17'"),
        ("model:²", "draft length '²'"),
        ("model:4:magic", "rule is 'magic'"),
        ("model:4@", "no number after the @"),
        ("model:4@warm", "no number after the @"),
        ("model:4@-1", "temperature is -1"),
        ("model:4@nan", "temperature is nan"),
        ("mtp/", "no head after the slash"),
        ("model/mine:4", "The drafter model has no head"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_quoted_with_what_is_wrong(
    text: str, said: str
) -> None:
    with pytest.raises(UserError) as caught:
        parse_configuration(text)
    assert repr(text) in caught.value.message
    assert said in caught.value.message
    assert caught.value.action
    assert "\n" not in str(caught.value)


def test_plain_decoding_is_measured_at_every_temperature_that_is_asked_for() -> None:
    asked = parse_configurations("model:2,ngram:3@0.5,model:2")
    assert [one.name for one in with_baselines(asked)] == [
        "off",
        "off@0.5",
        "model:2",
        "ngram:3@0.5",
    ]


def test_a_lossy_rule_is_lossy_above_temperature_zero_alone() -> None:
    assert parse_configuration("model:2:typical@1").lossy
    assert not parse_configuration("model:2:typical").lossy
    assert not parse_configuration("model:2:block@1").lossy


def test_by_default_every_drafter_of_the_pair_is_measured_and_no_n_gram_twice() -> None:
    def names(*kinds: str) -> list[str]:
        options = [DrafterOption(kind=kind, available=kind in kinds) for kind in DrafterKind]
        return [one.name for one in default_configurations(options)]

    assert names("off", "ngram", "hybrid") == ["off", "ngram:auto"]
    assert set(names("off", "model", "ngram", "hybrid")) == {
        "off",
        "model:auto",
        "ngram:auto",
        "hybrid:auto",
    }

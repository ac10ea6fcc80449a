"""A drafter and a rule have one name each, wherever the window shows them."""

from pathlib import Path

import pytest

from app.controllers.force import drafter_choices
from app.controllers.pairs import pair_choices
from app.names import DRAFTER_NAMES, RULE_NAMES, drafter_name, head_name, source_name, titled
from app.widgets.formats import rule_words
from app.widgets.settings_choices import DRAFTERS, OWN_FILES, RULES
from core.hub.library import Library
from core.requests import DrafterKind, Rule


def test_every_drafter_and_every_rule_has_a_name() -> None:
    assert set(DRAFTER_NAMES) == set(DrafterKind)
    assert set(RULE_NAMES) == set(Rule)


def test_the_lists_offer_drafters_under_their_names_before_and_after_a_load() -> None:
    names = {kind: titled(name) for kind, name in DRAFTER_NAMES.items()}
    assert {choice.value: choice.title for choice in DRAFTERS} == names
    assert {choice.value: choice.title for choice in drafter_choices(None)} == names


def test_a_rule_is_called_the_same_in_the_list_and_in_a_sentence() -> None:
    for choice in RULES:
        lossy = Rule(choice.value).lossy
        name = RULE_NAMES[choice.value]
        assert choice.title == titled(name) + (" (lossy)" if lossy else "")
        assert name in rule_words(choice.value, lossy=lossy)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("model", "draft model"),
        ("mtp", "MTP head"),
        ("early-exit", "early exit"),
        ("ngram", "n-gram"),
        ("ngram-3", "n-gram of 3"),
        ("new-kind", "new-kind"),
    ],
)
def test_a_source_of_drafts_is_named_as_its_drafter(source: str, name: str) -> None:
    assert source_name(source) == name


def test_own_files_have_one_name_before_and_after_the_pairs_are_known(tmp_path: Path) -> None:
    assert pair_choices(Library(tmp_path))[-1] == OWN_FILES


def test_an_unknown_drafter_of_a_stored_reply_is_shown_as_it_is() -> None:
    assert drafter_name("none") == "none"


def test_a_head_is_named_without_its_host() -> None:
    assert head_name("small-sequential on SmolLM2 on disk") == "small-sequential on SmolLM2"
    assert head_name("small") == "small"

"""What really drafts, and the reason in words when nothing does."""

from dataclasses import replace

from app.controllers.force import (
    drafter_choices,
    head_of,
    head_words,
    in_force,
    off_reason,
    speculation_for,
)
from app.settings import Settings
from core.events import DrafterOption, Loaded
from core.requests import DrafterKind

NO_DRAFT = "the pair has no draft model."
LOADED = Loaded(
    target="tiny",
    draft=None,
    device="cpu",
    precision="int8",
    context_limit=2048,
    drafters=(
        DrafterOption(kind="off", available=True),
        DrafterOption(kind="ngram", available=True),
        DrafterOption(kind="hybrid", available=True),
        DrafterOption(kind="model", available=False, reason=NO_DRAFT),
    ),
)


def why(settings: Settings, loaded: Loaded | None = LOADED) -> str:
    return off_reason(settings, speculation_for(settings, loaded), loaded)


def test_an_available_drafter_is_used_as_chosen() -> None:
    settings = Settings(drafter="ngram", gamma=3)
    assert speculation_for(settings, LOADED).drafter == "ngram"
    assert why(settings) == ""


def test_a_drafter_that_the_pair_lacks_is_off_with_the_engines_reason() -> None:
    settings = Settings(drafter="model")
    assert speculation_for(settings, LOADED).drafter == "off"
    assert why(settings) == NO_DRAFT


def test_each_way_of_not_drafting_has_its_own_reason() -> None:
    reasons = {
        why(Settings(drafter="off")),
        why(Settings(drafter="ngram", gamma=0)),
        why(Settings(drafter="model")),
        why(Settings(), None),
    }
    assert len(reasons) == 4
    assert "" not in reasons


def test_what_is_in_force_shows_no_drafter_and_no_gamma_while_off() -> None:
    settings = Settings(drafter="model", gamma=5)
    now = in_force("Pair", speculation_for(settings, LOADED), LOADED, why(settings))
    assert (now.drafter, now.gamma, now.device, now.off_reason) == ("off", "0", "cpu", NO_DRAFT)


def test_an_automatic_gamma_is_called_so_and_shows_what_was_drafted_last() -> None:
    settings = Settings(drafter="ngram")
    speculation = speculation_for(settings, LOADED)
    assert in_force("Pair", speculation, LOADED, "").gamma == "automatic"
    assert in_force("Pair", speculation, LOADED, "", 0).gamma == "automatic (0 now)"
    assert in_force("Pair", replace(speculation, gamma=3), LOADED, "", 2).gamma == "3"


def test_a_lossy_rule_is_in_force_only_while_something_drafts() -> None:
    speculation = speculation_for(Settings(drafter="ngram", rule="typical"), LOADED)
    assert in_force("Pair", speculation, LOADED, "").lossy
    assert not in_force("Pair", speculation, LOADED, "it is off").lossy
    assert not in_force("Pair", replace(speculation, rule="block"), LOADED, "").lossy


def test_every_drafter_is_listed_and_refused_ones_say_why() -> None:
    choices = {choice.value: choice for choice in drafter_choices(LOADED)}
    assert set(choices) == set(DrafterKind)
    assert not choices["model"].enabled
    assert choices["model"].reason == NO_DRAFT


def test_the_head_is_told_by_name_or_by_why_there_is_none() -> None:
    reason = "no head was trained for this model"
    option = DrafterOption(kind="mtp", available=False, reason=reason)
    assert head_words(None) == ""
    assert head_words(LOADED) == "no head was trained for these models"
    assert head_words(replace(LOADED, drafters=(option,))) == reason
    assert head_words(replace(LOADED, head="mine on tiny")) == "mine"


def test_a_head_is_in_force_with_the_drafters_that_use_it() -> None:
    loaded = replace(LOADED, head="mine on tiny")
    using = {
        kind
        for kind in DrafterKind
        if head_of(speculation_for(Settings(drafter=kind), loaded), loaded)
    }
    assert using == {"mtp", "hybrid"}
    speculation = speculation_for(Settings(drafter="hybrid"), loaded)
    assert in_force("Pair", speculation, loaded, "").head == "mine on tiny"
    assert in_force("Pair", speculation, loaded, "gamma is 0").head == ""

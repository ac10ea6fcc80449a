"""The four fixed suites of prompts, read from ``resources/prompts/bench``."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from core.errors import BugError, UserError
from core.requests import GenerateRequest

PROMPTS_DIR = Path(__file__).resolve().parents[2] / "resources" / "prompts" / "bench"

ALL_SUITES = "all"


class Suite(StrEnum):
    """What a prompt asks for; how well speculation pays depends on it more than on anything."""

    CHAT = "chat"
    CODE = "code"
    EDIT = "edit"
    SUMMARISE = "summarise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One prompt of a suite and the longest reply it gets, in tokens."""

    suite: Suite
    id: str
    text: str
    max_new_tokens: int

    @property
    def name(self) -> str:
        """The suite and the id."""
        return f"{self.suite}/{self.id}"


def parse_suites(text: str) -> tuple[Suite, ...]:
    """Return the suites of a list with commas, or of ``all``, each once and in order.

    Raises UserError naming what is not known.
    """
    if text.strip() == ALL_SUITES:
        return tuple(Suite)
    suites: dict[Suite, None] = {}
    for name in text.split(","):
        try:
            suites[Suite(name.strip())] = None
        except ValueError:
            known = ", ".join([*Suite, ALL_SUITES])
            raise UserError(
                f"There is no suite called {name.strip()!r}.", f"Choose from: {known}."
            ) from None
    return tuple(suites)


def load_cases(
    suites: Sequence[Suite],
    *,
    per_suite: int | None = None,
    max_new_tokens: int | None = None,
    folder: Path = PROMPTS_DIR,
) -> tuple[Case, ...]:
    """Return the prompts of the suites: the first ``per_suite`` of each, or all.

    ``max_new_tokens`` replaces the suites' own. Raises UserError for a number out of range, and
    BugError when a file contradicts itself, since it ships with the program.
    """
    for name, value in (("prompts", per_suite), ("max_new_tokens", max_new_tokens)):
        if value is not None and value < 1:
            raise UserError(f"{name} is {value}.", "It must be at least 1.")
    cases: list[Case] = []
    for suite in suites:
        path = folder / f"{suite}.json"
        cases += parse_suite(json.loads(path.read_text(encoding="utf-8")), suite, max_new_tokens)[
            :per_suite
        ]
    return tuple(cases)


def parse_suite(
    data: dict[str, Any], suite: Suite, max_new_tokens: int | None = None
) -> tuple[Case, ...]:
    """Return the prompts of one suite's JSON object, whose texts are lists of lines.

    Raises BugError when something is missing, unknown, doubled or out of range.
    """
    try:
        _require(set(data) == {"suite", "about", "max_new_tokens", "prompts"}, suite, "its keys")
        _require(data["suite"] == suite, suite, "it says it is another suite")
        length = data["max_new_tokens"] if max_new_tokens is None else max_new_tokens
        _require(isinstance(length, int) and length > 0, suite, "max_new_tokens")
        cases = tuple(
            Case(suite=suite, id=entry["id"], text="\n".join(entry["text"]), max_new_tokens=length)
            for entry in data["prompts"]
        )
    except (KeyError, TypeError) as error:
        raise BugError(f"The prompts of the suite {suite} are wrong: {error}.") from None
    ids = [case.id for case in cases]
    _require(bool(ids) and len(set(ids)) == len(ids), suite, "an id stands twice, or none")
    for case in cases:
        GenerateRequest(messages=(("user", case.text),))
        _require(bool(case.text.strip()) and bool(case.id), suite, "a prompt without text or id")
    return cases


def _require(condition: bool, suite: Suite, problem: str) -> None:
    if not condition:
        raise BugError(f"The prompts of the suite {suite} are wrong: {problem}.")

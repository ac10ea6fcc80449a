"""Heads on the command line: asked for by name or folder, refused in words, and listed."""

import json
from pathlib import Path

import pytest

from core.cli.checks import CHECKS, Verdict
from core.events import DrafterOption
from core.hub import heads
from core.models.mtp.card import CARD_NAME
from tests.helpers.cli import CommandLine, make_model_file
from tests.helpers.fake_engine import FakeEngine
from tests.helpers.heads import SHIPPED, saved_head, ship_one_head

COMMANDS = (
    ("ask", "Hi"),
    ("chat",),
    ("bench", "--suite", "chat", "--prompts", "1", "--repeats", "1", "--config", "ngram:4"),
)
REFUSAL = DrafterOption(
    kind="mtp", available=False, reason="the head mine was made for another model."
)


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return ship_one_head(tmp_path, monkeypatch)


@pytest.fixture
def model(tmp_path: Path) -> tuple[str, str]:
    return "--target", make_model_file(tmp_path)


@pytest.mark.parametrize(
    ("argv", "option"),
    [*((argv, "--head") for argv in COMMANDS), (COMMANDS[-1], "--also-head")],
    ids=["ask", "chat", "bench", "bench also"],
)
def test_a_head_that_is_not_there_is_refused_before_anything_is_loaded(
    argv: tuple[str, ...], option: str, model: tuple[str, str], own: Path
) -> None:
    saved_head(own / "mine")
    for name in ("nowhere", str(own / "nowhere"), str(own)):
        engine = FakeEngine()
        command = CommandLine(engine=engine, piped="Hi")
        value = name if option == "--head" else f"other={name}"
        assert command.run(*argv, *model, option, value) == 1
        assert command.complaint.startswith("paceline: There is no head ")
        assert f"mine, {SHIPPED}" in command.complaint
        assert command.complaint.count("\n") == 1
        assert engine.load_requests == []


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
def test_a_head_is_taken_by_its_name(argv: tuple[str, ...], model: tuple[str, str]) -> None:
    engine = FakeEngine(head=f"{SHIPPED} on fake-135m")
    assert CommandLine(engine=engine, piped="Hi").run(*argv, *model, "--head", SHIPPED) == 0
    assert [request.head for request in engine.load_requests] == [
        str(heads.SHIPPED_HEADS / SHIPPED)
    ]


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
def test_a_head_that_the_models_cannot_use_ends_the_command_with_why(
    argv: tuple[str, ...], model: tuple[str, str], own: Path
) -> None:
    saved_head(own / "mine")
    engine = FakeEngine(
        drafters=(DrafterOption(kind="ngram", available=True), REFUSAL),
        notices=("The head was left out: the head mine was made for another model.",),
    )
    command = CommandLine(engine=engine, piped="Hi")
    assert command.run(*argv, *model, "--head", "mine") == 1
    assert command.complaint.splitlines()[-1] == (
        "paceline: The head mine was made for another model. "
        "Choose another (paceline models lists them), or leave it out."
    )
    assert command.out.getvalue() == ""
    assert engine.requests == []


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("there is not enough memory for it", "there is not enough memory for it"),
        ("", "the models were loaded without it"),
    ],
)
def test_a_refusal_names_the_head(
    reason: str, said: str, model: tuple[str, str], own: Path
) -> None:
    saved_head(own / "mine")
    refusal = DrafterOption(kind="mtp", available=False, reason=reason)
    command = CommandLine(engine=FakeEngine(drafters=(refusal,)))
    assert command.run("ask", "Hi", *model, "--head", "mine") == 1
    last = command.complaint.splitlines()[-1]
    assert last.startswith(f"paceline: The head mine cannot be used: {said}. Choose another")


def test_a_refused_head_ends_the_json_with_failed(model: tuple[str, str], own: Path) -> None:
    saved_head(own / "mine")
    for name in ("nowhere", "mine"):
        command = CommandLine(engine=FakeEngine(drafters=(REFUSAL,)))
        assert command.run("ask", "Hi", *model, "--head", name, "--json") == 1
        *before, last = command.events()
        assert (last["event"], last["kind"]) == ("failed", "user")
        assert {event["event"] for event in before} <= {"load_progress"}


def test_without_a_head_of_ones_own_the_models_may_have_none(model: tuple[str, str]) -> None:
    command = CommandLine(engine=FakeEngine(drafters=(REFUSAL,)))
    assert command.run("ask", "Hi", *model) == 0


def _listed(*options: str) -> str:
    command = CommandLine()
    assert command.run("models", "list", *options) == 0
    assert command.complaint == ""
    return command.out.getvalue()


def test_the_list_shows_each_head_on_a_line_and_a_damaged_one_as_such(own: Path) -> None:
    saved_head(own / "mine", acceptance_length=1.456)
    saved_head(own / "young")
    (saved_head(own / "broken") / CARD_NAME).write_text("{")
    header, *rows = _listed().split("\n\n")[-1].splitlines()
    assert header.split("  ")[0] == "head"
    found = {row.split()[0]: " ".join(row.split()[1:]) for row in rows}
    assert list(found) == ["broken", "mine", "young", SHIPPED]
    assert found["broken"].startswith("- damaged - ")
    assert found["mine"].startswith("none sequential 1.46 ")
    assert found["young"].startswith("none sequential - ")
    assert all(found[name].endswith(" kB your own") for name in ("broken", "mine", "young"))
    assert found[SHIPPED] == "SmolLM2-135M-Instruct.Q4_1 sequential 2.63 10 MB shipped"


def test_the_list_as_json_has_the_heads(own: Path) -> None:
    (saved_head(own / "broken") / CARD_NAME).write_text("{")
    broken, shipped = json.loads(_listed("--json"))["heads"]
    assert (broken["name"], broken["path"]) == ("broken", str(own / "broken"))
    assert broken["damage"]
    assert broken["acceptance_length"] is None
    assert (shipped["name"], shipped["shipped"], shipped["damage"]) == (SHIPPED, True, "")
    assert (shipped["kind"], shipped["depth"]) == ("sequential", 3)
    assert shipped["size_bytes"] == 10_455_088


def test_the_doctor_counts_the_heads_and_names_the_damaged_ones(own: Path) -> None:
    assert CHECKS["heads"]("heads").verdict is Verdict.OK
    assert CHECKS["heads"]("heads").detail == "1 shipped, 0 of your own"
    saved_head(own / "mine")
    (saved_head(own / "broken") / CARD_NAME).write_text("{")
    check = CHECKS["heads"]("heads")
    assert check.verdict is Verdict.WARN
    assert check.detail.startswith("1 shipped, 1 of your own; damaged: broken (")
    assert "Train" in check.action

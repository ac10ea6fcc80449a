"""Heads on the command line: asked for by name or folder, refused in words, and listed."""

from pathlib import Path

import pytest

from core.events import DrafterOption
from core.hub.heads import SHIPPED_HEADS, head_folders
from tests.helpers.cli import CommandLine, make_model_file
from tests.helpers.fake_engine import FakeEngine
from tests.helpers.heads import saved_head

SHIPPED = "smollm2-135m-instruct-sequential"
COMMANDS = (
    ("ask", "Hi"),
    ("chat",),
    ("bench", "--suite", "chat", "--prompts", "1", "--repeats", "1", "--config", "ngram:4"),
)
REFUSAL = DrafterOption(
    kind="mtp", available=False, reason="the head mine was made for another model"
)


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))
    return head_folders()[0]


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
    assert [request.head for request in engine.load_requests] == [str(SHIPPED_HEADS / SHIPPED)]


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
        "paceline: The head mine cannot be used: the head mine was made for another model. "
        "Choose one that was made for these models, or leave it out; "
        "paceline models list shows the heads."
    )
    assert command.out.getvalue() == ""
    assert engine.requests == []


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

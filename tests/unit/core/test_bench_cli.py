"""``paceline bench``: reports where they were asked for, one line for what is wrong."""

import json
from pathlib import Path

import pytest

from core.cli import main
from core.cli.bench_arguments import DESCRIPTION
from core.cli.parser import DEFAULT_PAIR, build_parser
from core.errors import UserError
from core.events import Failed, Notice, Round
from core.hub.catalog import load_catalog
from tests.helpers.cli import CommandLine, make_model_file
from tests.helpers.fake_engine import FakeEngine, make_round
from tests.helpers.heads import saved_head

TINY = ("--suite", "chat", "--prompts", "1", "--repeats", "2", "--config", "ngram:4")


@pytest.fixture
def model(tmp_path: Path) -> tuple[str, str]:
    return "--target", make_model_file(tmp_path)


def test_help_shows_examples_and_how_a_configuration_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["bench", "--help"]) == 0
    text = capsys.readouterr().out
    assert "examples:" in text
    assert "exit codes:" in text
    assert "hybrid:8:block@0.7" in text


def test_an_example_with_a_draft_model_names_a_pair_that_has_one() -> None:
    pairs = load_catalog().pairs
    for line in DESCRIPTION.splitlines():
        if "--config" in line and "model:" in line:
            args = build_parser().parse_args(line.split()[1:])
            assert pairs[args.pair or DEFAULT_PAIR].draft, line


def test_a_table_goes_to_standard_output_and_progress_to_standard_error(
    model: tuple[str, str],
) -> None:
    engine = FakeEngine()
    command = CommandLine(engine=engine)
    assert command.run("bench", *model, *TINY) == 0
    out, err = command.out.getvalue(), command.err.getvalue()
    assert "fake-135m, int8 on cpu" in out
    assert "ngram:4" in out
    assert "4 replies, repeats 2, seed 0" in out
    assert "warming up 1 of 2: off" in err
    assert "4 of 4: chat/tides" in err
    assert "tokens/s" in err
    assert engine.cleared == len(engine.requests) == 6


def test_without_configurations_every_drafter_of_the_pair_is_measured(
    model: tuple[str, str],
) -> None:
    command = CommandLine()
    assert command.run("bench", *model, "--suite", "chat", "--prompts", "1", "--json") == 0
    result = json.loads(command.out.getvalue())
    assert [one["configuration"] for one in result["summaries"]] == ["off", "ngram:auto"]


def test_json_is_one_object_and_nothing_else_on_standard_output(model: tuple[str, str]) -> None:
    command = CommandLine()
    assert command.run("bench", *model, *TINY, "--json") == 0
    result = json.loads(command.out.getvalue())
    assert result["complete"]
    assert len(result["measurements"]) == 4


def test_every_report_can_go_to_a_file_of_its_own(model: tuple[str, str], tmp_path: Path) -> None:
    names = {kind: tmp_path / f"a report.{kind}" for kind in ("json", "markdown", "csv", "plot")}
    options = [part for kind, path in names.items() for part in (f"--{kind}", str(path))]
    names["csv"].write_text("old", encoding="utf-8")
    command = CommandLine()
    assert command.run("bench", *model, *TINY, *options) == 0
    assert json.loads(names["json"].read_text(encoding="utf-8"))["complete"]
    assert names["markdown"].read_text(encoding="utf-8").startswith("# Benchmark\n")
    assert names["csv"].read_text(encoding="utf-8").startswith("suite,configuration,")
    assert names["plot"].read_bytes().startswith(b"\x89PNG")
    assert "ngram:4" in command.out.getvalue()
    assert not list(tmp_path.glob("*.tmp"))


def test_markdown_can_go_to_standard_output(model: tuple[str, str]) -> None:
    command = CommandLine()
    assert command.run("bench", *model, *TINY, "--markdown", "-") == 0
    assert command.out.getvalue().startswith("# Benchmark\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--config", "magic"), "'magic' names no drafter"),
        (("--config", "off,ngram:99"), "'ngram:99' has the draft length '99'"),
        (("--config", "ngram:4@-1"), "temperature is -1"),
        (("--suite", "songs"), "no suite called 'songs'"),
        (("--repeats", "0"), "repeats is 0"),
        (("--prompts", "-1"), "prompts is -1"),
        (("--max-new-tokens", "0"), "max_new_tokens is 0"),
        (("--seed", "-1"), "seed is -1"),
        (("--config", "mtp/mine:3"), "mtp/mine:3 names a head that is not there"),
        (("--also-head", "mine=nowhere"), "There is no head called nowhere"),
        (("--also-head", "mine"), "--also-head 'mine' does not name a head"),
        (("--also-head", "a b=heads"), "--also-head 'a b=heads' does not name a head"),
        (("--also-head", "a=x", "--also-head", "a=y"), "--also-head 'a=y' does not name a head"),
        (("--plot", "-"), "A picture cannot be written to standard output"),
        (("--json", "--csv", "-"), "Two reports cannot share standard output"),
        (("--csv", "/nowhere/report.csv"), "no folder /nowhere"),
        (("--csv", "/"), "'/' is no file name"),
        (("--csv", ""), "'' is no file name"),
    ],
    ids=" ".join,
)
def test_what_is_wrong_is_said_in_one_line_before_anything_is_loaded(
    options: tuple[str, ...], said: str, model: tuple[str, str]
) -> None:
    engine = FakeEngine()
    command = CommandLine(engine=engine)
    assert command.run("bench", *model, *options) == 1
    assert command.complaint.startswith("paceline: ")
    assert said in command.complaint
    assert command.complaint.count("\n") == 1
    assert command.out.getvalue() == ""
    assert engine.load_requests == []


def test_further_heads_are_loaded_and_measured_in_the_same_run(
    model: tuple[str, str], tmp_path: Path
) -> None:
    path = str(saved_head(tmp_path / "mine"))
    engine = FakeEngine(head="mine on fake-135m")
    command = CommandLine(engine=engine)
    options = ("--config", "ngram:4,hybrid/mine:4", "--also-head", f"mine={path}", "--json")
    assert command.run("bench", *model, *TINY[:-2], *options) == 0
    assert [request.head for request in engine.load_requests] == [None, path]
    result = json.loads(command.out.getvalue())
    measured = [one["configuration"] for one in result["summaries"]]
    assert measured == ["off", "ngram:4", "hybrid/mine:4"]


def test_a_drafter_that_the_pair_lacks_is_named_with_its_reason(model: tuple[str, str]) -> None:
    command = CommandLine()
    assert command.run("bench", *model, "--draft", model[1], "--config", "model:4") == 1
    last = command.complaint.splitlines()[-1]
    assert last.startswith("paceline: model:4 cannot be run: This pair has no draft model. ")


def test_a_draft_model_that_is_not_loaded_with_the_target_is_missed_before_loading(
    model: tuple[str, str],
) -> None:
    engine = FakeEngine()
    command = CommandLine(engine=engine)
    assert command.run("bench", *model, "--config", "ngram:4,model:4") == 1
    assert command.complaint == (
        "paceline: model:4 cannot be run: there is no draft model. "
        "Name one with --draft, or choose a pair that has one.\n"
    )
    assert engine.load_requests == []


@pytest.mark.parametrize("suites", ["edit,chat,code", "code,edit,chat", "all"])
def test_suites_are_reported_in_the_order_they_were_asked_for(
    suites: str, model: tuple[str, str]
) -> None:
    asked = "chat,code,edit,summarise" if suites == "all" else suites
    for seed in ("0", "1", "2"):
        command = CommandLine()
        options = ("--suite", suites, "--prompts", "1", "--repeats", "1", "--config", "ngram:4")
        assert command.run("bench", *model, *options, "--seed", seed, "--json") == 0
        reported = [one["suite"] for one in json.loads(command.out.getvalue())["summaries"]]
        assert list(dict.fromkeys(reported)) == [*asked.split(","), "all"]


class InterruptedEngine(FakeEngine):
    """Is asked to stop, as Ctrl+C does, in the reply of that number."""

    at_reply = 5

    def generate(self, request, cancel):  # type: ignore[no-untyped-def]
        for event in super().generate(request, cancel):
            if isinstance(event, Round) and len(self.requests) == self.at_reply:
                cancel.cancel()
            yield event


def test_a_run_that_is_stopped_reports_what_was_measured_and_exits_with_130(
    model: tuple[str, str],
) -> None:
    command = CommandLine(engine=InterruptedEngine())
    assert command.run("bench", *model, *TINY, "--json") == 130
    result = json.loads(command.out.getvalue())
    assert not result["complete"]
    assert len(result["measurements"]) == 2


def test_a_run_stopped_before_its_first_number_still_has_a_report(model: tuple[str, str]) -> None:
    engine = InterruptedEngine()
    engine.at_reply = 1
    command = CommandLine(engine=engine)
    assert command.run("bench", *model, *TINY) == 130
    assert "The run was not completed." in command.out.getvalue()


class FailingEngine(FakeEngine):
    """Fails in its fourth reply."""

    kind = "user"

    def generate(self, request, cancel):  # type: ignore[no-untyped-def]
        if len(self.requests) == 3:
            yield Failed(kind=self.kind, message="Memory ran out.", detail="Traceback: here")
            return
        yield from super().generate(request, cancel)


@pytest.mark.parametrize(("kind", "code"), [("user", 1), ("bug", 70)])
def test_a_reply_that_fails_is_said_and_what_was_measured_is_written(
    kind: str, code: int, model: tuple[str, str], tmp_path: Path
) -> None:
    engine = FailingEngine()
    engine.kind = kind
    path = tmp_path / "report.json"
    command = CommandLine(engine=engine)
    assert command.run("bench", *model, *TINY, "--json", str(path)) == code
    assert "Memory ran out." in command.complaint.splitlines()[-1]
    assert len(json.loads(path.read_text(encoding="utf-8"))["measurements"]) == 1


def test_an_error_while_loading_is_one_line(model: tuple[str, str]) -> None:
    engine = FakeEngine(load_error=UserError("The file is cut off.", "Fetch it again."))
    command = CommandLine(engine=engine)
    assert command.run("bench", *model, *TINY) == 1
    assert command.complaint.splitlines()[-1] == "paceline: The file is cut off. Fetch it again."


def test_what_the_engine_has_to_say_stands_under_the_table_once(model: tuple[str, str]) -> None:
    notice = Notice(kind="no-template", message="This model has no chat template.")
    command = CommandLine(engine=FakeEngine(before=[notice]))
    assert command.run("bench", *model, *TINY) == 0
    assert command.out.getvalue().count("This model has no chat template.") == 1


def test_a_reply_of_no_token_has_no_speed_and_breaks_nothing(
    model: tuple[str, str], tmp_path: Path
) -> None:
    command = CommandLine(engine=FakeEngine(rounds=()))
    plot = tmp_path / "speed.png"
    assert command.run("bench", *model, *TINY, "--plot", str(plot)) == 0
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_terminal_gets_the_whole_table_too(model: tuple[str, str]) -> None:
    command = CommandLine(terminal=True, engine=FakeEngine(rounds=(make_round(0, ["Hi", "!"]),)))
    assert command.run("bench", *model, *TINY) == 0
    assert "ngram:4" in command.out.getvalue()
    assert "…" not in command.out.getvalue()

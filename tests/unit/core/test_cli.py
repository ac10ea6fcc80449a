"""The command line as a whole: exit codes, one line for what went wrong, nothing heavy for help."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.settings import Settings
from core.cli import main
from core.cli.crash import log_dir
from core.cli.parser import build_parser
from core.errors import BugError, UserError
from core.hub.library import data_root
from core.requests import DEFAULT_MAX_NEW_TOKENS
from tests.helpers.cli import CommandLine, Stream, make_model_file
from tests.helpers.fake_engine import FakeEngine

COMMANDS = (
    ("--help",),
    ("--version",),
    ("ask", "--help"),
    ("chat", "--help"),
    ("models", "--help"),
    ("models", "get", "--help"),
    ("models", "list"),
    ("doctor", "--help"),
)


@pytest.fixture
def model_path(tmp_path: Path) -> str:
    return make_model_file(tmp_path)


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_help_version_and_listing_import_neither_torch_nor_qt(argv: tuple[str, ...]) -> None:
    script = (
        "import sys; from paceline.__main__ import main; code = main(sys.argv[1:]);"
        "heavy = {'torch', 'transformers', 'PySide6', 'numpy'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, *argv], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout


@pytest.mark.parametrize("argv", COMMANDS[2:6] + COMMANDS[7:], ids=" ".join)
def test_every_help_shows_examples(
    argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 0
    assert "examples:" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="the help names the folder on Linux")
def test_the_help_names_the_folder_of_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PACELINE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert main(("--help",)) == 0
    assert f"~/{log_dir().relative_to(tmp_path)})" in capsys.readouterr().out


def test_a_reply_may_be_as_long_from_the_command_line_as_from_the_window() -> None:
    asked = build_parser().parse_args(("ask", "Hi")).max_new_tokens
    assert asked == DEFAULT_MAX_NEW_TOKENS == Settings().max_new_tokens


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("sing",),
        ("ask", "--gamma", "many", "Hi"),
        ("ask", "--drafter", "magic", "Hi"),
        ("ask", "--pair", "qwen2.5-coder", "--target", "x.gguf", "Hi"),
        ("models", "fetch"),
        ("models", "get"),
    ],
    ids=" ".join,
)
def test_a_command_line_that_is_not_understood_exits_with_2(
    argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: paceline" in captured.err


@pytest.mark.parametrize("command", ["ask", "chat"])
def test_help_names_every_rule_and_calls_three_lossy(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main((command, "--help")) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "the others are lossy: target-prob, typical, ensemble" in words
    for option in ("--gamma", "--ensemble-weight", "--typical-epsilon", "--typical-delta"):
        assert option in words
    assert "auto, or 0 to 16" in words


def test_ask_without_text_on_a_terminal_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert CommandLine(terminal=True).run("ask") == 2
    assert "there is no TEXT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "field"),
    [
        ("--gamma", "99", "gamma"),
        ("--ensemble-weight", "1.5", "ensemble_weight"),
        ("--typical-epsilon", "-1", "typical_epsilon"),
        ("--typical-delta", "nan", "typical_delta"),
        ("--temperature", "-1", "temperature"),
        ("--temperature", "nan", "temperature"),
        ("--top-p", "0", "top_p"),
        ("--repetition-penalty", "0", "repetition_penalty"),
        ("--max-new-tokens", "0", "max_new_tokens"),
        ("--seed", "-3", "seed"),
        ("--context-limit", "3", "context_limit"),
        ("--stop", "", "stop"),
    ],
)
def test_a_value_out_of_range_is_named_in_one_line_before_anything_is_loaded(
    option: str, value: str, field: str, model_path: str
) -> None:
    engine = FakeEngine()
    command = CommandLine(engine=engine)
    assert command.run("ask", "Hi", "--target", model_path, option, value) == 1
    assert command.complaint.startswith("paceline: ")
    assert field in command.complaint
    assert command.complaint.count("\n") == 1
    assert command.out.getvalue() == ""
    assert engine.load_requests == []


def test_a_user_error_is_one_line_with_what_to_do(model_path: str) -> None:
    engine = FakeEngine(load_error=UserError("The file\nis cut off.", "Fetch it again."))
    command = CommandLine(engine=engine)
    assert command.run("ask", "Hi", "--target", model_path) == 1
    last = command.complaint.splitlines()[-1]
    assert last == "paceline: The file is cut off. Fetch it again."
    assert "Traceback" not in command.complaint


def test_a_model_that_is_not_here_says_how_to_get_it() -> None:
    command = CommandLine()
    assert command.run("ask", "Hi", "--pair", "qwen2.5-coder") == 1
    assert "paceline models get qwen2.5-coder" in command.complaint
    command = CommandLine()
    assert command.run("ask", "Hi", "--target", "/nowhere/model.gguf") == 1
    assert "/nowhere/model.gguf" in command.complaint


def test_a_fault_is_one_line_and_its_traceback_goes_to_the_log(model_path: str) -> None:
    command = CommandLine(engine=FakeEngine(load_error=BugError("the cache is out of step")))
    assert command.run("ask", "Hi", "--target", model_path) == 70
    log = data_root() / "logs" / "faults.log"
    last = command.complaint.splitlines()[-1]
    assert "the cache is out of step" in last
    assert str(log) in last
    assert "Traceback" not in command.complaint
    assert "Traceback" in log.read_text(encoding="utf-8")
    if os.name == "posix":
        assert log.stat().st_mode & 0o077 == 0


def test_debug_shows_the_traceback_of_a_fault(model_path: str) -> None:
    engine = FakeEngine(load_error=BugError("the cache is out of step"))
    command = CommandLine(engine=engine, debug=True)
    assert command.run("ask", "Hi", "--target", model_path) == 70
    assert "Traceback" in command.complaint


def test_a_fault_is_told_even_where_no_log_can_be_written(
    model_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a file, not a folder"
    blocked.write_text("")
    monkeypatch.setenv("PACELINE_HOME", str(blocked))
    command = CommandLine(engine=FakeEngine(load_error=BugError("out of step")))
    assert command.run("ask", "Hi", "--target", model_path) == 70
    assert "out of step" in command.complaint


class _Full(Stream):
    def __init__(self, code: int) -> None:
        super().__init__()
        self._code = code

    def write(self, text: str, /) -> int:
        raise OSError(self._code, os.strerror(self._code))


def test_a_full_disk_behind_the_output_is_one_sentence(model_path: str) -> None:
    command = CommandLine()
    command.out = _Full(errno.ENOSPC)
    assert command.run("ask", "Hi", "--target", model_path) == 1
    assert "No space left on device" in command.complaint.splitlines()[-1]


def test_a_reader_that_went_away_ends_the_reply_quietly(model_path: str) -> None:
    engine = FakeEngine()
    command = CommandLine(engine=engine)
    command.out = _Full(errno.EPIPE)
    assert command.run("ask", "Hi", "--target", model_path) == 141
    assert "paceline:" not in command.complaint
    assert engine.closed == 1


@pytest.mark.parametrize("argv", [["models", "list"], ["models", "list", "--json"], ["doctor"]])
def test_a_pipe_that_closes_early_leaves_no_word_on_stderr(argv: list[str]) -> None:
    script = (
        "import sys; from core.cli import main;"
        f"code = main({argv}); sys.stderr.write(str(code)); sys.exit(0)"
    )
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [sys.executable, "-c", script], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (0, b"141")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is full")
@pytest.mark.parametrize(
    ("argv", "code"),
    [(["ask", "Hi", "--target", "MODEL"], 0), (["ask", "Hi", "--target", "no"], 1)],
)
def test_what_accompanies_a_reply_may_be_lost_but_never_costs_it(
    argv: list[str], code: int, model_path: str
) -> None:
    script = (
        "import sys; from core.cli import context, main; from tests.helpers.fake_engine import"
        " FakeEngine; context._make_engine = lambda *, debug: FakeEngine();"
        "sys.exit(main(sys.argv[1:]))"
    )
    words = [model_path if word == "MODEL" else word for word in argv]
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-c", script, *words],
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
            text=True,
        )
    assert ran.returncode == code
    assert ("hash table" in ran.stdout) == (code == 0)


@pytest.mark.parametrize(
    "argv",
    [
        ("models", "list"),
        ("ask", "Hi"),
        ("ask", "Hi", "--target", "smollm2-135m"),
        ("models", "get", "smollm2-135m"),
    ],
)
def test_a_data_folder_that_is_a_file_is_named(
    argv: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    monkeypatch.setenv("PACELINE_HOME", str(file))
    command = CommandLine()
    assert command.run(*argv) == 1
    assert command.complaint.startswith(f"paceline: The folder {file / 'models'} cannot be read")
    assert "PACELINE_HOME" in command.complaint
    assert command.out.getvalue() == ""


def test_interrupting_a_load_exits_with_130_and_no_traceback(model_path: str) -> None:
    engine = FakeEngine()
    command = CommandLine(engine=engine)
    engine.load_gate.wait = lambda _cancel: signal.raise_signal(signal.SIGINT)  # type: ignore[method-assign]
    assert command.run("ask", "Hi", "--target", model_path) == 130
    assert "Traceback" not in command.complaint


def test_outside_the_main_thread_a_reply_leaves_the_signals_alone(model_path: str) -> None:
    handler = signal.getsignal(signal.SIGINT)
    command = CommandLine()
    codes: list[int] = []
    thread = threading.Thread(
        target=lambda: codes.append(command.run("ask", "Hi", "--target", model_path))
    )
    thread.start()
    thread.join()
    assert codes == [0]
    assert signal.getsignal(signal.SIGINT) is handler

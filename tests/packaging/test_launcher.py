"""The one way in, as a process would use it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import UserError
from paceline import __main__ as launcher
from paceline import __version__

ROOT = Path(__file__).resolve().parents[2]
HEADLESS = {
    name: value
    for name, value in os.environ.items()
    if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
}


def _run(*arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "paceline", *arguments],
        cwd=ROOT,
        env=HEADLESS,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_version_is_told_on_standard_output() -> None:
    result = _run("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert __version__ in result.stdout


def test_an_unknown_command_is_a_usage_error() -> None:
    assert _run("no-such-command").returncode == 2


def test_nothing_on_standard_input_is_one_sentence_and_no_traceback() -> None:
    result = _run()
    assert result.returncode == 1
    assert result.stdout == ""
    notice, complaint = result.stderr.splitlines()
    assert "no display" in notice
    assert complaint.startswith("paceline: ")


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_help_and_version_load_neither_torch_nor_qt(argument: str) -> None:
    program = (
        "import sys\n"
        "from paceline.__main__ import main\n"
        f"code = main([{argument!r}])\n"
        "heavy = [name for name in ('torch', 'transformers', 'PySide6') if name in sys.modules]\n"
        "sys.exit(f'loaded {heavy}' if heavy or code else 0)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def _raise(error: BaseException):
    def command(arguments: list[str]) -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (UserError("The model is gone.", "Choose another."), 1, "The model is gone. Choose"),
        (ModuleNotFoundError("No module", name="torch"), 1, "The package torch is not installed."),
        (ModuleNotFoundError("No module", name="core.nothing"), 70, "a fault of Paceline"),
        (RuntimeError("broken"), 70, "a fault of Paceline"),
    ],
)
def test_what_goes_wrong_has_its_exit_code_and_a_sentence(
    error, code, sentence, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(launcher, "_run_command", _raise(error))
    assert launcher.main(["ask"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err.splitlines()[-1]
    assert ("Traceback" in err) == (code == 70)


def test_ctrl_c_ends_without_a_traceback(monkeypatch, capsys) -> None:
    monkeypatch.setattr(launcher, "_run_command", _raise(KeyboardInterrupt()))
    assert launcher.main(["chat"]) == 130
    assert capsys.readouterr().err == ""

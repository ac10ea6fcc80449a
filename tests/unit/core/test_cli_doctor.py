"""``paceline doctor``: what works here, and for what does not, what to do."""

import json
import shlex
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from core.cli import checks, doctor
from core.cli.checks import CHECKS, Check, Verdict, judge_gpu
from tests.helpers.cli import CommandLine

LINUX_COMMAND = f"{shlex.quote(sys.executable)} -m pip install torch===2.13.0"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("PACELINE_HOME", str(home))
    return home


def test_the_report_has_every_check_and_says_what_to_do(home: Path) -> None:
    own = home / "models" / "mine.gguf"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"GGUF")
    command = CommandLine()
    assert command.run("doctor") == 0
    shown = command.out.getvalue()
    for name in CHECKS:
        assert f" {name} " in shown
    assert "mine" in shown
    assert command.complaint == ""


def test_a_computer_without_a_model_fails_with_the_command_to_run() -> None:
    command = CommandLine()
    assert command.run("doctor", "--json") == 1
    report = json.loads(command.out.getvalue())
    assert report["ok"] is False
    models = next(check for check in report["checks"] if check["name"] == "models")
    assert models["verdict"] == "fail"
    assert models["action"] == "Run: paceline models get smollm2-135m"
    assert {check["verdict"] for check in report["checks"]} <= {"ok", "warn", "fail"}


def test_a_data_folder_that_cannot_be_written_fails_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checks.tempfile, "TemporaryFile", refuse)
    check = CHECKS["data folder"]("data folder")
    assert check.verdict is Verdict.FAIL
    assert "cannot be written" in check.detail
    assert "PACELINE_HOME" in check.action


def test_a_data_folder_whose_place_is_taken_by_a_file_fails_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    monkeypatch.setenv("PACELINE_HOME", str(taken / "home"))
    assert CHECKS["data folder"]("data folder").verdict is Verdict.FAIL


def test_a_check_that_breaks_fails_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_name: str) -> Check:
        raise RuntimeError("driver on fire")

    fine = Check(name="b", verdict=Verdict.OK, detail="fine")
    monkeypatch.setattr(doctor, "CHECKS", {"a": broken, "b": lambda _name: fine})
    command = CommandLine()
    assert command.run("doctor") == 1
    assert "driver on fire" in command.out.getvalue()
    assert "fine" in command.out.getvalue()
    assert "Traceback" not in command.out.getvalue() + command.complaint


@pytest.mark.parametrize(
    ("has_card", "torch_cuda", "cards", "verdict", "part"),
    [
        (False, None, [], Verdict.OK, "no NVIDIA card"),
        (True, "13.0", ["NVIDIA H200"], Verdict.OK, "NVIDIA H200"),
        (True, "13.0", [], Verdict.WARN, "torch sees no card"),
        (True, None, [], Verdict.WARN, "built without CUDA"),
    ],
)
def test_the_graphics_card_is_judged_with_the_build_of_torch(
    has_card: bool, torch_cuda: str | None, cards: list[str], verdict: Verdict, part: str
) -> None:
    check = judge_gpu(
        "gpu", has_card=has_card, torch_version="2.13.0+cpu", torch_cuda=torch_cuda, cards=cards
    )
    assert check.verdict is verdict
    assert part in check.detail


def test_a_cpu_build_beside_a_card_gets_the_exact_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge() -> Check:
        return judge_gpu(
            "gpu", has_card=True, torch_version="2.13.0+cpu", torch_cuda=None, cards=[]
        )

    monkeypatch.setattr(checks.sys, "platform", "linux")
    assert judge().action == f"To use the card, run: {LINUX_COMMAND}"
    monkeypatch.setattr(checks.sys, "platform", "win32")
    assert "pytorch.org/get-started" in judge().action


def test_a_qt_that_does_not_start_fails_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks, "_QT_PROBE", "import sys; sys.exit('libEGL.so.1 is missing')")
    check = CHECKS["window"]("window")
    assert check.verdict is Verdict.FAIL
    assert "libEGL.so.1 is missing" in check.detail
    assert "make run" in check.action


def test_a_computer_without_a_display_is_told_of_the_terminal_chat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checks.sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    check = CHECKS["window"]("window")
    assert check.verdict is Verdict.WARN
    assert "paceline chat" in check.action

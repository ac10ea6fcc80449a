"""The program as it is started: one window for each data folder, and an orderly end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.single_instance import _name

START_S = 120.0
CLOSE_S = 60.0


class Program:
    """Starts the real program on its own data folder, without a model."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.started: list[subprocess.Popen[str]] = []

    def start(self) -> subprocess.Popen[str]:
        environment = {**os.environ, "PACELINE_HOME": str(self.home)}
        environment["QT_QPA_PLATFORM"] = "offscreen"
        process = subprocess.Popen(
            [sys.executable, "-m", "paceline"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def start_and_wait(self) -> subprocess.Popen[str]:
        process = self.start()
        log = self.home / "logs" / "paceline.log"
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and process.poll() is None:
            if log.exists() and "the window is open" in log.read_text(encoding="utf-8"):
                return process
            time.sleep(0.02)
        raise AssertionError(f"the window did not open: {process.communicate(timeout=5)}")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path / "Ordner mit größe")
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


posix_only = pytest.mark.skipif(os.name != "posix", reason="there are no such signals on Windows")


@posix_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_end_closes_the_window_with_code_0(
    program: Program, number: signal.Signals
) -> None:
    process = program.start_and_wait()
    process.send_signal(number)
    output, errors = process.communicate(timeout=CLOSE_S)
    assert process.returncode == 0
    assert (output, errors) == ("", "")
    assert (program.home / "settings.json").exists()


@posix_only
def test_a_second_start_raises_the_first_and_ends(program: Program) -> None:
    first = program.start_and_wait()
    second = program.start()
    second.communicate(timeout=START_S)
    assert second.returncode == 0
    assert first.poll() is None
    log = (program.home / "logs" / "paceline.log").read_text(encoding="utf-8")
    assert "another start raised this window" in log
    first.terminate()
    first.communicate(timeout=CLOSE_S)
    assert first.returncode == 0


@posix_only
def test_a_data_folder_that_cannot_be_made_still_opens_the_window(program: Program) -> None:
    program.home.parent.mkdir(parents=True, exist_ok=True)
    program.home.write_text("a file where the folder would have to be")
    process = program.start()
    # Without a log the window tells that it is open by answering a second start.
    lock = Path(os.environ["XDG_RUNTIME_DIR"]) / f"{_name(str(program.home))}.lock"
    deadline = time.monotonic() + START_S
    while not lock.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    second = program.start()
    while second.wait() != 0 and process.poll() is None and time.monotonic() < deadline:
        second = program.start()
    assert second.returncode == 0
    process.terminate()
    _, errors = process.communicate(timeout=CLOSE_S)
    assert process.returncode == 0
    # The offscreen platform says so where a second start raises the window.
    assert errors.replace("This plugin does not support raise()\n", "") == ""

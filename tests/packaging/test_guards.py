"""The guards of tests/conftest.py catch what they are for; else a green run proves little."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CASES = """
import os, socket, threading, warnings
from pathlib import Path
import pytest
from PySide6.QtCore import QThread, qWarning

FOREVER = threading.Event()
KEPT = []

class Busy(QThread):
    def run(self):
        FOREVER.wait(20)

def test_swallowed_connect():
    try:
        socket.create_connection(("192.0.2.1", 80))
    except OSError:
        pass

def test_name_lookup():
    with pytest.raises(OSError):
        socket.getaddrinfo("example.invalid", 443)

def test_python_thread():
    threading.Thread(target=FOREVER.wait, args=(20,), name="left", daemon=True).start()

def test_qt_thread():
    KEPT.append(Busy())
    KEPT[0].start()

def test_qt_warning():
    qWarning("a plain warning of Qt's")

def test_allowed_loopback_and_home():
    FOREVER.set()
    KEPT[0].wait()
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
    assert Path.home() == Path(os.environ["HOME"])
    assert Path(os.environ["PACELINE_HOME"]).is_relative_to(Path.home())
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "gui").mkdir()
    (folder / "gui" / "test_cases.py").write_text(CASES, encoding="utf-8")
    shutil.copy(ROOT / "tests" / "conftest.py", folder)
    options = ["-p", "no:cacheprovider", "-o", "qt_log_level_fail=WARNING", "-rA", "--tb=line"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.stdout + result.stderr


@pytest.mark.parametrize(
    ("case", "complaint"),
    [
        ("swallowed_connect", "reached for the network: 192.0.2.1"),
        ("name_lookup", "reached for the network: example.invalid"),
        ("python_thread", "threads were left running: left"),
        ("qt_thread", "threads were left running: Busy"),
    ],
)
def test_a_guard_fails_the_test_that_it_is_for(case: str, complaint: str, outcomes: str) -> None:
    lines = [line for line in outcomes.splitlines() if line.startswith("ERROR")]
    assert [line for line in lines if f"::test_{case} " in line and complaint in line], outcomes


def test_a_warning_of_qt_fails_the_test(outcomes: str) -> None:
    lines = [line for line in outcomes.splitlines() if line.startswith("FAILED")]
    assert [line for line in lines if "::test_qt_warning" in line], outcomes
    # The thread that the test before left is not held against this one.
    assert "ERROR gui/test_cases.py::test_qt_warning" not in outcomes


def test_what_is_allowed_passes_with_a_home_of_its_own(outcomes: str) -> None:
    lines = [line for line in outcomes.splitlines() if "::test_allowed" in line]
    assert [line.partition(" ")[0] for line in lines] == ["PASSED"], outcomes

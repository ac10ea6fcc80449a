"""What happens to errors that nobody caught."""

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.crash import FAULT_NAME, PREVIOUS_FAULT_NAME, CrashHandler, CrashReport
from app.logs import LogFile
from core.errors import UserError

ROOT = Path(__file__).parents[3]


class Installed:
    """A handler whose hooks lie over silent ones, and what it reported."""

    def __init__(self, folder: Path) -> None:
        self.reports: list[CrashReport] = []
        self.handler = CrashHandler(folder, self.reports.append)
        self.handler.install()

    def uncaught(self, error: BaseException) -> None:
        try:
            raise error
        except BaseException as caught:  # noqa: BLE001
            sys.excepthook(type(caught), caught, caught.__traceback__)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch) -> Iterator[Installed]:
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)
    log = LogFile(tmp_path)
    installed = Installed(tmp_path)
    yield installed
    installed.handler.uninstall()
    log.close()


def log_text(tmp_path: Path) -> str:
    return (tmp_path / "paceline.log").read_text(encoding="utf-8")


def test_an_uncaught_error_is_logged_and_reported(installed: Installed, tmp_path: Path) -> None:
    installed.uncaught(RuntimeError("the cache is too short"))
    [report] = installed.reports
    assert report.is_bug
    assert report.sentence.endswith("Your conversations are kept.")
    assert "RuntimeError: the cache is too short" in report.text
    assert "test_crash.py" in report.text
    assert "torch " in report.text
    assert "RuntimeError: the cache is too short" in log_text(tmp_path)


def test_a_report_holds_no_prompt(installed: Installed, tmp_path: Path) -> None:
    installed.uncaught(ValueError("my secret prompt"))
    assert "secret" not in installed.reports[0].text
    assert "secret" not in log_text(tmp_path)


def test_an_error_in_a_thread_is_reported_with_its_name(installed: Installed) -> None:
    def fail() -> None:
        raise RuntimeError("in the thread")

    thread = threading.Thread(target=fail, name="engine")
    thread.start()
    thread.join()
    [report] = installed.reports
    assert "Thread: engine" in report.text


def test_the_same_fault_is_reported_once(installed: Installed) -> None:
    for _ in range(5):
        installed.uncaught(RuntimeError("in every frame"))
    assert len(installed.reports) == 1
    installed.uncaught(RuntimeError("another one"))
    assert len(installed.reports) == 2


def test_an_error_the_person_can_mend_needs_no_report(installed: Installed) -> None:
    installed.uncaught(UserError("The disk is full.", "Free some space."))
    assert installed.reports == [
        CrashReport(sentence="The disk is full. Free some space.", text="", is_bug=False)
    ]


def test_an_interrupt_from_the_keyboard_is_no_crash(installed: Installed) -> None:
    installed.uncaught(KeyboardInterrupt())
    assert installed.reports == []


def test_a_window_that_cannot_show_the_report_does_not_make_it_worse(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)

    def fail(_: CrashReport) -> None:
        raise RuntimeError("no window")

    handler = CrashHandler(tmp_path, fail)
    log = LogFile(tmp_path)
    handler.install()
    error = RuntimeError("first")
    sys.excepthook(RuntimeError, error, None)
    handler.uninstall()
    log.close()
    assert "could not be shown" in log_text(tmp_path)


def test_uninstalling_gives_the_hooks_back(tmp_path: Path) -> None:
    before = (sys.excepthook, threading.excepthook)
    handler = CrashHandler(tmp_path, lambda _: None)
    handler.install()
    assert sys.excepthook != before[0]
    handler.uninstall()
    handler.uninstall()
    assert (sys.excepthook, threading.excepthook) == before
    assert not (tmp_path / FAULT_NAME).exists()


@pytest.mark.skipif(os.name != "posix", reason="ends a process by a signal")
def test_a_crash_below_python_is_reported_at_the_next_start(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from app.crash import CrashHandler

        CrashHandler(Path(sys.argv[1]), lambda report: None).install()
        os.kill(os.getpid(), signal.SIGSEGV)
        """
    )
    process = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, capture_output=True, check=False
    )
    assert process.returncode < 0
    handler = CrashHandler(tmp_path, lambda _: None)
    handler.install()
    handler.uninstall()
    assert handler.previous_fault is not None
    assert "Segmentation fault" in handler.previous_fault.text
    assert (tmp_path / PREVIOUS_FAULT_NAME).exists()

    again = CrashHandler(tmp_path, lambda _: None)
    again.install()
    again.uninstall()
    assert again.previous_fault is None

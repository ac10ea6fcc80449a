"""A second start raises the first one's window."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalSocket
from pytestqt.qtbot import QtBot

from app import single_instance
from app.single_instance import SingleInstance

ROOT = Path(__file__).parents[3]
FIRST = textwrap.dedent(
    """
    import sys
    from PySide6.QtCore import QCoreApplication
    from app.single_instance import SingleInstance

    application = QCoreApplication([])
    instance = SingleInstance(sys.argv[1])
    print("first" if instance.acquire() else f"second {instance.answered}", flush=True)
    if sys.argv[2] == "run":
        instance.raised.connect(lambda: print("raised", flush=True))
        application.exec()
    elif sys.argv[2] == "hang":
        sys.stdin.read()
    """
)


@contextmanager
def started(key: str, then: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", FIRST, key, then],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_second_start_raises_the_first(qtbot: QtBot, tmp_path: Path) -> None:
    first = SingleInstance(str(tmp_path))
    assert first.acquire()
    with qtbot.waitSignal(first.raised), started(str(tmp_path), "end") as second:
        qtbot.waitUntil(lambda: second.poll() is not None, timeout=20_000)
        assert line(second) == "second True"
    first.release()


def test_the_next_start_is_the_first_after_a_release(qapp, tmp_path: Path) -> None:
    first, second = SingleInstance(str(tmp_path)), SingleInstance(str(tmp_path))
    assert first.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_another_data_folder_may_be_open_at_the_same_time(qapp, tmp_path: Path) -> None:
    first, second = SingleInstance(str(tmp_path / "a")), SingleInstance(str(tmp_path / "b"))
    assert first.acquire()
    assert second.acquire()
    first.release()
    second.release()


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL exists on POSIX only")
def test_what_a_killed_program_left_is_taken_over(qtbot: QtBot, tmp_path: Path) -> None:
    key = str(tmp_path)
    with started(key, "run") as killed:
        assert line(killed) == "first"
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    heir = SingleInstance(key)
    assert heir.acquire()
    with qtbot.waitSignal(heir.raised), started(key, "end") as second:
        qtbot.waitUntil(lambda: second.poll() is not None, timeout=20_000)
        assert line(second) == "second True"
    heir.release()


def test_a_first_program_that_hangs_is_waited_for_a_short_while_only(
    qapp, tmp_path: Path, monkeypatch
) -> None:
    waits: list[int] = []

    class Socket(QLocalSocket):
        def waitForReadyRead(self, msecs: int = 30_000) -> bool:
            waits.append(msecs)
            return super().waitForReadyRead(msecs)

    monkeypatch.setattr(single_instance, "_ANSWER_MS", 200)
    monkeypatch.setattr(single_instance, "QLocalSocket", Socket)
    with started(str(tmp_path), "hang") as first:
        assert line(first) == "first"
        second = SingleInstance(str(tmp_path))
        assert not second.acquire()
        assert not second.answered
        assert waits
        assert max(waits) <= 200


def test_of_many_simultaneous_starts_one_is_the_first(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FIRST, str(tmp_path), "hang"]
    processes = [
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    try:
        answers = [line(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert sorted(answer.split()[0] for answer in answers) == ["first"] + ["second"] * 3

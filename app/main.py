"""Opens the window: one instance, the log, the crash report, the last layout."""

import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from PySide6.QtCore import QObject, QSocketNotifier, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from app.compose import Paceline, Parts, real_engine, real_options
from app.crash import CrashHandler, CrashReport
from app.engine.fetch import ModelFetch
from app.engine.training import TrainingProcess
from app.logs import LogFile
from app.paths import AppPaths, app_paths, ensured
from app.settings import SettingsStore
from app.single_instance import SingleInstance
from app.storage.conversations import ConversationStore
from app.storage.files import write_atomic
from app.storage.opening import open_conversations
from core.errors import UserError
from core.hub.library import Library

logger = logging.getLogger(__name__)

ICON = Path(__file__).resolve().parent.parent / "resources" / "icons" / "paceline.svg"
LAYOUT_NAME = "window-layout"


def main() -> int:
    """Run the window until it is closed and return the exit code."""
    paths = app_paths()
    app = QApplication(sys.argv[:1])
    app.setApplicationName("Paceline")
    app.setDesktopFileName("paceline")
    app.setWindowIcon(QIcon(str(ICON)))
    instance = SingleInstance(str(paths.data))
    if not instance.acquire():
        if not instance.answered:
            raise UserError(
                "Paceline is already running, but its window does not answer.",
                "Wait a moment, or end that process, and start again.",
            )
        return 0
    with contextlib.ExitStack() as stack:
        stack.callback(instance.release)
        return _run(app, paths, instance, stack)


def _run(
    app: QApplication, paths: AppPaths, instance: SingleInstance, stack: contextlib.ExitStack
) -> int:
    notices: list[str] = []
    bridge = _CrashBridge()
    with contextlib.suppress(UserError, OSError):  # without a log everything else still works
        stack.callback(LogFile(ensured(paths.logs)).close)
        handler = CrashHandler(paths.logs, bridge.crashed.emit)
        handler.install()
        stack.callback(handler.uninstall)
        if handler.previous_fault is not None:
            notices.append(handler.previous_fault.sentence)
    saver = SettingsStore(paths.settings)
    settings = saver.load()
    opened = open_conversations(paths.database)
    database = opened.database
    stack.callback(database.close)
    store = ConversationStore(database)
    store.recover_interrupted()
    program = Paceline(
        Parts(
            engine_factory=real_engine(paths.data / "prepared"),
            list_options=real_options,
            library=Library(paths.data / "models"),
            store=store,
            settings=settings,
            saver=saver,
            fetch=ModelFetch(),
            training=TrainingProcess(),
            home=paths.data,
            unkept=opened.unkept,
            unread=opened.unread,
        ),
        app,
    )
    window = program.window
    instance.raised.connect(window.come_to_front)
    instance.raised.connect(lambda: logger.info("another start raised this window"))
    bridge.crashed.connect(program.show_crash)
    layout = paths.config / LAYOUT_NAME
    _restore_layout(program, layout)
    window.closing.connect(lambda: _save_layout(program, layout))
    program.start()
    window.show()
    notices = [*saver.notices, *database.notices, opened.notice, *notices]
    notices = [notice for notice in notices if notice]
    if notices:
        program.show_notice(" ".join(notices))
    with _ending_on_signals():
        logger.info("the window is open")
        code = app.exec()
    if not program.stopped_in_time:
        # A native call cannot be interrupted. All is stored; leaving now is all that is left.
        if not program.engine.starting:
            logger.warning("the engine did not stop in time")
        stack.close()
        logging.shutdown()
        os._exit(code)
    return code


def _restore_layout(program: Paceline, path: Path) -> None:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        program.window.restore_layout(path.read_text(encoding="ascii"))


def _save_layout(program: Paceline, path: Path) -> None:
    with contextlib.suppress(UserError):  # the layout is not worth a question while closing
        write_atomic(path, program.window.layout_state())


class _CrashBridge(QObject):
    """Carries a report from the thread that failed to the window's."""

    crashed = Signal(CrashReport)


@contextlib.contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Close the window in order on Ctrl+C or a request to terminate."""
    if os.name != "posix":
        yield
        return
    # Python runs signal handlers between its own instructions, and Qt may run none for long;
    # the byte that the interpreter writes here wakes Qt.
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    wakeup = signal.set_wakeup_fd(writer.fileno())
    for number in before:
        signal.signal(number, lambda *_: None)
    notifier = QSocketNotifier(reader.fileno(), QSocketNotifier.Type.Read)
    notifier.activated.connect(QApplication.closeAllWindows)
    try:
        yield
    finally:
        notifier.setEnabled(False)
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        reader.close()
        writer.close()

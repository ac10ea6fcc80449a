"""Makes the pictures of the README: the real window, the default model, light and dark.

    xvfb-run -a -s "-screen 0 1600x1100x24" .venv/bin/python packaging/screenshot.py docs

Needs the default model (`make run` fetches it) and no data of the person: chats and settings live
in a temporary folder.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The script's own folder is called like a library; the program lives one above.
sys.path[0] = str(ROOT)

from PySide6.QtCore import QDeadlineTimer, QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app.compose import Paceline, Parts, real_engine, real_options
from app.engine.fetch import ModelFetch
from app.settings import Settings, SettingsStore
from app.storage.conversations import ConversationStore
from app.storage.db import Database
from core.hub.library import Library, data_root

SIZE = (1360, 860)
LOAD_MS = 300_000
REPLY_MS = 900_000
POLL_MS = 50
SETTLE_MS = 900
SETTINGS = Settings(
    theme="light", temperature=0.0, drafter="hybrid", gamma="auto", max_new_tokens=220
)
OTHER_PROMPT = "Why do cyclists ride close behind one another?"
PROMPTS = (
    "Write a Python function that returns the mean of a list of numbers.",
    "Show the function again, with a docstring.",
)


def main() -> int:
    """Write the pictures into the folder given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where screenshot-light.png and -dark.png go")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    app = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory() as home:
        _photograph(app, Path(home), folder)
    return 0


def _photograph(app: QApplication, home: Path, folder: Path) -> None:
    database = Database(home / "conversations.db")
    program = Paceline(
        Parts(
            engine_factory=real_engine(data_root() / "prepared"),
            list_options=real_options,
            library=Library(data_root() / "models"),
            store=ConversationStore(database),
            settings=SETTINGS,
            saver=SettingsStore(home / "settings.json"),
            fetch=ModelFetch(),
            home=home,
        ),
        app,
    )
    window = program.window
    window.resize(*SIZE)
    window.show()
    program.start()
    try:
        _wait(lambda: program.models.ready, LOAD_MS, "the model was not loaded")
        _ask(program, lambda: program.chat.send(OTHER_PROMPT))
        program.chat.open(None)
        for prompt in PROMPTS:
            _ask(program, lambda prompt=prompt: program.chat.send(prompt))
        # The speed-up that is shown is measured: the same prompt plainly, then drafted again.
        program.models.measure()
        _wait(lambda: program.models.baseline is not None, REPLY_MS, "nothing was measured")
        _wait(lambda: program.models.ready, REPLY_MS, "the measurement did not end")
        program.window.model_bar.dismiss()
        _ask(program, program.chat.regenerate)
        for theme in ("light", "dark"):
            program.preferences.choose_theme(theme)
            _run_for(SETTLE_MS)  # layouts, plots and idle rendering come to rest
            path = folder / f"screenshot-{theme}.png"
            window.grab().save(str(path))
            print(path)
    finally:
        window.close()
        database.close()


def _ask(program: Paceline, action: Callable[[], object]) -> None:
    ended: list[object] = []
    program.chat.reply.ended.connect(ended.append)
    action()
    _wait(lambda: bool(ended), REPLY_MS, "there was no reply")
    program.chat.reply.ended.disconnect(ended.append)


def _wait(holds: Callable[[], bool], timeout_ms: int, problem: str) -> None:
    deadline = QDeadlineTimer(timeout_ms)
    while not holds():
        if deadline.hasExpired():
            raise SystemExit(f"screenshot: {problem} within {timeout_ms // 1000} s")
        _run_for(POLL_MS)


def _run_for(duration_ms: int) -> None:
    loop = QEventLoop()
    QTimer.singleShot(duration_ms, loop.quit)
    loop.exec()


if __name__ == "__main__":
    sys.exit(main())

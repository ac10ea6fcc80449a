# ruff: noqa: T201 (a benchmark prints what it measured)
"""How long the window's thread is held up: while the engine loads, and while a reply streams.

    QT_QPA_PLATFORM=offscreen .venv/bin/python -m tests.benchmark.window_stall load
    QT_QPA_PLATFORM=offscreen .venv/bin/python -m tests.benchmark.window_stall stream

A timer of 10 ms beats on the window's thread; the longest gap between two beats is what a person
feels. ``load`` starts the real engine on the default model; ``stream`` sends a scripted reply of
8,000 tokens with code blocks at 200 tokens/s and compares the cost of its first and last quarter.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import QEventLoop, QObject, QTimer
from PySide6.QtWidgets import QApplication

from app.compose import Paceline, Parts, real_engine, real_options
from app.engine.fetch import ModelFetch
from app.engine.work import OptionsListed
from app.settings import Settings, SettingsStore
from app.storage.conversations import ConversationStore
from app.storage.db import Database
from core.cancel import CancelToken
from core.events import Event, Finished
from core.hub.library import Library, data_root
from core.metrics import summarise
from core.requests import GenerateRequest
from tests.helpers.fake_engine import FakeEngine, make_round

BEAT_MS = 10
TOKENS = 8_000
TOKENS_PER_SECOND = 200
ROUND = 4
LINE = [
    "The",
    " pace",
    "line",
    " rides",
    " on",
    ",",
    " `one`",
    " after",
    " the",
    " other",
    ".",
    " ",
]
CODE = ["```python\n", "def ", "ride", "(n)", ":\n", "    return ", "n * 2", "  # fast\n", "```\n"]


class Heartbeat(QObject):
    """Notes when its beats come."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps_ms: list[float] = []
        self._last = time.perf_counter()
        self._timer = QTimer(self)
        self._timer.setInterval(BEAT_MS)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def _beat(self) -> None:
        now = time.perf_counter()
        self.gaps_ms.append((now - self._last) * 1000)
        self._last = now

    def report(self, what: str) -> None:
        gaps = sorted(self.gaps_ms)
        longest = ", ".join(f"{gap:.0f}" for gap in gaps[-5:])
        over = sum(gap > 50 for gap in gaps)
        print(
            f"{what}: median {statistics.median(gaps):.1f} ms, longest {longest} ms, "
            f"{over} of {len(gaps)} beats later than 50 ms"
        )


class PacedEngine(FakeEngine):
    """Streams a long reply at a steady rate."""

    def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
        words: list[str] = []
        while len(words) < TOKENS:
            words += [*LINE * 12, "\n\n", *CODE * 3, "\n"]
        rounds = [make_round(i, words[i * ROUND : (i + 1) * ROUND]) for i in range(TOKENS // ROUND)]
        began = time.perf_counter()
        for round_ in rounds:
            due = began + round_.index * ROUND / TOKENS_PER_SECOND
            time.sleep(max(0.0, due - time.perf_counter()))
            yield round_
        seconds = time.perf_counter() - began
        print(f"the engine wrote {TOKENS / seconds:.1f} tokens/s")
        text = "".join(words[:TOKENS])
        yield Finished(reason="stop", text=text, metrics=summarise(rounds))


def main() -> int:
    """Run one of the two measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("load", "stream"))
    what = parser.parse_args().what
    app = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory() as home:
        _measure(app, Path(home), what)
    return 0


def _measure(app: QApplication, home: Path, what: str) -> None:
    real = what == "load"
    model = home / "model.gguf"
    model.write_bytes(b"GGUF")
    own = Settings(pair="custom", target_path=str(model))
    database = Database(home / "conversations.db")
    began = time.perf_counter()
    program = Paceline(
        Parts(
            engine_factory=real_engine(data_root() / "prepared") if real else PacedEngine,
            list_options=real_options if real else lambda device: OptionsListed((), ()),
            library=Library(data_root() / "models"),
            store=ConversationStore(database),
            settings=Settings() if real else own,
            saver=SettingsStore(home / "settings.json"),
            fetch=ModelFetch(),
        ),
        app,
    )
    program.window.show()
    program.start()
    app.processEvents()
    print(f"the window stood after {(time.perf_counter() - began) * 1000:.0f} ms")
    heart = Heartbeat()
    _until(lambda: program.models.ready)
    if real:
        heart.report("loading")
    else:
        _stream(program)
    program.window.close()
    database.close()


def _stream(program: Paceline) -> None:
    ended: list[object] = []
    program.chat.reply.ended.connect(ended.append)
    program.chat.send("Write a long text with code.")
    heart = Heartbeat()
    spent = [time.thread_time()]
    quarters = QTimer()
    quarters.setInterval(round(1000 * TOKENS / TOKENS_PER_SECOND / 4))
    quarters.timeout.connect(lambda: spent.append(time.thread_time()))
    quarters.start()
    _until(lambda: bool(ended))
    heart.report("streaming")
    costs = [(after - before) * 4_000 / TOKENS for before, after in pairwise(spent)]
    shown = ", ".join(f"{cost:.2f}" for cost in costs)
    print(f"the window's thread spent {shown} ms a token in the quarters of the reply")


def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # the heartbeat wakes it
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


if __name__ == "__main__":
    sys.exit(main())

# ruff: noqa: T201 (a benchmark prints what it measured)
"""What an open window takes of a processor while a reply streams into it.

    xvfb-run -a -s "-screen 0 1600x1100x24" .venv/bin/python -m tests.benchmark.window_cost

No model: a scripted engine sends what a real one sends, at a steady rate. What is measured is the
processor time of the window's thread alone, so that other work on the machine hardly counts; where
it is so busy that frames are left out, the figure is too small, and frames are counted to tell.
``--profile`` prints the dearest functions, and itself costs some.
"""

import argparse
import cProfile
import pstats
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtCore import QEvent, QEventLoop, QObject, QTimer
from PySide6.QtWidgets import QApplication, QWidget

from app.compose import Paceline, Parts
from app.engine.fetch import ModelFetch
from app.engine.work import OptionsListed
from app.rendering.highlight import prepare_highlighting
from app.settings import Settings, SettingsStore
from app.storage.conversations import ConversationStore
from app.storage.db import Database
from core.cancel import CancelToken
from core.events import Event, Finished, GammaBelief, Origin, Round, Token
from core.hub.library import Library
from core.metrics import summarise
from core.requests import GenerateRequest
from tests.benchmark.transcript_cost import text_of
from tests.helpers.fake_engine import FakeEngine

SIZE = (1360, 860)
GAMMA = 4


class PacedEngine(FakeEngine):
    """Streams one reply at a steady rate, in rounds as an automatic draft length makes them."""

    def __init__(self, tokens_per_second: float, seconds: float) -> None:
        super().__init__()
        self._rate = tokens_per_second
        self._rounds = rounds_of(round(tokens_per_second * seconds), tokens_per_second)

    def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
        """Send the rounds, each when it is due."""
        began = time.perf_counter()
        for round_ in self._rounds:
            due = began + round_.elapsed_ms / 1000.0
            time.sleep(max(0.0, due - time.perf_counter()))
            if cancel.cancelled:
                break
            yield round_
        text = "".join(token.text for round_ in self._rounds for token in round_.tokens)
        yield Finished(reason="stop", text=text, metrics=summarise(self._rounds))


def rounds_of(count: int, tokens_per_second: float) -> list[Round]:
    """Return rounds of about ``count`` tokens in all; the same at every call."""
    chance = random.Random(1)
    random.seed(1)
    text = text_of("mixed", 6 * count)
    rounds: list[Round] = []
    position = tokens = 0
    elapsed_ms = 0.0
    while tokens < count:
        proposed = chance.choice((0, 2, GAMMA, GAMMA))
        accepted = chance.randint(0, proposed)
        last = Origin.RESAMPLED if accepted < proposed else Origin.BONUS
        last = last if proposed else Origin.PLAIN
        made = []
        for place in range(accepted + 1):
            length = chance.choice((2, 3, 4, 5, 6))
            made.append(
                Token(
                    id=1000 + tokens + place,
                    text=text[position : position + length],
                    origin=Origin.ACCEPTED if place < accepted else last,
                    target_prob=0.8,
                    draft_prob=0.7 if place < accepted else None,
                )
            )
            position += length
        tokens += len(made)
        round_ms = 1000.0 * len(made) / tokens_per_second
        elapsed_ms += round_ms
        belief = GammaBelief(
            source="ngram",
            chosen=GAMMA,
            acceptance=tuple(chance.uniform(0.4, 0.9) for _ in range(GAMMA)),
            verify_ms=tuple(chance.uniform(8.0, 16.0) for _ in range(GAMMA + 1)),
            draft_ms=0.01,
            reason="More rows cost little here.",
        )
        rounds.append(
            Round(
                index=len(rounds),
                gamma=proposed,
                proposed=proposed,
                accepted=accepted,
                tokens=tuple(made),
                draft_ms=round_ms * 0.2,
                verify_ms=round_ms * 0.7,
                round_ms=round_ms,
                elapsed_ms=elapsed_ms,
                context_length=50 + tokens,
                belief=belief if proposed else None,
            )
        )
    return rounds


class Frames(QObject):
    """Counts how often a window is painted."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.count = 0
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Count, and let everything pass."""
        self.count += event.type() == QEvent.Type.UpdateRequest
        return False


def main() -> int:
    """Measure at every rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=float, nargs="*", default=[60.0, 180.0])
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    app = QApplication(sys.argv[:1])
    for rate in args.rates:
        with tempfile.TemporaryDirectory() as home:
            measure(app, Path(home), rate, args.seconds, profile=args.profile)
    return 0


def measure(app: QApplication, home: Path, rate: float, seconds: float, *, profile: bool) -> None:
    """Stream one reply of ``seconds`` at ``rate`` tokens a second and print what it took."""
    model = home / "model.gguf"
    model.write_bytes(b"GGUF")
    database = Database(home / "conversations.db")
    program = Paceline(
        Parts(
            engine_factory=lambda: PacedEngine(rate, seconds),
            list_options=lambda device: OptionsListed((), ()),
            library=Library(home / "models"),
            store=ConversationStore(database),
            settings=Settings(pair="custom", target_path=str(model), gamma="auto"),
            saver=SettingsStore(home / "settings.json"),
            fetch=ModelFetch(),
            home=home,
        ),
        app,
    )
    program.window.resize(*SIZE)
    program.window.show()
    program.start()
    _until(lambda: program.models.ready)
    prepare_highlighting()
    _wait(500)
    ended: list[object] = []
    program.chat.reply.ended.connect(ended.append)
    program.chat.send("Write a long text with code.")
    frames = Frames(program.window)
    profiler = cProfile.Profile(time.thread_time)
    if profile:
        profiler.enable()
    began_s, spent_s, before = time.perf_counter(), time.thread_time(), _wakes()
    loop = QEventLoop()
    # The end of a reply is another matter; the last moments are left out.
    QTimer.singleShot(round(1000 * (seconds - 0.5)), loop.quit)
    loop.exec()
    spent_s, lasted_s = time.thread_time() - spent_s, time.perf_counter() - began_s
    wakes = _wakes() - before
    profiler.disable()
    print(
        f"{rate:.0f} tokens/s: {100 * spent_s / lasted_s:.2f} % of a core, "
        f"{1000 * spent_s / (rate * lasted_s):.3f} ms a token, "
        f"{frames.count / lasted_s:.1f} pictures/s, {wakes / lasted_s:.0f} wakes/s"
    )
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
        pstats.Stats(profiler).sort_stats("cumtime").print_stats(60)
    _until(lambda: bool(ended))
    program.window.close()
    database.close()


def _wakes() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def _wait(duration_ms: int) -> None:
    loop = QEventLoop()
    QTimer.singleShot(duration_ms, loop.quit)
    loop.exec()


def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        _wait(50)


if __name__ == "__main__":
    sys.exit(main())

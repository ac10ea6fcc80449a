# ruff: noqa: T201 (a benchmark prints what it measured)
"""Whether an open window costs speed: the same replies headless and with the window showing them.

    xvfb-run -a -s "-screen 0 1600x1100x24" .venv/bin/python -m tests.benchmark.window_speed

Real engine and real model; every turn is a process of its own, headless and window in turn. A
reply's speed is that of the clock on the wall, from its first round to its last.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from core.cancel import CancelToken
from core.engine import Engine
from core.events import Event, Round
from core.hub.library import Library, data_root
from core.hub.resolve import resolve_pair
from core.requests import GenerateRequest, LoadRequest, SamplingParams, SpeculationParams

PROMPTS = (
    "Explain how a hash table works, with an example in Python.",
    "Write a Python function that merges two sorted lists, then show it again with type hints.",
    "Tell me about the history of the bicycle.",
)
TOKENS = 256
WAYS = ("headless", "window")


class TimedEngine(Engine):
    """The real engine, which notes how fast the clock saw each reply go by."""

    def __init__(self) -> None:
        super().__init__(prepared_dir=data_root() / "prepared")
        self.speeds: list[float] = []

    def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
        """Pass the events on as they are."""
        began_s = last_s = 0.0
        tokens = 0
        try:
            for event in super().generate(request, cancel):
                if isinstance(event, Round):
                    last_s = time.perf_counter()
                    tokens += len(event.tokens) if began_s else 0
                    began_s = began_s or last_s
                yield event
        finally:  # who reads the events may stop at the last one
            if last_s > began_s:
                self.speeds.append(tokens / (last_s - began_s))


def main() -> int:
    """Measure, or take one turn for the process that does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pair", default="smollm2-135m", help="default: %(default)s")
    parser.add_argument("--drafter", default="hybrid", help="default: %(default)s")
    parser.add_argument("--turns", type=int, default=3, help="of each way (default: %(default)s)")
    parser.add_argument("--turn", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.turn:
        take = _headless if args.turn == "headless" else _with_window
        print(json.dumps(take(args.pair, args.drafter)))
        return 0
    speeds: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for _ in range(args.turns):
        for way in WAYS:
            speeds[way].append(_turn(way, args))
            print(f"{way}: {', '.join(f'{speed:.1f}' for speed in speeds[way][-1])} tokens/s")
    ratios = [
        statistics.median(turn[prompt] for turn in speeds["window"])
        / statistics.median(turn[prompt] for turn in speeds["headless"])
        for prompt in range(len(PROMPTS))
    ]
    shown = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    print(
        f"window over headless, medians by prompt: {shown}; median {statistics.median(ratios):.3f}"
    )
    return 0


def _turn(way: str, args: argparse.Namespace) -> list[float]:
    command = [sys.executable, "-m", "tests.benchmark.window_speed", "--turn", way]
    command += ["--pair", args.pair, "--drafter", args.drafter]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    speeds: list[float] = json.loads(ran.stdout.splitlines()[-1])
    return speeds


def _headless(pair: str, drafter: str) -> list[float]:
    engine = TimedEngine()
    target, draft = resolve_pair(Library(data_root() / "models"), pair=pair)
    request = LoadRequest(target=str(target), draft=str(draft) if draft is not None else None)
    engine.load(request, lambda _: None, CancelToken())
    for prompt in PROMPTS:
        request_of_prompt = GenerateRequest(
            messages=(("user", prompt),),
            sampling=SamplingParams(temperature=0.0),
            speculation=SpeculationParams(drafter=drafter, gamma="auto"),
            max_new_tokens=TOKENS,
        )
        for _ in engine.generate(request_of_prompt, CancelToken()):
            pass
    return engine.speeds


def _with_window(pair: str, drafter: str) -> list[float]:
    from PySide6.QtCore import QEventLoop, QTimer
    from PySide6.QtWidgets import QApplication

    from app.compose import Paceline, Parts, real_options
    from app.engine.fetch import ModelFetch
    from app.settings import Settings, SettingsStore
    from app.storage.conversations import ConversationStore
    from app.storage.db import Database

    app = QApplication(sys.argv[:1])
    engines: list[TimedEngine] = []

    def make() -> TimedEngine:
        engines.append(TimedEngine())
        return engines[-1]

    def until(holds: Callable[[], bool]) -> None:
        while not holds():
            loop = QEventLoop()
            QTimer.singleShot(50, loop.quit)
            loop.exec()

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        database = Database(home / "conversations.db")
        settings = Settings(pair=pair, temperature=0.0, drafter=drafter, max_new_tokens=TOKENS)
        program = Paceline(
            Parts(
                engine_factory=make,
                list_options=real_options,
                library=Library(data_root() / "models"),
                store=ConversationStore(database),
                settings=settings,
                saver=SettingsStore(home / "settings.json"),
                fetch=ModelFetch(),
            ),
            app,
        )
        program.window.resize(1360, 860)
        program.window.show()
        program.start()
        until(lambda: program.models.ready)
        ended: list[object] = []
        program.chat.reply.ended.connect(ended.append)
        for count, prompt in enumerate(PROMPTS, start=1):
            program.chat.open(None)
            program.chat.send(prompt)
            until(lambda count=count: len(ended) == count)
        program.window.close()
        database.close()
    return engines[0].speeds


if __name__ == "__main__":
    sys.exit(main())

"""Measures what a frame of streaming costs the window thread, by position in the text.

Run: ``QT_QPA_PLATFORM=offscreen python -m tests.benchmark.transcript_cost [--tokens 8000]``.
A frame is one drain at 30 Hz of 200 tokens/s: taking the tokens, rendering, laying out, painting.
Times are processor times of the window thread, so that other load does not count.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator

from PySide6.QtWidgets import QApplication

from app.records import Message, MessageState, TokenSpan
from app.widgets.transcript import TranscriptView
from core.events import Token

TOKENS_A_FRAME = 7
_SENTENCE = (
    "the table holds **every** name in a drawer and `hash` tells which one it is so that "
    "nobody has to look through *all* of them for a single number"
)
_CODE = (
    "def put(table, name, value):\n"
    '    """Store value under name."""\n'
    "    drawer = hash(name) % len(table)  # the rule\n"
    "    table[drawer].append((name, value))\n"
    "    return {'name': name, 'size': 42}\n\n"
)


def _words(count: int) -> str:
    words = _SENTENCE.split()
    return " ".join(random.choice(words) for _ in range(count))


def text_of(kind: str, characters: int) -> str:
    """Return about ``characters`` characters of one kind of Markdown."""
    parts: list[str] = []
    size, number = 0, 0
    opening = {"code": "```python\n", "table": "| name | number | note |\n|---|--:|---|\n"}
    parts.append(opening.get(kind, ""))
    while size < characters:
        number += 1
        if kind == "code":
            part = _CODE
        elif kind == "code-lines":
            part = "```text\n" if number == 1 else f"  line {number} of output: {_words(6)}\n"
        elif kind == "paragraph":
            part = _words(12) + ". "
        elif kind == "list":
            part = f"{number}. {_words(14)}\n   - {_words(6)}\n"
        elif kind == "list-code":
            part = f"{number}. {_words(10)}\n\n   ```python\n   x = {number}\n   ```\n\n"
        elif kind == "table":
            part = f"| {_words(2)} | {number} | {_words(5)} |\n"
        elif number % 4 == 0:
            part = "```python\n" + _CODE * 3 + "```\n\n"
        elif number % 4 == 2:
            part = "".join(f"- {_words(9)}\n" for _ in range(5)) + "\n"
        else:
            part = f"## {_words(4)}\n\n{_words(60)}\n\n"
        parts.append(part)
        size += len(part)
    return "".join(parts)


def tokens_of(text: str) -> Iterator[Token]:
    """Cut ``text`` into tokens of about four characters with origins as rounds make them."""
    position, pattern = 0, list[str]()
    while position < len(text):
        if not pattern:
            accepted = random.choice((4, 0, 2, 4))
            pattern = ["accepted"] * accepted + ["bonus" if accepted == 4 else "resampled"]
        length = random.choice((2, 3, 4, 5, 6))
        piece = text[position : position + length]
        position += length
        yield Token(id=1, text=piece, origin=pattern.pop(0), target_prob=0.5, draft_prob=0.5)


def stream(app: QApplication, kind: str, count: int) -> list[float]:
    """Stream one reply and return the milliseconds of every frame."""
    view = TranscriptView()
    view.resize(900, 800)
    view.show()
    view.set_messages([Message(1, 1, None, "user", "Go on.", 0.0)])
    view.add_message(Message(2, 1, 1, "assistant", "", 0.0, state=MessageState.STREAMING))
    app.processEvents()
    tokens = list(tokens_of(text_of(kind, count * 4)))[:count]
    frames = []
    for start in range(0, len(tokens), TOKENS_A_FRAME):
        begun = time.thread_time()
        view.append_tokens(2, tokens[start : start + TOKENS_A_FRAME])
        view.flush()
        app.processEvents()
        frames.append((time.thread_time() - begun) * 1000.0)
        # The rest of the frame passes, as it does at 30 Hz.
        time.sleep(max(0.0, 0.006 - frames[-1] / 1000.0))
    text = "".join(token.text for token in tokens)
    spans = tuple(TokenSpan(len(t.text), t.origin, 1, 0.5, 0.5) for t in tokens)
    begun = time.thread_time()
    view.finish_message(Message(2, 1, 1, "assistant", text, 0.0, spans=spans))
    app.processEvents()
    frames.append((time.thread_time() - begun) * 1000.0)
    view.close()
    view.deleteLater()
    app.processEvents()
    return frames


def quantile(values: list[float], part: float) -> float:
    """Return the value below which ``part`` of ``values`` lie."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Print one line a kind and quarter, and JSON at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=8000)
    parser.add_argument(
        "--kinds",
        nargs="*",
        default=[
            "mixed",
            "code",
            "code-lines",
            "paragraph",
            "list",
            "list-code",
            "table",
        ],
    )
    arguments = parser.parse_args()
    random.seed(1)
    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    report = {}
    for kind in arguments.kinds:
        frames = stream(app, kind, arguments.tokens)
        finish = frames.pop()
        quarters = [frames[i * len(frames) // 4 : (i + 1) * len(frames) // 4] for i in range(4)]
        report[kind] = {
            "finish_ms": round(finish, 1),
            "quarters": [
                {
                    "p50": round(quantile(q, 0.5), 2),
                    "p99": round(quantile(q, 0.99), 2),
                    "max": round(max(q), 2),
                }
                for q in quarters
            ],
        }
        for number, quarter in enumerate(report[kind]["quarters"], start=1):
            _say(f"{kind:11} quarter {number}: {quarter}")
        _say(f"{kind:11} finish: {finish:.1f} ms")
    _say(json.dumps(report))


if __name__ == "__main__":
    main()

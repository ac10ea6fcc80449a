"""A child process that speaks the protocol of ``paceline train-mtp --json`` without training.

Run as a script it plays the steps of its first argument, a JSON list. An object is an event that
it writes; a word waits until that word comes in; ``{"raw": TEXT}`` writes a line that is none,
``{"complain": TEXT}`` one to standard error; ``{"exit": CODE}`` ends, and ``{"die": SIGNAL}``
breaks off.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

Step = dict[str, Any] | str

LOAD: Step = {"event": "stage_started", "stage": "load", "detail": "fake-135m", "resumed": False}
GENERATE: Step = {
    "event": "stage_started",
    "stage": "generate",
    "detail": "training prompts",
    "resumed": False,
}
TRAIN: Step = {
    "event": "stage_started",
    "stage": "train",
    "detail": "300 steps",
    "resumed": False,
}
DISK: Step = {
    "event": "disk_use",
    "folder": "fake-folder",
    "needed_bytes": 3_000_000,
    "free_bytes": 9_000_000_000,
}
STOPPED: Step = {"event": "stopped", "stage": "train"}


def written(done: int, total: int = 1000) -> Step:
    """How far the text is."""
    return {
        "event": "progress",
        "stage": "generate",
        "done": done,
        "total": total,
        "seconds_left": 90.0,
        "tokens_per_second": 312.5,
    }


def trained(step: int, loss: float) -> Step:
    """How far the training is."""
    return {
        "event": "progress",
        "stage": "train",
        "unit": "steps",
        "done": step,
        "total": 300,
        "seconds_left": 45.0,
        "tokens_per_second": 2100.0,
        "loss": loss,
        "losses": [loss, loss * 1.1, loss * 1.2],
        "step": step,
        "epoch": 0,
    }


def earlier(losses: dict[int, float], lengths: dict[int, float]) -> Step:
    """How a training that goes on went before, by step."""
    return {
        "event": "earlier",
        "loss_steps": list(losses),
        "losses": list(losses.values()),
        "length_steps": list(lengths),
        "lengths": list(lengths.values()),
    }


def measured(step: int, *acceptance: float, length: float) -> Step:
    """A measurement."""
    return {
        "event": "evaluated",
        "step": step,
        "acceptance": list(acceptance),
        "length": length,
        "loss": 1.0,
        "tokens": 500,
    }


def finished(path: str, *acceptance: float, length: float = 1.9) -> Step:
    """The end."""
    return {
        "event": "finished",
        "path": path,
        "acceptance": list(acceptance),
        "length": length,
        "before": None,
        "seconds": 61.0,
    }


def failed(kind: str, message: str) -> Step:
    """The end that is none."""
    return {"event": "failed", "kind": kind, "message": message, "detail": "Traceback ..."}


class FakeTraining:
    """Gives the command that plays one list of steps a start, and notes what it was asked for."""

    def __init__(self, *plays: Sequence[Step]) -> None:
        self._plays = list(plays)
        self.asked: list[list[str]] = []

    @property
    def command(self) -> Callable[[Sequence[str]], list[str]]:
        """What TrainingProcess takes."""

        def make(arguments: Sequence[str]) -> list[str]:
            self.asked.append(list(arguments))
            play = self._plays[min(len(self.asked), len(self._plays)) - 1]
            return [sys.executable, __file__, json.dumps(list(play))]

        return make


def main() -> None:
    """Play the steps."""
    for step in json.loads(sys.argv[1]):
        if isinstance(step, str):
            while (line := sys.stdin.readline()) and line.strip() != step:
                pass
            if not line:
                return  # the window is gone
        elif "raw" in step:
            sys.stdout.write(step["raw"] + "\n")
        elif "complain" in step:
            sys.stderr.write(step["complain"] + "\n")
        elif "exit" in step:
            sys.exit(step["exit"])
        elif "die" in step:
            sys.stdout.flush()
            os.kill(os.getpid(), step["die"])
        else:
            sys.stdout.write(json.dumps(step) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

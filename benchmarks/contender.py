"""One contender of a comparison: a process that answers prompts, one at a time."""

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from core.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
_LOG_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The numbers of one reply. ``acceptance_length`` is tokens a round.

    ``tokens_per_second`` leaves the reading of the prompt out; None where one token or none came.
    """

    prompt_tokens: int
    tokens: int
    tokens_per_second: float | None
    first_token_ms: float | None
    acceptance_length: float | None


class Contender:
    """A worker process of ``benchmarks.peers``; leave the ``with`` block to end it."""

    def __init__(self, *, name: str, module: str, python: Path, threads: int) -> None:
        self.name = name
        self._log = tempfile.TemporaryFile(  # noqa: SIM115 - lives as long as the process
            "w+", encoding="utf-8", errors="replace"
        )
        number = str(threads)
        self._process = subprocess.Popen(
            [python, "-m", module],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "OMP_NUM_THREADS": number,
                "MKL_NUM_THREADS": number,
                "TOKENIZERS_PARALLELISM": "false",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # what was left for one that has ended
                self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def load(self, *, target: Path, draft: Path | None, threads: int) -> str:
        """Load the models and return a clause on what is in force. Raises UserError."""
        self._ask(
            {
                "target": str(target),
                "draft": None if draft is None else str(draft),
                "threads": threads,
            }
        )
        return str(self._ask({"ask": "about"})["about"])

    def render(self, text: str) -> tuple[list[int], list[int]]:
        """Return the ids of the prompt, and those that end a reply. Raises UserError."""
        answer = self._ask({"ask": "render", "text": text})
        return answer["ids"], answer["stop_ids"]

    def reply(self, mode: str, prompt: Mapping[str, object], max_new_tokens: int) -> Reply:
        """Make one reply from cold caches; ``prompt`` has text, ids and stop_ids.

        Raises UserError.
        """
        answer = self._ask(
            {"ask": "reply", "mode": mode, "max_new_tokens": max_new_tokens, **prompt}
        )
        del answer["ok"]
        return Reply(**answer)

    def _ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        if self._process.stdin is None or self._process.stdout is None:
            raise UserError(f"{self.name} has no streams.")
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer: dict[str, Any] = json.loads(line) if line else {"ok": False, "error": "it ended"}
        if not answer["ok"]:
            raise UserError(f"{self.name} failed: {answer['error']}.", f"It wrote: {self._said()}")
        return answer

    def _said(self) -> str:
        self._log.seek(0)
        return "\n".join(["", *self._log.read().splitlines()[-_LOG_LINES:]])

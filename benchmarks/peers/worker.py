"""A contender as a process: one JSON object a line in, one out. Standard library only."""

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def serve(load: Callable[[dict[str, Any]], Answer]) -> None:
    """Load what the first line asks for, then answer one line after the other until the end.

    Each answer has ``ok``; where that is false, ``error`` says why. What libraries print
    goes to standard error.
    """
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        answer: Answer | None = None
        for line in sys.stdin:
            request = json.loads(line)
            try:
                if answer is None:
                    answer = load(request)
                    result: dict[str, Any] = {}
                else:
                    result = answer(request)
                result = {"ok": True, **result}
            except Exception as error:  # noqa: BLE001 - the other side decides what to do
                traceback.print_exc()
                result = {"ok": False, "error": f"{type(error).__name__}: {error}"}
            out.write(json.dumps(result) + "\n")
            out.flush()

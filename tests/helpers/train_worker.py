"""Runs trainings in children of its own, so that a test can kill them without a start of torch.

Reads a JSON object a line: the keywords of a TrainRequest. Writes the child's process id, and then
``ended CODE`` once it is gone.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from core.requests import LoadRequest
from core.training.request import TrainRequest
from core.training.run import run_training


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 70
            try:
                code = _train(json.loads(line))
            finally:
                os._exit(code)
        _say(str(child))
        _, status = os.waitpid(child, 0)
        _say(f"ended {os.waitstatus_to_exitcode(status)}")


def _train(values: dict[str, Any]) -> int:
    torch.set_num_threads(1)
    load = LoadRequest(target=values.pop("target"))
    home = Path(values.pop("home"))
    data = tuple(map(Path, values.pop("data")))
    others = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    request = TrainRequest(load=load, home=home, data=data, **others)
    return 0 if run_training(request, lambda _: None, lambda: False) is not None else 1


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

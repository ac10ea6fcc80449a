"""A contender of the comparison that makes its numbers up, in a process of its own."""

import os
import sys
from typing import Any

from benchmarks.peers.worker import Answer, serve


def load(request: dict[str, Any]) -> Answer:
    os.write(1, b"loading\n")  # as a library may, and it must not get between the answers

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["ask"] == "about":
            return {"about": f"{os.environ['OMP_NUM_THREADS']} threads"}
        if request["ask"] == "render":
            return {"ids": [len(word) for word in request["text"].split()], "stop_ids": [0]}
        if request["mode"] == "broken":
            raise ValueError("no such mode")
        if request["mode"] == "gone":
            sys.stderr.write("the last words\n")
            sys.stderr.flush()
            os._exit(3)
        return {
            "prompt_tokens": len(request["ids"]),
            "tokens": request["max_new_tokens"],
            "tokens_per_second": 8.0,
            "first_token_ms": 100.0,
            "acceptance_length": 2.0,
        }

    return answer


if __name__ == "__main__":
    serve(load)

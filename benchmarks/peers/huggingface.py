"""transformers ``generate()`` as a contender: plain, assisted by the draft, and prompt lookup."""

import time
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, GenerationConfig, StoppingCriteria

from benchmarks.peers.worker import Answer, serve

MODES = ("plain", "assisted", "prompt lookup")
LOOKUP_TOKENS = 10
"""The value that transformers' own guide uses for ``prompt_lookup_num_tokens``."""


class Clock(StoppingCriteria):
    """Stops nothing, and notes when how many tokens stood; it is asked after every round."""

    def __init__(self) -> None:
        self.ticks: list[tuple[float, int]] = []

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        """Note the time; return that no row is done."""
        self.ticks.append((time.perf_counter(), input_ids.shape[1]))
        return torch.zeros(input_ids.shape[0], dtype=torch.bool)


def load(request: dict[str, Any]) -> Answer:
    """Load both models in float32, which is what transformers makes of a GGUF file on a CPU."""
    torch.set_num_threads(request["threads"])
    target = _read(request["target"])
    draft = _read(request["draft"]) if request["draft"] else None

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["ask"] == "about":
            return {"about": f"transformers {transformers.__version__}, float32 weights"}
        return _generate(target, draft, request)

    return answer


def _read(path: str) -> Any:
    file = Path(path)
    model: Any = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    )
    return model.eval()


def _generate(target: Any, draft: Any, request: dict[str, Any]) -> dict[str, Any]:
    mode, ids = request["mode"], torch.tensor([request["ids"]])
    make_config: Any = GenerationConfig
    config = make_config(
        max_new_tokens=request["max_new_tokens"],
        do_sample=False,
        eos_token_id=request["stop_ids"],
        pad_token_id=request["stop_ids"][0],
        prompt_lookup_num_tokens=LOOKUP_TOKENS if mode == "prompt lookup" else None,
    )
    clock = Clock()
    started = time.perf_counter()
    with torch.inference_mode():
        output = target.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=config,
            assistant_model=draft if mode == "assisted" else None,
            stopping_criteria=[clock],
        )
    (first_at, first_length), (last_at, last_length) = clock.ticks[0], clock.ticks[-1]
    tokens = output.shape[1] - ids.shape[1]
    decode_s = last_at - first_at
    return {
        "prompt_tokens": ids.shape[1],
        "tokens": tokens,
        "tokens_per_second": (last_length - first_length) / decode_s if decode_s else None,
        "first_token_ms": 1000 * (first_at - started),
        "acceptance_length": tokens / len(clock.ticks),
    }


if __name__ == "__main__":
    serve(load)

"""Paceline itself as a contender; it also renders the prompts for the others."""

from pathlib import Path
from typing import Any

from benchmarks.peers.worker import Answer, serve
from core.bench.cases import Case, Suite
from core.bench.configuration import parse_configuration
from core.bench.machine import peak_resident_bytes
from core.bench.records import Measurement
from core.bench.runner import Step, measure
from core.cancel import CancelToken
from core.engine import Engine
from core.hub.library import data_root
from core.models.loader import load_pair
from core.prompt import render, stop_ids
from core.requests import LoadRequest


def load(request: dict[str, Any]) -> Answer:
    """Load the pair through Paceline's own loader, from the prepared copies."""
    pair = load_pair(
        LoadRequest(target=request["target"], draft=request["draft"]),
        prepared_dir=Path(data_root() / "prepared"),
        on_progress=lambda _progress: None,
        cancel=CancelToken(),
    )
    target = pair.target
    engine = Engine.from_parts(
        target=target.model,
        tokenizer=target.tokenizer,
        draft=pair.draft.model if pair.draft is not None else None,
    )
    config = target.model.config
    ends = stop_ids(target.tokenizer, getattr(target.model, "generation_config", None), config)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["ask"] == "about":
            return {"about": f"{target.precision} weights", "peak_bytes": peak_resident_bytes()}
        if request["ask"] == "render":
            ids = render(target.tokenizer, (("user", request["text"]),)).ids
            return {"ids": list(ids), "stop_ids": sorted(ends)}
        case = Case(
            suite=Suite.CODE,  # only the text counts here
            id="prompt",
            text=request["text"],
            max_new_tokens=request["max_new_tokens"],
        )
        step = Step(repeat=0, case=case, configuration=parse_configuration(request["mode"]))
        outcome = measure(engine, step, 0, CancelToken())
        if not isinstance(outcome, Measurement):
            raise RuntimeError(f"the reply failed: {outcome}")
        return {
            "prompt_tokens": outcome.prompt_tokens,
            "tokens": outcome.tokens,
            "tokens_per_second": outcome.tokens_per_second,
            "first_token_ms": outcome.time_to_first_token_ms,
            "acceptance_length": outcome.tokens / outcome.rounds if outcome.rounds else None,
        }

    return answer


if __name__ == "__main__":
    serve(load)

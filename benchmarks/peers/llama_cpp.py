"""llama.cpp through ``xllamacpp`` as a contender: plain, with its draft, and n-gram lookup.

Runs in an environment that has xllamacpp and nothing of Paceline's. Each mode is a server of its
own, made when it is first asked for.
"""

from typing import Any

import xllamacpp

from benchmarks.peers.worker import Answer, serve

MODES = ("plain", "draft", "n-gram")
CONTEXT_TOKENS = 2048
DRAFT_TOKENS = 4
NGRAM_MATCH = 3
NGRAM_DRAFT = 8
"""Tokens that have to be equal, and tokens then proposed. The defaults are 12 and 48, which hardly
ever match and then propose more than a CPU verifies in time; these are the faster setting."""


def load(request: dict[str, Any]) -> Answer:
    """Return what answers; the models are read by the first request of each mode."""
    paths: dict[str, Any] = request
    servers: dict[str, Any] = {}

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if request["ask"] == "about":
            return {"about": f"xllamacpp {xllamacpp.__version__}, weights as in the GGUF file"}
        mode = request["mode"]
        if mode not in servers:
            servers[mode] = _server(mode, paths)
        return _complete(servers[mode], mode, request)

    return answer


def _server(mode: str, paths: dict[str, Any]) -> Any:
    kinds = xllamacpp.common_speculative_type
    params = xllamacpp.CommonParams()
    params.model.path = paths["target"]
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.verbosity = -1
    speculative = params.speculative
    pools = [params.cpuparams, params.cpuparams_batch]
    pools += [speculative.draft.cpuparams, speculative.draft.cpuparams_batch]
    for pool in pools:
        pool.n_threads = paths["threads"]
    # Naming a draft is not enough: without its kind in `types`, this release decodes plainly.
    if mode == "draft":
        speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        speculative.draft.mparams.path = paths["draft"]
        speculative.draft.n_max = DRAFT_TOKENS
    elif mode == "n-gram":
        speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
        speculative.ngram_simple.size_n = NGRAM_MATCH
        speculative.ngram_simple.size_m = NGRAM_DRAFT
    return xllamacpp.Server(params)


def _complete(server: Any, mode: str, request: dict[str, Any]) -> dict[str, Any]:
    result = server.handle_completions(
        {
            "prompt": request["ids"],
            "max_tokens": request["max_new_tokens"],
            "temperature": 0.0,
            "cache_prompt": False,
        }
    )
    if "timings" not in result:
        raise RuntimeError(f"llama.cpp refused: {result}")
    timings = result["timings"]
    tokens, accepted = timings["predicted_n"], timings.get("draft_n_accepted", 0)
    if mode == "draft" and tokens > DRAFT_TOKENS and not timings.get("draft_n"):
        raise RuntimeError("llama.cpp drafted nothing, so its draft is not in use")
    decode_ms = timings["predicted_ms"]
    return {
        "prompt_tokens": timings["prompt_n"],
        "tokens": tokens,
        # The first token comes with the prompt, so it is no part of the decode time.
        "tokens_per_second": 1000 * (tokens - 1) / decode_ms if decode_ms else None,
        "first_token_ms": timings["prompt_ms"],
        "acceptance_length": tokens / (tokens - accepted) if tokens > accepted else None,
    }


if __name__ == "__main__":
    serve(load)

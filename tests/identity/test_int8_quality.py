"""What int8 on the CPU costs in quality: the divergence from float32 on a fixed text."""

from pathlib import Path

import pytest

from core.bench.cases import load_cases
from core.cancel import CancelToken
from core.models.loader import load_pair
from core.models.runners import make_runner
from core.requests import LoadRequest

TOKENS = 500


def divergence(model: Path, prepared_dir: Path) -> float:
    """Mean KL(float32 || int8) over the text's positions, in nats."""
    text = "\n\n".join(case.text for case in load_cases(("summarise",)))
    logs = []
    for precision in ("float32", "int8"):
        pair = load_pair(
            LoadRequest(target=str(model), device="cpu", precision=precision),
            prepared_dir=prepared_dir,
            on_progress=lambda _: None,
            cancel=CancelToken(),
        )
        ids = pair.target.tokenizer.encode(text)[:TOKENS]
        assert len(ids) == TOKENS
        logs.append(make_runner(pair.target.model).forward(ids, TOKENS).log_softmax(-1))
    reference, quantized = logs
    return float((reference.exp() * (reference - quantized)).sum(-1).mean())


@pytest.mark.real_model
def test_int8_stays_close_to_the_default_model(smollm2_path, prepared_dir):
    assert divergence(smollm2_path, prepared_dir) <= 0.04


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1], ids=["1.5b", "0.5b"])
def test_int8_stays_close_to_the_qwen_models(qwen_pair_paths, prepared_dir, which):
    assert divergence(qwen_pair_paths[which], prepared_dir) <= 0.02

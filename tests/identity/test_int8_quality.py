"""What int8 on the CPU costs in quality: the divergence from float32 on a fixed text."""

from pathlib import Path

import pytest

from core.bench.cases import load_cases
from core.models.loader import LoadedModel
from core.models.prepared import PreparedCopy
from core.models.runners import make_runner
from core.models.source import open_source
from core.requests import Precision
from tests.helpers.loading import load_models

TOKENS = 500


def divergence(reference: LoadedModel, quantized: LoadedModel) -> float:
    """Mean KL(float32 || int8) over the text's positions, in nats."""
    assert (reference.precision, quantized.precision) == ("float32", "int8")
    text = "\n\n".join(case.text for case in load_cases(("summarise",)))
    ids = reference.tokenizer.encode(text)[:TOKENS]
    assert len(ids) == TOKENS
    exact, rounded = (
        make_runner(loaded.model).forward(ids, TOKENS).log_softmax(-1)
        for loaded in (reference, quantized)
    )
    return float((exact.exp() * (exact - rounded)).sum(-1).mean())


@pytest.mark.real_model
def test_int8_stays_close_to_the_default_model(smollm2, smollm2_path, prepared_dir):
    exact = load_models(smollm2_path, None, prepared_dir, precision="float32").target
    assert divergence(exact, smollm2.target) <= 0.04


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1], ids=["1.5b", "0.5b"])
def test_int8_stays_close_to_the_qwen_models(
    qwen, qwen_pair_paths: tuple[Path, Path], prepared_dir, which
):
    _, pair = qwen
    # The copy holds what was quantized, in bfloat16. To unpack the file once more in float32
    # would take longer than all the rest.
    source = open_source(str(qwen_pair_paths[which]))
    folder = PreparedCopy(prepared_dir, source, Precision.INT8).folder
    exact = load_models(folder, None, prepared_dir, precision="float32").target
    assert divergence(exact, (pair.target, pair.draft)[which]) <= 0.02

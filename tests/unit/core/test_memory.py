"""Sizing a pair without loading it."""

from pathlib import Path

import psutil
import pytest

from core.models.memory import (
    CUDA_BYTES,
    GRAPHS_BYTES,
    WORKSPACE_BYTES,
    estimate,
    free_memory_bytes,
    judge_fit,
    weights_room_bytes,
)
from core.models.precision import weights_bytes
from core.models.source import ModelSource, SourceKind, open_source
from core.requests import Device, Precision
from tests.helpers.checkpoints import save_folder, write_gguf
from tests.helpers.tiny import tiny_llama


def source(elements: int, name: str = "model", **numbers: int) -> ModelSource:
    return ModelSource(
        kind=SourceKind.GGUF, path=Path(name), name=name, elements=elements, numbers=numbers
    )


def test_weights_are_counted_from_the_head_of_the_file(tmp_path: Path):
    model = tiny_llama(vocab=400)
    elements = sum(parameter.numel() for parameter in model.parameters())
    folder = open_source(str(save_folder(tmp_path / "folder", model)))
    assert folder.elements == elements
    assert estimate(folder, Precision.FLOAT32, 0).total_bytes == 4 * elements
    gguf = open_source(str(write_gguf(tmp_path / "model.gguf")))
    assert gguf.numbers["layers"] == 2
    assert estimate(gguf, Precision.BFLOAT16, 0).total_bytes == 2 * gguf.elements


def test_the_cache_grows_with_the_context_up_to_the_models_own():
    # Qwen2.5 1.5B: 28 layers, 2 key/value heads of 128, 16 bits: 28 KiB a token.
    model = source(10**9, layers=28, heads=12, kv_heads=2, hidden=1536, context=32768)
    assert estimate(model, Precision.BFLOAT16, 1000).cache_bytes == 28 * 1024 * 1000
    assert estimate(model, Precision.FLOAT32, 1000).cache_bytes == 56 * 1024 * 1000
    longest = estimate(model, Precision.BFLOAT16, 32768).cache_bytes
    assert estimate(model, Precision.BFLOAT16, 10**6).cache_bytes == longest


def test_a_model_of_unknown_shape_counts_its_weights_alone():
    assert estimate(source(100), Precision.BFLOAT16, 4096).total_bytes == 200


@pytest.mark.parametrize(
    ("free_bytes", "fits", "target_fits"),
    [(10**10, True, True), (3 * 10**9, False, True), (10**9, False, False), (None, True, True)],
)
def test_the_draft_is_what_does_not_fit_first(
    free_bytes: int | None, fits: bool, target_fits: bool
):
    verdict = judge_fit(
        source(10**9),
        source(10**9),
        precision=Precision.BFLOAT16,
        device=Device.CPU,
        context_tokens=None,
        free_bytes=free_bytes,
    )
    assert (verdict.fits, verdict.target_fits) == (fits, target_fits)
    assert verdict.needed_bytes == 4 * 10**9 + WORKSPACE_BYTES
    assert "4.3 GB of memory are needed" in verdict.reason


def test_on_a_gpu_the_captured_passes_of_both_models_count_too():
    def needed(device: Device, draft: ModelSource | None) -> int:
        return judge_fit(
            source(10**9),
            draft,
            precision=Precision.BFLOAT16,
            device=device,
            context_tokens=None,
            free_bytes=10**12,
        ).needed_bytes

    alone = needed(Device.CUDA, None) - needed(Device.CPU, None)
    assert alone == CUDA_BYTES + GRAPHS_BYTES
    both = needed(Device.CUDA, source(10**9)) - needed(Device.CPU, source(10**9))
    assert both == CUDA_BYTES + 2 * GRAPHS_BYTES


def test_automatic_precision_leaves_room_for_what_is_not_weights():
    # Qwen2.5 7B: 28 layers, 4 key/value heads of 128, 16 bits: 56 KiB a token.
    target = source(7_600_000_000, layers=28, heads=28, kv_heads=4, hidden=3584, context=32768)
    free_bytes = 16 * 10**9  # the weights alone would take 15.2
    room = weights_room_bytes(target, Device.CUDA, None, free_bytes)
    other_bytes = 56 * 1024 * 4096 + WORKSPACE_BYTES + CUDA_BYTES + GRAPHS_BYTES
    assert room == free_bytes - other_bytes
    assert weights_bytes(target.elements, Precision.BFLOAT16) > room
    assert weights_room_bytes(target, Device.CUDA, None, 10**6) == 0
    assert weights_room_bytes(target, Device.CUDA, None, None) is None


def test_the_free_memory_of_a_cpu_is_what_the_system_can_give():
    free_bytes = free_memory_bytes(Device.CPU)
    assert free_bytes is not None
    assert 0 < free_bytes <= psutil.virtual_memory().total


def test_a_gpu_that_does_not_answer_is_unknown_and_no_error(monkeypatch: pytest.MonkeyPatch):
    import pynvml

    def refuse() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", refuse)
    assert free_memory_bytes(Device.CUDA) is None

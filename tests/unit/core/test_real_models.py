"""The models of the catalog as they are fetched, through the loader."""

from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.models import loader
from core.models.loader import LoadedPair
from core.models.pairing import check_pair
from core.models.prepared import PreparedCopy
from core.models.runners import make_runner
from core.models.source import open_source
from core.requests import Precision
from tests.helpers.loading import load_models


@pytest.mark.real_model
def test_the_default_model_loads_whole_and_knows_every_end_of_text(smollm2: LoadedPair):
    target = smollm2.target
    assert smollm2.notices == ()
    assert (target.context_limit, target.vocab_size) == (8192, 49152)
    ends = [target.tokenizer.convert_ids_to_tokens(i) for i in (0, 2)]
    assert ends == ["<|endoftext|>", "<|im_end|>"]
    assert target.model.generation_config.eos_token_id == [0, 2]
    text = "Grüße 日本 👩‍👩‍👧: 12345"
    assert target.tokenizer.decode(target.tokenizer.encode(text)) == text
    ids = target.tokenizer.encode("The capital of France is")
    best = int(make_runner(target.model).forward(ids, 1).argmax())
    assert target.tokenizer.decode([best]) == " Paris"


@pytest.mark.real_model
def test_the_second_load_of_the_default_model_maps_the_prepared_copy(
    smollm2: LoadedPair,
    smollm2_path: Path,
    prepared_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    unpacked = record_unpacking(monkeypatch)
    before = stamps(prepared_dir)
    assert load_models(smollm2_path, None, prepared_dir, precision="int8").notices == ()
    assert before
    assert (unpacked, stamps(prepared_dir)) == ([], before)


@pytest.mark.slow
def test_the_qwen_pair_shares_its_vocabulary_and_is_kept_for_the_next_load(
    qwen: tuple[Engine, LoadedPair], qwen_pair_paths: tuple[Path, Path], prepared_dir: Path
):
    _, pair = qwen
    assert pair.draft is not None
    verdict = check_pair(
        pair.target.tokenizer,
        pair.draft.tokenizer,
        pair.target.vocab_size,
        pair.draft.vocab_size,
    )
    assert verdict.compatible
    assert verdict.shared_vocab == 151_665
    # What the next load looks at before it unpacks a model again.
    for path in qwen_pair_paths:
        copy = PreparedCopy(prepared_dir, open_source(str(path)), Precision.INT8)
        assert copy.is_whole


def record_unpacking(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the functions that read weights out of a GGUF file, as they are called."""
    called: list[str] = []

    def recording(name: str) -> Any:
        real = getattr(loader, name)

        def call(*arguments: Any, **options: Any) -> Any:
            called.append(name)
            return real(*arguments, **options)

        return call

    for name in ("unpack_gguf", "read_gguf"):
        monkeypatch.setattr(loader, name, recording(name))
    return called


def stamps(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Which file is at each path below a folder, when it was written, and how large it is."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    found = {str(path): path.stat() for path in files}
    return {name: (stat.st_ino, stat.st_mtime_ns, stat.st_size) for name, stat in found.items()}

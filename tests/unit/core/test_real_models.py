"""The models of the catalog as they are fetched, through the loader."""

import time
from pathlib import Path

import pytest

from core.cancel import CancelToken
from core.models.loader import LoadedPair, load_pair
from core.models.pairing import check_pair
from core.models.runners import make_runner
from core.requests import LoadRequest


def load(target: Path, draft: Path | None, prepared_dir: Path) -> LoadedPair:
    request = LoadRequest(
        target=str(target), draft=None if draft is None else str(draft), device="cpu"
    )
    return load_pair(
        request, prepared_dir=prepared_dir, on_progress=lambda _: None, cancel=CancelToken()
    )


@pytest.mark.real_model
def test_the_default_model_loads_whole_and_knows_every_end_of_text(
    smollm2_path: Path, prepared_dir: Path
):
    pair = load(smollm2_path, None, prepared_dir)
    target = pair.target
    assert pair.notices == ()
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
def test_the_second_load_of_the_default_model_takes_seconds(smollm2_path: Path, prepared_dir: Path):
    load(smollm2_path, None, prepared_dir)
    started = time.process_time()
    load(smollm2_path, None, prepared_dir)
    # 0.9 s of work; wall time would measure the neighbours as well.
    assert time.process_time() - started < 5.0


@pytest.mark.slow
def test_the_qwen_pair_shares_its_vocabulary_and_loads_again_in_seconds(
    qwen_pair_paths: tuple[Path, Path], prepared_dir: Path
):
    pair = load(*qwen_pair_paths, prepared_dir)
    assert pair.draft is not None
    verdict = check_pair(
        pair.target.tokenizer,
        pair.draft.tokenizer,
        pair.target.vocab_size,
        pair.draft.vocab_size,
    )
    assert verdict.compatible
    assert verdict.shared_vocab == 151_665
    del pair
    started = time.process_time()
    load(*qwen_pair_paths, prepared_dir)
    assert time.process_time() - started < 20.0

"""Loading pairs: from both kinds of source, quietly, offline, and with every fault in words."""

import gc
import json
import re
import socket
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from core.cancel import CancelToken
from core.errors import Cancelled, UserError
from core.events import LoadProgress
from core.models import gguf_weights
from core.models import loader as module
from core.models.loader import LoadedPair, load_pair
from core.models.memory import FitVerdict
from core.models.prepared import remove_copies_of
from core.requests import Device, LoadRequest, Precision
from tests.helpers.checkpoints import save_folder, write_gguf
from tests.helpers.tiny import tiny_llama
from tests.helpers.tiny_tokenizers import byte_level


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_folder(tmp_path_factory.mktemp("models") / "my model é")


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("models") / "tiny model é.gguf")


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    return tmp_path / "prepared copies é"


def load(
    target: Path,
    prepared: Path,
    draft: Path | None = None,
    *,
    precision: str = "float32",
    context_limit: int | None = None,
    progress: list[LoadProgress] | None = None,
    cancel: CancelToken | None = None,
) -> LoadedPair:
    return load_pair(
        LoadRequest(
            target=str(target),
            draft=None if draft is None else str(draft),
            device="cpu",
            precision=precision,
            context_limit=context_limit,
        ),
        prepared_dir=prepared,
        on_progress=([] if progress is None else progress).append,
        cancel=cancel or CancelToken(),
    )


def logits(pair: LoadedPair) -> torch.Tensor:
    with torch.inference_mode():
        return pair.target.model(torch.tensor([[1, 2, 3]])).logits


def test_a_folder_loads_with_what_the_engine_needs_to_know(folder: Path, prepared: Path):
    target = load(folder, prepared).target
    assert target.name == "my model é"
    assert target.device is Device.CPU
    assert target.precision is Precision.FLOAT32
    assert target.context_limit == 512
    assert target.vocab_size == target.model.get_output_embeddings().weight.shape[0]
    assert not target.model.training
    assert target.tokenizer.decode(target.tokenizer.encode("the fox")) == "the fox"
    assert not prepared.exists()


def test_the_context_can_be_capped_but_not_stretched(folder: Path, prepared: Path):
    assert load(folder, prepared, context_limit=100).target.context_limit == 100
    assert load(folder, prepared, context_limit=10**6).target.context_limit == 512


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_weights_have_the_precision_asked_for(folder: Path, prepared: Path, precision: str):
    target = load(folder, prepared, precision=precision).target
    dtypes = {parameter.dtype for parameter in target.model.parameters()}
    assert dtypes == {getattr(torch, precision)}
    assert target.precision == precision


def test_a_gguf_file_loads_the_same_from_itself_and_from_its_prepared_copy(
    gguf_file: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
):
    first = load(gguf_file, prepared)
    monkeypatch.setattr(module, "read_gguf", None)  # the file is not unpacked again
    second = load(gguf_file, prepared)
    assert torch.equal(logits(first), logits(second))
    assert first.target.tokenizer.get_vocab() == second.target.tokenizer.get_vocab()
    assert second.target.model.generation_config.eos_token_id == [0, 2]
    assert second.notices == ()


def test_loading_leaves_the_libraries_as_they_were(gguf_file: Path, prepared: Path):
    import gguf
    from transformers import modeling_gguf_pytorch_utils as converter
    from transformers.utils import logging

    def state() -> tuple[object, ...]:
        return (
            gguf.GGUFReader,
            gguf.get_tensor_name_map,
            converter.tqdm,
            logging.get_verbosity(),
            logging.set_tqdm_hook(None),
        )

    before = state()
    load(gguf_file, prepared)
    assert state() == before


def test_the_prepared_copy_says_what_it_was_made_from(gguf_file: Path, prepared: Path):
    load(gguf_file, prepared)
    (copy,) = prepared.iterdir()
    card = json.loads((copy / "paceline.json").read_text(encoding="utf-8"))
    assert card["source"] == str(gguf_file)
    assert card["source_size_bytes"] == gguf_file.stat().st_size
    assert card["source_mtime_ns"] == gguf_file.stat().st_mtime_ns
    assert "model.safetensors" in card["files"]


def test_a_changed_source_gets_a_new_copy_and_the_old_one_goes(tmp_path: Path, prepared: Path):
    path = write_gguf(tmp_path / "model.gguf", seed=1)
    before = logits(load(path, prepared))
    (old,) = prepared.iterdir()
    write_gguf(path, seed=2)
    after = logits(load(path, prepared))
    assert not torch.equal(before, after)
    (new,) = prepared.iterdir()
    assert new != old


@pytest.mark.parametrize("damage", ["truncate", "delete", "no card", "scramble"])
def test_a_damaged_copy_is_made_anew(gguf_file: Path, prepared: Path, damage: str):
    expected = logits(load(gguf_file, prepared))
    (copy,) = prepared.iterdir()
    weights = copy / "model.safetensors"
    if damage == "truncate":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif damage == "delete":
        (copy / "tokenizer.json").unlink()
    elif damage == "no card":
        (copy / "paceline.json").unlink()
    else:
        content = weights.read_bytes()
        weights.write_bytes(b"\xff" * 64 + content[64:])
    assert torch.equal(logits(load(gguf_file, prepared)), expected)
    assert len(list(prepared.iterdir())) == 1


def test_a_build_that_was_killed_is_cleared_away_and_never_used(gguf_file: Path, prepared: Path):
    leftover = prepared / ".building-999999999-x"
    leftover.mkdir(parents=True)
    (leftover / "model.safetensors").write_bytes(b"half")
    load(gguf_file, prepared)
    assert not leftover.exists()
    assert len(list(prepared.iterdir())) == 1


def test_without_a_place_for_the_copy_loading_goes_on_with_a_notice(
    gguf_file: Path, tmp_path: Path
):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    pair = load(gguf_file, in_the_way)
    assert logits(pair).shape == (1, 3, pair.target.vocab_size)
    (notice,) = pair.notices
    assert "cannot be written" in notice
    assert "takes as long to load the next time" in notice


def test_on_a_full_disk_loading_goes_on_with_a_notice(
    gguf_file: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
):
    from core.models import prepared as prepared_module

    def full(*_: object) -> None:
        raise UserError("The disk is full.", "Free some space.")

    monkeypatch.setattr(prepared_module, "check_disk", full)
    pair = load(gguf_file, prepared)
    assert pair.notices == (
        "The disk is full. Therefore tiny model é takes as long to load the next time.",
    )
    assert not prepared.exists()


def test_a_disk_that_fills_while_the_copy_is_written_leaves_no_copy(
    gguf_file: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
):
    def fill(source: Any, folder: Path, **_: Any) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "unpack_gguf", fill)
    pair = load(gguf_file, prepared)
    assert "is full" in pair.notices[0]
    assert list(prepared.iterdir()) == []


def test_a_layout_that_is_not_known_is_unpacked_by_transformers(
    gguf_file: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
):
    progress: list[LoadProgress] = []
    expected = logits(load(gguf_file, prepared))
    remove_copies_of(gguf_file, prepared)
    monkeypatch.setattr(gguf_weights, "_FAMILIES", frozenset())
    assert torch.equal(logits(load(gguf_file, prepared, progress=progress)), expected)
    assert "Keeping the prepared target" in {entry.stage for entry in progress}
    assert len(list(prepared.iterdir())) == 1


def test_a_disk_that_fills_while_transformers_copy_is_kept_leaves_none(
    gguf_file: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
):
    def fill(model: Any, tokenizer: Any, folder: Path, on_fraction: Any) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gguf_weights, "_FAMILIES", frozenset())
    monkeypatch.setattr(module, "save_folder", fill)
    assert "is full" in load(gguf_file, prepared).notices[0]
    assert list(prepared.iterdir()) == []


def test_loading_prints_nothing_and_reports_stages_with_fractions(
    gguf_file: Path, prepared: Path, capfd: pytest.CaptureFixture[str]
):
    progress: list[LoadProgress] = []
    load(gguf_file, prepared, gguf_file, progress=progress)
    assert capfd.readouterr() == ("", "")
    stages = list(dict.fromkeys(entry.stage for entry in progress))
    assert stages == [
        "Looking the models over",
        "Preparing the target",
        "Loading the target",
        "Loading the draft",
    ]
    fractions = [entry.fraction for entry in progress if entry.stage == "Preparing the target"]
    assert fractions[0] is None
    assert fractions[-1] == 1.0


def test_cancelling_stops_between_steps_and_leaves_nothing(
    gguf_file: Path, folder: Path, prepared: Path
):
    for stage in ("Preparing the target", "Loading the target", "Loading the draft"):
        cancel = CancelToken()

        class Stopper(list[LoadProgress]):
            def append(self, entry: LoadProgress) -> None:
                if entry.stage == stage:  # noqa: B023 - used within this turn of the loop
                    cancel.cancel()  # noqa: B023

        with pytest.raises(Cancelled):
            load(gguf_file, prepared, folder, progress=Stopper(), cancel=cancel)
        assert not list(prepared.glob(".building*"))


def test_a_local_model_loads_with_every_socket_blocked(
    gguf_file: Path, folder: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
):
    attempts: list[object] = []

    def refuse(*args: object, **_: object) -> None:
        attempts.append(args)
        raise OSError("blocked")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert load(gguf_file, prepared, folder).draft is not None
    assert attempts == []


def test_weights_that_are_missing_are_found_whatever_the_config_says(
    folder: Path, tmp_path: Path, prepared: Path
):
    head = save_folder(tmp_path / "head")
    weights = load_file(head / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if "layers.0" in name}
    save_file(kept, head / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"not a whole model.*weights are missing.*draft-only"):
        load(head, prepared)


def test_a_gguf_file_with_missing_layers_is_no_whole_model(tmp_path: Path, prepared: Path):
    path = write_gguf(tmp_path / "part.gguf", leave_out=("blk.1.ffn_up.weight",))
    with pytest.raises(UserError, match="1 of its weights are missing"):
        load(path, prepared)


@pytest.mark.parametrize(
    "config",
    [{"model_type": "no-such-kind"}, {"hidden_size": 64}, {"num_attention_heads": "four"}],
)
def test_a_config_that_does_not_fit_is_one_sentence(
    tmp_path: Path, prepared: Path, config: dict[str, Any]
):
    broken = save_folder(tmp_path / "broken")
    data = json.loads((broken / "config.json").read_text()) | config
    (broken / "config.json").write_text(json.dumps(data))
    with pytest.raises(UserError) as caught:
        load(broken, prepared)
    assert caught.value.action
    assert "\n" not in str(caught.value)


def test_a_damaged_tokenizer_is_one_sentence(tmp_path: Path, prepared: Path):
    broken = save_folder(tmp_path / "broken")
    (broken / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match="broken could not be loaded"):
        load(broken, prepared)


def test_an_encoder_without_a_telling_config_is_refused(tmp_path: Path, prepared: Path):
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    ViTModel(config).save_pretrained(str(tmp_path / "vit"))
    byte_level().save_pretrained(str(tmp_path / "vit"))
    data = json.loads((tmp_path / "vit" / "config.json").read_text()) | {"architectures": None}
    (tmp_path / "vit" / "config.json").write_text(json.dumps(data))
    with pytest.raises(UserError, match="is a vit model, which cannot write text"):
        load(tmp_path / "vit", prepared)


def fail_on_draft(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[weakref.ref[Any]]:
    """Raise ``error`` from inside the loading of a second model, which is half there by then."""
    from transformers import AutoModelForCausalLM

    real = AutoModelForCausalLM.from_pretrained
    calls: list[str] = []
    half_loaded: list[weakref.ref[Any]] = []

    def from_pretrained(path: str, **settings: Any) -> Any:
        calls.append(path)
        result = real(path, **settings)
        if len(calls) == 2:
            half_loaded.append(weakref.ref(result[0]))
            raise error
        return result

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", from_pretrained)
    return half_loaded


@pytest.mark.parametrize(
    "error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory"), OSError(12, "no memory")]
)
def test_memory_that_runs_out_on_the_draft_leaves_the_target_usable(
    folder: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    half_loaded = fail_on_draft(monkeypatch, error)
    pair = load(folder, prepared, folder)
    error.__traceback__ = None  # pytest keeps the parameter, and with it the frames
    gc.collect()
    assert pair.draft is None
    assert pair.notices == (
        "The draft model was left out: There is not enough memory for my model é.",
    )
    assert logits(pair).shape[1] == 3
    assert half_loaded[0]() is None


def test_an_allocator_that_fails_with_a_plain_error_is_told_by_the_numbers(
    folder: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
):
    from core.models import checkpoint

    fail_on_draft(monkeypatch, RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    monkeypatch.setattr(checkpoint, "free_memory_bytes", lambda _: 1000)
    assert "not enough memory" in load(folder, prepared, folder).notices[0]


def test_a_draft_that_fails_otherwise_is_left_out_with_the_reason(
    folder: Path, tmp_path: Path, prepared: Path
):
    broken = save_folder(tmp_path / "broken")
    (broken / "tokenizer.json").write_text("{}")
    pair = load(folder, prepared, broken)
    assert pair.draft is None
    assert "broken could not be loaded" in pair.notices[0]


def test_a_draft_of_another_vocabulary_is_left_out_before_it_is_unpacked(
    gguf_file: Path, tmp_path: Path, prepared: Path
):
    draft = write_gguf(tmp_path / "permuted.gguf", swapped=(40, 41))
    progress: list[LoadProgress] = []
    pair = load(gguf_file, prepared, draft, progress=progress)
    assert pair.draft is None
    assert re.search(r"left out: The vocabularies differ: token 40 is .* and .*", pair.notices[0])
    assert not any("draft" in step.stage for step in progress)


def test_a_draft_of_the_same_vocabulary_is_loaded(gguf_file: Path, tmp_path: Path, prepared: Path):
    pair = load(gguf_file, prepared, write_gguf(tmp_path / "other.gguf", seed=1))
    assert pair.draft is not None
    assert pair.notices == ()


def test_a_draft_that_does_not_exist_stops_the_load_before_it_begins(folder: Path, prepared: Path):
    progress: list[LoadProgress] = []
    with pytest.raises(UserError, match="There is no model at"):
        load(folder, prepared, folder.parent / "gone", progress=progress)
    assert len(progress) == 1


def pretend_fit(monkeypatch: pytest.MonkeyPatch, *, target_fits: bool) -> None:
    verdict = FitVerdict(
        fits=False, target_fits=target_fits, needed_bytes=9, free_bytes=5, reason="9 against 5."
    )
    monkeypatch.setattr(module, "judge_fit", lambda *_, **__: verdict)


def test_a_draft_that_would_not_fit_is_left_out_first(
    folder: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
):
    pretend_fit(monkeypatch, target_fits=True)
    pair = load(folder, prepared, folder)
    assert pair.draft is None
    assert "not enough memory for both. 9 against 5." in pair.notices[0]


def test_a_target_that_would_not_fit_is_refused_before_it_is_read(
    folder: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
):
    pretend_fit(monkeypatch, target_fits=False)
    with pytest.raises(UserError, match=r"not enough memory for my model é. 9 against 5."):
        load(folder, prepared)


def test_memory_that_runs_out_on_the_target_is_one_sentence(
    folder: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(tiny_llama().__class__, "__init__", fail)
    with pytest.raises(UserError, match="There is not enough memory for my model é"):
        load(folder, prepared)


def test_loading_and_dropping_ten_times_keeps_no_model_alive(folder: Path, prepared: Path):
    alive: list[weakref.ref[Any]] = []
    for _ in range(10):
        pair = load(folder, prepared)
        alive += [weakref.ref(pair.target.model), weakref.ref(pair.target.tokenizer)]
        del pair
        gc.collect()
    assert [reference() for reference in alive] == [None] * 20

"""A wrong choice of model is told in one sentence, before anything is loaded."""

import contextlib
import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import UserError
from core.models.gguf_header import read_gguf_header
from core.models.source import SourceKind, open_source
from tests.helpers.checkpoints import save_folder, write_gguf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_folder(tmp_path_factory.mktemp("models") / "Größe 模型")


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("models") / "tiny model é.gguf")


def copy_of(folder: Path, to: Path, **config: Any) -> Path:
    """A copy of the folder whose config.json is changed; None removes an entry."""
    to.mkdir()
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    data = json.loads((to / "config.json").read_text()) | config
    (to / "config.json").write_text(json.dumps({k: v for k, v in data.items() if v is not None}))
    return to


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        open_source(str(path))
    assert caught.value.action
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_both_kinds_open_from_paths_with_spaces_and_letters_of_any_script(
    folder: Path, gguf_file: Path
):
    assert open_source(str(folder)).kind is SourceKind.SAFETENSORS
    assert open_source(str(folder)).name == "Größe 模型"
    source = open_source(str(gguf_file))
    assert source.kind is SourceKind.GGUF
    assert source.numbers["context"] == 512


def test_a_wrong_path_is_called_one(tmp_path: Path):
    assert "There is no model at" in refusal(tmp_path / "gone.gguf")


def test_an_empty_folder_is_called_one(tmp_path: Path):
    assert "is empty" in refusal(tmp_path)


def test_a_folder_of_something_else_is_not_a_model(tmp_path: Path):
    (tmp_path / "holiday.jpg").write_bytes(b"")
    assert "config.json is missing" in refusal(tmp_path)


def test_a_folder_around_a_gguf_file_points_to_the_file(tmp_path: Path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert str(tmp_path / "model.gguf") in refusal(tmp_path)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "a.pt", "b.pth", "c.ckpt", "d.PKL"])
def test_a_pickle_checkpoint_is_refused_unopened(tmp_path: Path, name: str):
    class Attack:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
            return os.mkdir, (str(tmp_path / "attacked"),)

    (tmp_path / name).write_bytes(pickle.dumps(Attack()))
    assert "safetensors and GGUF only" in refusal(tmp_path / name)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    assert "safetensors and GGUF only" in refusal(tmp_path)
    assert not (tmp_path / "attacked").exists()


def test_a_pickle_that_calls_itself_gguf_is_not_believed(tmp_path: Path):
    path = tmp_path / "model.gguf"
    path.write_bytes(pickle.dumps(list(range(100))))
    assert "is not a GGUF file" in refusal(path)


def test_a_model_with_code_of_its_own_is_refused(folder: Path, tmp_path: Path):
    code = copy_of(folder, tmp_path / "code", auto_map={"AutoModel": "modeling.Evil"})
    assert "which Paceline never runs" in refusal(code)
    tokenizer = copy_of(folder, tmp_path / "tokenizer")
    path = tokenizer / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": {"A": "b.C"}}))
    assert "which Paceline never runs" in refusal(tokenizer)


@pytest.mark.parametrize(
    "architecture",
    ["LlamaForCausalLMEagle3", "MedusaModel", "EAGLEModel", "LlamaSpeculator", "MiMoMTPModel"],
)
def test_a_draft_only_checkpoint_is_refused_in_words(
    folder: Path, tmp_path: Path, architecture: str
):
    head = copy_of(folder, tmp_path / "head", architectures=[architecture])
    assert "draft-only checkpoint" in refusal(head)


def test_a_gguf_file_without_embeddings_is_a_draft_only_checkpoint(tmp_path: Path):
    path = write_gguf(tmp_path / "head.gguf", leave_out=("token_embd.weight",))
    assert "draft-only checkpoint" in refusal(path)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"architectures": ["BertForMaskedLM"]}, "is a BertForMaskedLM"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"vision_config": {}}, "pictures or sound"),
        ({"model_type": None}, "does not say what kind"),
    ],
)
def test_a_model_that_cannot_chat_is_refused(
    folder: Path, tmp_path: Path, config: dict[str, Any], words: str
):
    assert words in refusal(copy_of(folder, tmp_path / "other", **config))


def test_an_embedding_model_in_gguf_is_refused(tmp_path: Path):
    path = write_gguf(tmp_path / "embedder.gguf", architecture="bert")
    assert "is a bert model, which cannot write text" in refusal(path)


def test_a_missing_tokenizer_is_named(folder: Path, tmp_path: Path):
    bare = copy_of(folder, tmp_path / "bare")
    (bare / "tokenizer.json").unlink()
    assert "has no tokenizer" in refusal(bare)
    path = write_gguf(tmp_path / "bare.gguf", vocabulary=False)
    assert "carries no vocabulary" in refusal(path)


def test_a_file_that_was_cut_short_says_by_how_much(folder: Path, gguf_file: Path, tmp_path: Path):
    for source, name in ((gguf_file, "cut.gguf"), (folder / "model.safetensors", "cut")):
        cut = tmp_path / name
        content = source.read_bytes()[:-10]
        if name == "cut":
            cut = copy_of(folder, cut)
            (cut / "model.safetensors").write_bytes(content)
        else:
            cut.write_bytes(content)
        size = len(content)
        assert f"is cut short: it holds {size:,} of {size + 10:,} bytes" in refusal(cut)


def test_a_gguf_file_cut_or_altered_anywhere_in_its_head_never_crashes(
    gguf_file: Path, tmp_path: Path
):
    content = gguf_file.read_bytes()
    head = read_gguf_header(gguf_file).data_start
    path = tmp_path / "broken.gguf"
    for at in range(0, head, 97):
        path.write_bytes(content[:at])
        refusal(path)
        path.write_bytes(content[:at] + b"\xff" * 8 + content[at + 8 :])
        with contextlib.suppress(UserError):  # it may be harmless; any other error fails
            open_source(str(path))


def test_an_old_version_of_gguf_is_told(gguf_file: Path, tmp_path: Path):
    path = tmp_path / "old.gguf"
    content = bytearray(gguf_file.read_bytes())
    content[4:8] = struct.pack("<I", 1)
    path.write_bytes(content)
    assert "version 1 of GGUF" in refusal(path)


@pytest.mark.parametrize("content", [b"", b"\x00" * 4, b"\xff" * 64, b"\x02" + b"\0" * 7 + b"[]"])
def test_damaged_safetensors_are_told(folder: Path, tmp_path: Path, content: bytes):
    broken = copy_of(folder, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(content)
    assert "is damaged or is not a safetensors file" in refusal(broken)


def test_a_missing_piece_of_a_split_model_is_named(folder: Path, tmp_path: Path):
    split = copy_of(folder, tmp_path / "split")
    (split / "model.safetensors").rename(split / "model-00001-of-00002.safetensors")
    assert "model.safetensors.index.json is missing" in refusal(split)
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002.x"}}
    (split / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "model-00002.x is missing" in refusal(split)
    (split / "model.safetensors.index.json").write_text("{}")
    assert "is damaged" in refusal(split)


def test_a_piece_of_a_split_gguf_file_is_told(gguf_file: Path, tmp_path: Path):
    path = tmp_path / "model-00001-of-00003.gguf"
    path.write_bytes(gguf_file.read_bytes())
    assert "gguf-split --merge" in refusal(path)


def test_an_adapter_is_not_a_whole_model(folder: Path, tmp_path: Path):
    adapter = copy_of(folder, tmp_path / "adapter")
    (adapter / "model.safetensors").rename(adapter / "adapter_model.safetensors")
    assert "an adapter, not a whole model" in refusal(adapter)


def test_a_weights_file_points_to_its_folder(folder: Path):
    assert f"that it lies in: {folder}" in refusal(folder / "model.safetensors")


def test_a_file_of_another_kind_is_not_a_model(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("hello")
    assert "not a model that Paceline can load" in refusal(tmp_path / "notes.txt")


def test_a_damaged_config_is_told(folder: Path, tmp_path: Path):
    broken = copy_of(folder, tmp_path / "broken")
    (broken / "config.json").write_text("{")
    assert "config.json is damaged" in refusal(broken)
    (broken / "config.json").write_text("[]")
    assert "does not say what kind" in refusal(broken)

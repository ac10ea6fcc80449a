"""Heads on the disk: whole or refused in words."""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from core.errors import UserError
from core.hub.heads import fingerprint_at
from core.models.mtp import files
from core.models.mtp.card import CARD_NAME, HeadKind
from core.models.mtp.files import load_head, save_head
from core.models.mtp.host import describe_host
from core.models.runner import EagerRunner
from tests.helpers.heads import head_card, random_head
from tests.helpers.tiny import tiny_llama

VOCABULARY = (3, 77, 200, 5, 9)


@pytest.fixture
def runner():
    return EagerRunner(tiny_llama())


@pytest.fixture
def folder(tmp_path, runner):
    save_head(random_head(runner, vocabulary=VOCABULARY), tmp_path / "mine")
    return tmp_path / "mine"


def _edit(folder: Path, **values) -> None:
    card = json.loads((folder / CARD_NAME).read_text())
    (folder / CARD_NAME).write_text(json.dumps({**card, **values}))


def _rewrite(folder: Path, change) -> None:
    """Change the weights and let the card agree with them."""
    (weights,) = folder.glob("*.safetensors")
    tensors = load_file(weights)
    change(tensors)
    save_file(tensors, weights)
    data = weights.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    _edit(folder, weights={"file": weights.name, "size_bytes": len(data), "sha256": digest})


@pytest.mark.parametrize("kind", HeadKind)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_head_comes_back_as_it_was_saved(tmp_path, runner, kind, dtype):
    head = random_head(runner, kind=kind, vocabulary=VOCABULARY)
    card = replace(head.card, acceptance=(0.7, 0.5), acceptance_length=2.05, licence="Apache-2.0")
    save_head(head, tmp_path / "mine", card=card, dtype=dtype)
    for place in (tmp_path / "mine", tmp_path / "mine" / CARD_NAME):
        loaded = load_head(place, describe_host(runner))
        assert loaded.card == card
        assert type(loaded) is type(head)
        assert not loaded.training
        for name, weight in head.state_dict().items():
            assert torch.equal(loaded.state_dict()[name], weight.to(dtype).float())
    assert len(list((tmp_path / "mine").iterdir())) == 2


@pytest.mark.parametrize("kind", HeadKind)
def test_a_packed_head_is_nearly_the_same_and_smaller(tmp_path, runner, kind):
    head = random_head(runner, kind=kind, vocabulary=VOCABULARY)
    save_head(head, tmp_path / "plain")
    save_head(head, tmp_path / "packed", packed=True)
    loaded = load_head(tmp_path / "packed", describe_host(runner))
    assert loaded.card == head.card
    for (name, wanted), found in zip(
        head.state_dict().items(), loaded.state_dict().values(), strict=True
    ):
        assert found.dtype == torch.float32
        # A block has sixteen values: its largest is met, and the opposite one missed by a step.
        step = wanted.abs().amax() / 8
        assert (found - wanted).abs().amax() <= 1.01 * step, name
    sizes = {
        name: sum(weight.nbytes for weight in load_file(file).values())
        for name in ("plain", "packed")
        for file in (tmp_path / name).glob("*.safetensors")
    }
    assert sizes["packed"] < 0.7 * sizes["plain"]  # tiny: much of it is no matrix


@pytest.mark.parametrize("shape", [(2, 17), (2, 0), (36,), (2, 2, 18)])
def test_packed_weights_without_whole_blocks_are_refused(folder, shape):
    def change(tensors):
        name = next(name for name, weight in tensors.items() if weight.dim() == 2)
        tensors[name] = torch.zeros(shape, dtype=torch.uint8)

    _rewrite(folder, change)
    with pytest.raises(UserError, match="damaged"):
        load_head(folder)


def test_a_saved_head_names_its_host(folder, runner, tmp_path):
    assert fingerprint_at(folder) == describe_host(runner).fingerprint
    assert fingerprint_at(tmp_path) is None


def test_saving_again_replaces_the_head(folder, runner):
    other = random_head(runner, seed=1, vocabulary=VOCABULARY[:2])
    save_head(other, folder, dtype=torch.float32)
    loaded = load_head(folder)
    assert loaded.card == other.card
    assert torch.equal(loaded.join.weight, other.join.weight)
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("step", ["replace the weights", "replace the card"])
def test_saving_that_is_cut_short_leaves_the_old_head(folder, runner, monkeypatch, step):
    old = load_head(folder)
    calls = []

    class Killed(BaseException):
        pass

    def killed(source, place):
        calls.append(place)
        if len(calls) == (1 if step == "replace the weights" else 2):
            raise Killed
        os.rename(source, place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(Killed):
            save_head(random_head(runner, seed=1), folder)
    assert torch.equal(load_head(folder).join.weight, old.join.weight)


def test_a_head_for_another_model_is_refused_in_words(folder):
    for host, words in (
        (EagerRunner(tiny_llama(seed=1)), "same shape and other weights"),
        (EagerRunner(tiny_llama(hidden=64)), "2 layers of 32, and this one has 2 of 64"),
    ):
        with pytest.raises(UserError, match=words):
            load_head(folder, describe_host(host))


def _cut(weights):
    weights.write_bytes(weights.read_bytes()[:-1])


def _flip(weights):
    data = bytearray(weights.read_bytes())
    data[-3] ^= 1
    weights.write_bytes(data)


@pytest.mark.parametrize("damage", [_cut, _flip, Path.unlink, lambda path: path.write_bytes(b"")])
def test_damaged_weights_are_refused(folder, damage):
    (weights,) = folder.glob("*.safetensors")
    damage(weights)
    with pytest.raises(UserError, match=r"damaged|missing"):
        load_head(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors.pop("vocabulary"),
        lambda tensors: tensors.update(vocabulary=torch.zeros(5)),
        lambda tensors: tensors.update(vocabulary=torch.tensor([3, 3], dtype=torch.int32)),
        lambda tensors: tensors.update(vocabulary=torch.tensor([256], dtype=torch.int32)),
        lambda tensors: tensors.update(vocabulary=torch.tensor([-1], dtype=torch.int32)),
        lambda tensors: tensors.update(vocabulary=torch.tensor([], dtype=torch.int32)),
        lambda tensors: tensors.pop("down.weight"),
        lambda tensors: tensors.update(extra=torch.zeros(5)),
        lambda tensors: tensors.update({"down.weight": torch.zeros(5)}),
        lambda tensors: tensors["down.weight"].fill_(torch.nan),
    ],
)
def test_weights_that_make_no_sense_are_refused(folder, change):
    _rewrite(folder, change)
    with pytest.raises(UserError):
        load_head(folder)


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "telepathic"},
        {"depth": 0},
        {"depth": True},
        {"depth": "3"},
        {"state_layers": []},
        {"state_layers": [3]},
        {"state_layers": 2},
        {"host": None},
        {"host": {"name": "x"}},
        {"shape": {"intermediate": 48}},
        {"shape": {"intermediate": 2**20, "heads": 4, "kv_heads": 3, "head_dim": 8}},
        {"shape": {"intermediate": 2**20, "heads": 4, "kv_heads": 2, "head_dim": 8}},
        {"shape": {"intermediate": 48, "wings": 2}},
        {"acceptance": [2.0]},
        {"acceptance": ["a"]},
        {"acceptance_length": "long"},
        {"seed": -1},
        {"data": 3},
        {"weights": None},
        {"weights": {"file": "../other.safetensors", "size_bytes": 1, "sha256": ""}},
        {"weights": {"file": "pytorch_model.bin", "size_bytes": 1, "sha256": ""}},
        {"weights": {"file": "head.safetensors", "size_bytes": "x", "sha256": ""}},
        {"weights": {"file": "head-\0.safetensors", "size_bytes": 1, "sha256": ""}},
        {"weights": {"file": ["head.safetensors"], "size_bytes": 1, "sha256": ""}},
        {"weights": {"file": "head-00000000.safetensors", "size_bytes": 1e400, "sha256": ""}},
        {"acceptance_length": 10**400},
        {"acceptance_length": 1e400},
        {"host": {"name": "x", "fingerprint": "0" * 16, "hidden": 1e400, "layers": 2, "vocab": 9}},
    ],
)
def test_cards_that_make_no_sense_are_refused(folder, values):
    _edit(folder, **values)
    with pytest.raises(UserError):
        load_head(folder)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 200_000])
def test_what_is_no_card_is_refused(folder, text):
    (folder / CARD_NAME).write_bytes(text)
    with pytest.raises(UserError, match="damaged"):
        load_head(folder)
    assert fingerprint_at(folder) is None


def test_a_pipe_in_the_place_of_a_card_or_of_weights_is_not_waited_for(folder):
    (weights,) = folder.glob("*.safetensors")
    _edit(folder, weights={"file": weights.name, "size_bytes": 0, "sha256": ""})
    for path in (weights, folder / CARD_NAME):
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(UserError):
            load_head(folder)
    assert fingerprint_at(folder) is None


def test_saving_leaves_other_files_of_the_folder_alone(folder, runner):
    own = folder / "head-of-my-own.safetensors"
    own.write_bytes(b"precious")
    save_head(random_head(runner, seed=2), folder)
    assert own.read_bytes() == b"precious"
    assert len(list(folder.glob("head-*.safetensors"))) == 2


def test_a_newer_card_asks_for_a_newer_program(folder):
    _edit(folder, format=2, kind="unheard of")
    with pytest.raises(UserError, match="Update Paceline"):
        load_head(folder)


def test_pickles_and_other_places_are_refused(tmp_path):
    with pytest.raises(UserError, match="pickle"):
        load_head(tmp_path / "head.pt")
    for place in (tmp_path, tmp_path / "nowhere", tmp_path / CARD_NAME):
        with pytest.raises(UserError, match="no head"):
            load_head(place)


def test_a_folder_that_cannot_be_written_is_told_in_words(tmp_path, runner):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        save_head(random_head(runner), tmp_path / "file" / "head")


def test_a_card_checks_what_it_is_made_of():
    for values in ({"vocabulary": ()}, {"depth": 17}, {"state_layers": (5,)}):
        with pytest.raises(UserError):
            head_card(**values)


def test_weights_too_large_to_be_a_head_are_not_read(folder, monkeypatch):
    monkeypatch.setattr(files, "_MAX_WEIGHTS_BYTES", 10)
    with pytest.raises(UserError, match="damaged"):
        load_head(folder)

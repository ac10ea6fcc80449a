"""Shards and checkpoints where the disk refuses or a list is damaged: said, and nothing is lost."""

import json

import pytest
import torch
from safetensors import SafetensorError

from core.errors import UserError
from core.training import shards
from core.training.checkpoint import save_checkpoint
from core.training.meter import Meter
from core.training.shards import MANIFEST, Generated, ShardStore


def _sequence(key="p/0"):
    return Generated(
        key=key,
        ids=(1, 2, 3),
        prompt_length=1,
        temperature=0.0,
        states=torch.zeros(2, 4, dtype=torch.bfloat16),
    )


class _Trainer:
    step, total_steps, epoch = 1, 2, 0

    def tensors(self):
        return {"a": torch.zeros(2)}

    def position(self):
        return {"step": 1}

    def restore(self, tensors, position):
        raise KeyError


def test_a_disk_that_fills_up_is_told_in_words(tmp_path, monkeypatch):
    def full(*_):
        raise SafetensorError("Error while serializing: I/O error: No space left on device")

    store = ShardStore(tmp_path / "text", {})
    store.add(_sequence())
    monkeypatch.setattr(shards, "save_file", full)
    with pytest.raises(UserError, match="cannot be written"):
        store.flush()
    with pytest.raises(UserError, match="cannot be written"):
        save_checkpoint(tmp_path / "checkpoint", _Trainer(), {}, Meter(_Trainer()))


@pytest.mark.parametrize(
    "values",
    [
        {"file": 5},
        {"file": None},
        {"file": "../shard-00000.safetensors"},
        {"reply_tokens": "x"},
        {"reply_tokens": -1_000_000},
        {"size_bytes": "9"},
        {"sequences": 1.0},
        {"keys": []},
        {"keys": 5},
    ],
)
def test_a_list_of_shards_with_other_values_is_refused(tmp_path, values):
    store = ShardStore(tmp_path, {})
    store.add(_sequence())
    store.flush()
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    manifest["shards"][0].update(values)
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="list of generated text is damaged"):
        ShardStore(tmp_path, {})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_a_damaged_list_of_shards_does_not_delete_them(tmp_path, content):
    store = ShardStore(tmp_path, {})
    store.add(_sequence())
    shard = store.flush()
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        ShardStore(tmp_path, {})
    assert (tmp_path / shard.file).is_file()

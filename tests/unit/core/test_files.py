"""Small files that are whole or not there."""

import os
from pathlib import Path

import pytest

from core.hub.files import flush_folder, read_json, write_json


def test_json_is_flushed_before_it_takes_its_place(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda number: done.append("flushed") or fsync(number))
    monkeypatch.setattr(
        os, "replace", lambda *paths: done.append(Path(paths[0]).read_text()) or replace(*paths)
    )
    write_json(tmp_path / "a.json", {"a": 1})
    assert done == ["flushed", '{\n  "a": 1\n}\n']
    assert read_json(tmp_path / "a.json") == {"a": 1}


def test_json_that_cannot_be_written_leaves_the_old_one_alone(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_json(path, {"a": 2})
    assert read_json(path) == {"a": 1}
    assert [found.name for found in tmp_path.iterdir()] == ["a.json"]


def test_a_folder_is_flushed_with_the_folders_in_it(tmp_path, monkeypatch):
    """A tokenizer with several templates keeps them in a folder of their own."""
    flushed = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: flushed.append(number) or fsync(number))
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tools.jinja").write_text("abc")
    (tmp_path / "config.json").write_text("{}")
    assert flush_folder(tmp_path) == {"additional_chat_templates/tools.jinja": 3, "config.json": 2}
    assert len(flushed) == 2

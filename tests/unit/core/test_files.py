"""Small files that are whole or not there."""

import os
from pathlib import Path

import pytest

from core.hub.files import flush_folder, parse_json, read_json, write_json


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


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 200_000, "too deep"),
        ('{"a":' * 200_000, "too deep"),
        ("1" + "0" * 400, "too large"),
        ("1e400", "too large"),
        ("9" * 5000, "too large"),
        ("{", "Expecting"),
        ("", "Expecting"),
    ],
)
def test_text_that_is_no_json_to_work_with_is_refused(tmp_path, text, why):
    with pytest.raises(ValueError, match=why):
        parse_json(text)
    (tmp_path / "a.json").write_text(text)
    assert read_json(tmp_path / "a.json") is None


def test_json_of_others_may_hold_what_their_programs_write():
    text = '{"limit": [0.0, Infinity], "length": 1000000000000000019884624838656}'
    assert parse_json(text) == {"limit": [0.0, float("inf")], "length": 10**30 + 19884624838656}


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

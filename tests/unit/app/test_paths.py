"""Where things are kept."""

from pathlib import Path

import pytest

from app.paths import app_paths, ensured
from core.errors import UserError


def test_one_root_holds_everything_when_it_is_given(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "größe"))
    paths = app_paths()
    for place in (paths.data, paths.config, paths.cache, paths.logs, paths.database):
        assert place.is_relative_to(tmp_path / "größe")
    assert list(tmp_path.iterdir()) == []


def test_the_places_of_the_system_are_used_otherwise(monkeypatch) -> None:
    monkeypatch.setenv("PACELINE_HOME", "")
    paths = app_paths()
    assert len({paths.data, paths.config, paths.cache, paths.logs}) == 4
    assert all("paceline" in str(place).lower() for place in (paths.data, paths.config))


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "日本"
    assert ensured(folder) == folder
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_gives_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written") as raised:
        ensured(tmp_path / "file" / "logs")
    assert "PACELINE_HOME" in raised.value.action


def test_a_read_only_disk_gives_a_sentence(tmp_path: Path, monkeypatch) -> None:
    def refuse(**_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("app.paths.tempfile.TemporaryFile", refuse)
    with pytest.raises(UserError, match="Read-only file system"):
        ensured(tmp_path)

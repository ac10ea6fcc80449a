"""Which models are on this computer, and where."""

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from core.cancel import CancelToken
from core.errors import UserError
from core.hub.catalog import Catalog, CatalogModel, load_catalog
from core.hub.files import explain_write_error, read_json, sha256_of, write_json
from core.models.prepared import remove_copies_of

logger = logging.getLogger(__name__)

CARD_NAME = "card.json"
PARTS_NAME = "parts"
PREPARED_NAME = "prepared"
_SCAN_DEPTH = 3


def data_root() -> Path:
    """Return the folder of everything Paceline keeps; ``PACELINE_HOME`` overrides it."""
    override = os.environ.get("PACELINE_HOME")
    if override:
        return Path(override).expanduser().absolute()
    return platformdirs.user_data_path("paceline", appauthor=False)


class ModelState(StrEnum):
    """How much of a catalog model is here."""

    READY = "ready"
    """Whole, and its hash was checked."""
    UNVERIFIED = "unverified"
    """Whole by its size, but not checked since it was put, copied or changed here."""
    PARTIAL = "partial"
    """Something is here, but it is not the whole model."""
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """Where a catalog model stands; ``path`` is set only when it is ready."""

    id: str
    state: ModelState
    done_bytes: int
    total_bytes: int
    path: Path | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing has to be fetched, as far as can be told without reading the model."""
        return self.state in (ModelState.READY, ModelState.UNVERIFIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A model file or folder of the person's own; ``kind`` is "gguf" or "safetensors"."""

    name: str
    path: Path
    kind: str
    size_bytes: int


class Library:
    """The model folder, and the folders of the person's own that are looked through.

    Reads and writes small files only, except :meth:`check`, and :meth:`path` once for a model that
    was copied here. Safe to use from several processes.
    """

    def __init__(
        self, models_dir: Path, folders: Iterable[Path] = (), catalog: Catalog | None = None
    ) -> None:
        self.models_dir = models_dir
        self.folders = tuple(folders)
        self.catalog = load_catalog() if catalog is None else catalog

    def folder(self, model_id: str) -> Path:
        """Return the folder that holds one catalog model, whether or not it exists."""
        return self.models_dir / self.catalog.model(model_id).id

    def status(self, model_id: str) -> ModelStatus:
        """Return how much of a model is here, without reading the model itself.

        Raises UserError for an unknown id.
        """
        model = self.catalog.model(model_id)
        file = self.folder(model_id) / model.file
        total, size, path = model.size_bytes, _size_of(file), None
        digest = _known_digest(file) if size == total else ""
        if digest == model.sha256:
            state, done, path = ModelState.READY, total, file
        elif digest is None:
            state, done = ModelState.UNVERIFIED, total
        else:
            done = self._parts_bytes(model)  # a file that is not the model spares no fetching
            state = ModelState.PARTIAL if done or size else ModelState.ABSENT
        return ModelStatus(id=model_id, state=state, done_bytes=done, total_bytes=total, path=path)

    def path(self, model_id: str) -> Path:
        """Return the model file; one that is whole but unverified is checked first, once.

        Raises UserError for an unknown id and for a model that is not here or not the published
        one.
        """
        model = self.catalog.model(model_id)
        status = self.status(model_id)
        if status.path is not None:
            return status.path
        if status.state is not ModelState.UNVERIFIED:
            have = "only partly" if status.state is ModelState.PARTIAL else "not"
            raise UserError(
                f"The model {model.title} is {have} on this computer.",
                f"Fetch it with: paceline models get {model_id}",
            )
        if not self.check(model_id):
            raise UserError(
                f"The file of the model {model.title} differs from the published one.",
                f"Fetch it again with: paceline models get {model_id}",
            )
        return self.folder(model_id) / model.file

    def check(
        self,
        model_id: str,
        on_bytes: Callable[[int], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> bool:
        """Read the whole model file, and return whether it is the published one.

        The verdict is remembered until the file changes: one that is becomes ready, one that is
        not is as good as not here. ``on_bytes`` hears the number of bytes read so far. Raises
        UserError and Cancelled.
        """
        model = self.catalog.model(model_id)
        path = self.folder(model_id) / model.file
        if not path.is_file():
            raise UserError(
                f"The model {model.title} is not on this computer.",
                f"Fetch it with: paceline models get {model_id}",
            )
        try:
            stat = path.stat()
            if stat.st_size != model.size_bytes:
                return False
            digest = sha256_of(path, on_bytes, cancel)
            _write_card(path, stat, digest)
        except OSError as error:
            raise explain_write_error(error, path.parent) from error
        return digest == model.sha256

    def mark_ready(self, model: CatalogModel) -> None:
        """Record that the model file was verified; later starts trust its size and time."""
        path = self.folder(model.id) / model.file
        _write_card(path, path.stat(), model.sha256)

    def remove(self, model_id: str) -> None:
        """Delete a model, whatever was fetched of it and what was prepared from it.

        Raises UserError when it is being fetched right now or cannot be deleted.
        """
        folder = self.folder(model_id)
        if not folder.exists():
            return
        with self.locked(model_id):
            # The card goes first: a removal cut short must not look like a whole model.
            try:
                path = folder / self.catalog.model(model_id).file
                remove_copies_of(path, self.models_dir.parent / PREPARED_NAME)
                (folder / CARD_NAME).unlink(missing_ok=True)
                shutil.rmtree(folder)
            except OSError as error:
                raise explain_write_error(error, folder) from error

    def local_models(self) -> list[LocalModel]:
        """Return the GGUF files and safetensors folders in the person's own folders, by name."""
        own = [path for path in (self.models_dir, *self.folders) if path.is_dir()]
        catalog_folders = {self.folder(model_id) for model_id in self.catalog.models}
        found: dict[Path, LocalModel] = {}
        for root in own:
            for model in _scan(root, skip=catalog_folders, depth=_SCAN_DEPTH):
                found.setdefault(model.path, model)
        return sorted(found.values(), key=lambda model: (model.name.lower(), str(model.path)))

    @contextmanager
    def locked(self, model_id: str) -> Iterator[None]:
        """Hold the model's folder against other processes; a killed holder lets go.

        Raises UserError when another process holds it or the folder cannot be written.
        """
        title = self.catalog.model(model_id).title
        lock = FileLock(self.models_dir / f".{model_id}.lock")
        try:
            self.models_dir.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            raise UserError(
                f"Another Paceline is working on the model {title}.", "Wait until it has finished."
            ) from None
        except OSError as error:
            raise explain_write_error(error, self.models_dir) from error
        try:
            yield
        finally:
            lock.release()

    def _parts_bytes(self, model: CatalogModel) -> int:
        folder = self.folder(model.id) / PARTS_NAME
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        return sum(p.size_bytes for p in model.parts if part_file_name(p.package) in names)


def part_file_name(package: str) -> str:
    """Return the name under which the fetched wheel of a package is kept."""
    return f"{package}.whl"


def _write_card(path: Path, stat: os.stat_result, digest: str) -> None:
    card = {
        "file": path.name,
        "size_bytes": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "sha256": digest,
    }
    write_json(path.parent / CARD_NAME, card)


def _known_digest(path: Path) -> str | None:
    """Return the SHA-256 that a file was found to have, or None where it changed since."""
    card = read_json(path.parent / CARD_NAME)
    try:
        stat = path.stat()
    except OSError:
        return None
    if card is None or (card.get("size_bytes"), card.get("mtime_ns")) != (
        stat.st_size,
        stat.st_mtime_ns,
    ):
        return None
    digest = card.get("sha256")
    return digest if isinstance(digest, str) else None


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _scan(folder: Path, *, skip: set[Path], depth: int) -> Iterator[LocalModel]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        logger.info("a model folder cannot be read")
        return
    weights = [path for path in entries if path.suffix == ".safetensors" and path.is_file()]
    if weights and (folder / "config.json").is_file():
        size_bytes = sum(_size_of(path) for path in weights)
        yield LocalModel(name=folder.name, path=folder, kind="safetensors", size_bytes=size_bytes)
    for path in entries:
        if path.suffix.lower() == ".gguf" and path.is_file():
            yield LocalModel(name=path.stem, path=path, kind="gguf", size_bytes=_size_of(path))
        elif depth > 0 and path.is_dir() and path not in skip and not path.name.startswith("."):
            yield from _scan(path, skip=skip, depth=depth - 1)

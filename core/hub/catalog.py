"""The models that Paceline knows where to get, read from ``resources/catalog.json``."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from core.errors import BugError, UserError
from core.requests import DrafterKind, SpeculationParams

CATALOG_PATH = Path(__file__).resolve().parents[2] / "resources" / "catalog.json"

_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def _require(condition: bool, where: str, problem: str) -> None:
    if not condition:
        raise BugError(f"The catalog entry {where!r} is wrong: {problem}.")


def _is_safe_file_name(name: str) -> bool:
    return bool(name) and PurePosixPath(name).name == name and "\\" not in name


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagePart:
    """A stretch of a model file, carried as one member of a Python package's wheel."""

    package: str
    version: str
    member: str
    size_bytes: int

    def __post_init__(self) -> None:
        _require(bool(_ID.fullmatch(self.package)), self.package, "the package name")
        _require(bool(self.version and self.member), self.package, "version or member is missing")
        _require(self.size_bytes > 0, self.package, "the size must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogModel:
    """One model file: the parts it is assembled from, in order, and the hash that decides.

    Raises BugError when the entry contradicts itself, since the catalog ships with the program.
    """

    id: str
    title: str
    publisher: str
    licence: str
    suits: str
    file: str
    size_bytes: int
    sha256: str
    parts: tuple[PackagePart, ...]

    def __post_init__(self) -> None:
        _require(bool(_ID.fullmatch(self.id)), self.id, "the id")
        _require(bool(self.title and self.licence and self.suits), self.id, "a text is missing")
        _require(_is_safe_file_name(self.file), self.id, "the file name")
        _require(bool(_SHA256.fullmatch(self.sha256)), self.id, "the SHA-256")
        _require(bool(self.parts), self.id, "it has no parts")
        total = sum(part.size_bytes for part in self.parts)
        _require(total == self.size_bytes, self.id, f"its parts hold {total} bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPair:
    """A target, the draft that suits it (None where there is none), and how to start."""

    id: str
    title: str
    target: str
    draft: str | None
    suits: str
    drafter: str
    gamma: int | Literal["auto"]

    def __post_init__(self) -> None:
        _require(bool(_ID.fullmatch(self.id)), self.id, "the id")
        _require(bool(self.title and self.suits), self.id, "a text is missing")
        _require(self.drafter in set(DrafterKind), self.id, "the drafter")
        try:
            SpeculationParams(gamma=self.gamma)
        except UserError as error:
            raise BugError(f"The catalog entry {self.id!r} is wrong: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Every known model and pair by id, in the order in which they are offered."""

    models: dict[str, CatalogModel]
    pairs: dict[str, CatalogPair]

    def __post_init__(self) -> None:
        for pair in self.pairs.values():
            for model_id in (pair.target, pair.draft):
                known = model_id is None or model_id in self.models
                _require(known, pair.id, f"no model is called {model_id!r}")

    def model(self, model_id: str) -> CatalogModel:
        """Return the model of that id.

        Raises UserError naming the known ids.
        """
        try:
            return self.models[model_id]
        except KeyError:
            raise UserError(
                f"The catalog has no model called {model_id!r}.",
                f"Choose one of: {', '.join(self.models)}.",
            ) from None

    def members(self, name: str) -> tuple[CatalogModel, ...]:
        """Return the models behind a pair id (target first) or a model id.

        Raises UserError naming the known ids.
        """
        pair = self.pairs.get(name)
        if pair is None:
            if name in self.models:
                return (self.models[name],)
            known = ", ".join(dict.fromkeys([*self.pairs, *self.models]))
            raise UserError(f"The catalog has nothing called {name!r}.", f"Choose one of: {known}.")
        ids = (pair.target,) if pair.draft is None else (pair.target, pair.draft)
        return tuple(self.models[model_id] for model_id in ids)


def parse_catalog(data: dict[str, Any]) -> Catalog:
    """Build a catalog from the JSON object of ``catalog.json``.

    Raises BugError when a field is missing, unknown or contradicts another.
    """
    try:
        models = [
            CatalogModel(
                **{**entry, "parts": tuple(PackagePart(**part) for part in entry["parts"])}
            )
            for entry in data["models"]
        ]
        pairs = [CatalogPair(**entry) for entry in data["pairs"]]
    except (KeyError, TypeError) as error:
        raise BugError(f"The catalog does not have the expected fields: {error}.") from error
    _require(len({model.id for model in models}) == len(models), "models", "an id appears twice")
    _require(len({pair.id for pair in pairs}) == len(pairs), "pairs", "an id appears twice")
    return Catalog(
        models={model.id: model for model in models}, pairs={pair.id: pair for pair in pairs}
    )


@cache
def load_catalog() -> Catalog:
    """Return the catalog that ships with the program; it is read once."""
    return parse_catalog(json.loads(CATALOG_PATH.read_text(encoding="utf-8")))

"""From what a person names to files: a pair id, model ids or paths."""

import os
from pathlib import Path

from core.errors import UserError
from core.hub.library import Library


def resolve_pair(
    library: Library,
    *,
    pair: str | None = None,
    target: str | None = None,
    draft: str | None = None,
) -> tuple[Path, Path | None]:
    """Return the paths of target and draft for either a pair id, or a target and maybe a draft.

    ``target`` and ``draft`` are a catalog id or a path; with ``pair``, ``draft`` replaces the
    pair's own. Raises UserError when a name is unknown, both or neither of ``pair`` and
    ``target`` are given, or a model is not ready.
    """
    if (pair is None) == (target is None):
        raise UserError("It is not clear which model is meant.", "Give either a pair or a target.")
    if pair is None:
        draft_path = None if draft is None else resolve_model(library, draft)
        return resolve_model(library, target or ""), draft_path
    known = library.catalog.pairs.get(pair)
    if known is None:
        raise UserError(
            f"The catalog has no pair called {pair!r}.",
            f"Choose one of: {', '.join(library.catalog.pairs)}.",
        )
    members = [known.target]
    if known.draft is not None and draft is None:
        members.append(known.draft)
    missing = [model_id for model_id in members if not library.status(model_id).is_whole]
    if missing:
        titles = " and ".join(library.catalog.model(model_id).title for model_id in missing)
        raise UserError(
            f"Not all of the pair {known.title} is on this computer: {titles} must be fetched.",
            f"Fetch it with: paceline models get {pair}",
        )
    chosen = known.draft if draft is None else draft
    return library.path(known.target), None if chosen is None else resolve_model(library, chosen)


def resolve_model(library: Library, name: str) -> Path:
    """Return the path of a catalog id, or of a file or folder.

    Raises UserError when it is neither, or the catalog model is not ready.
    """
    if name in library.catalog.models:
        return library.path(name)
    path = Path(name).expanduser()
    if path.exists():
        return path.absolute()
    if os.sep in name or path.suffix or name.startswith("~"):
        raise UserError(f"There is no model at {name}.", "Check the path, or choose another model.")
    raise UserError(
        f"There is no model called {name!r}.",
        f"Give a path, or one of: {', '.join(library.catalog.models)}.",
    )

"""The model pairs to choose from, and what it takes to load the chosen one. No Qt."""

from dataclasses import replace

from app.records import Choice
from app.settings import Settings
from app.training_records import TrainedHead
from app.widgets.settings_choices import OWN_FILES
from core.errors import UserError
from core.events import Loaded
from core.hub.catalog import CatalogModel
from core.hub.files import format_bytes
from core.hub.heads import resolve_head
from core.hub.library import Library
from core.hub.resolve import resolve_pair
from core.requests import DrafterKind, LoadRequest

CUSTOM = OWN_FILES.value
_CHOICE = ("pair", "device", "precision", "head_path")
_PATHS = ("target_path", "draft_path")


def pair_choices(library: Library) -> list[Choice]:
    """Return the catalog's pairs, and the person's own files as the last entry."""
    choices = []
    for pair in library.catalog.pairs.values():
        missing = missing_models(library, pair.id)
        detail = pair.suits
        if missing:
            detail = f"not on this computer, {format_bytes(fetch_bytes(library, missing))} to fetch"
        choices.append(Choice(pair.id, pair.title, detail))
    return [*choices, OWN_FILES]


def missing_models(library: Library, pair_id: str) -> tuple[CatalogModel, ...]:
    """Return the models of a catalog pair that are not whole on this computer."""
    if pair_id not in library.catalog.pairs:
        return ()
    return tuple(
        model for model in library.catalog.members(pair_id) if not library.status(model.id).is_whole
    )


def fetch_bytes(library: Library, models: tuple[CatalogModel, ...]) -> int:
    """Return how many bytes are still to be fetched for ``models``."""
    statuses = [library.status(model.id) for model in models]
    return sum(status.total_bytes - status.done_bytes for status in statuses)


def pair_title(library: Library, settings: Settings, loaded: Loaded) -> str:
    """Return the name of the pair that was loaded: the catalog's, or those of its own models."""
    pair = library.catalog.pairs.get(settings.pair)
    if pair is not None:
        return pair.title
    return loaded.target if loaded.draft is None else f"{loaded.target} + {loaded.draft}"


def with_models_of(settings: Settings, loaded: Settings) -> Settings:
    """Return ``settings`` with the choice of models of ``loaded``.

    Paths that were typed stay where ``loaded`` has no use for any.
    """
    names = (*_CHOICE, *_PATHS) if loaded.pair == CUSTOM else _CHOICE
    return replace(settings, **{name: getattr(loaded, name) for name in names})


def without_foreign_head(settings: Settings, before: Settings) -> Settings:
    """Return ``settings`` without the head that was chosen for other models ``before``."""
    names = ("pair", *_PATHS)
    same = all(getattr(settings, name) == getattr(before, name) for name in names)
    return settings if same or settings.head_path != before.head_path else _headless(settings)


def _headless(settings: Settings) -> Settings:
    return replace(settings, head_path="") if settings.head_path else settings


def with_head(settings: Settings, head: TrainedHead) -> Settings:
    """Return ``settings`` with the models of a head, and a drafter that uses it."""
    choices = head.choices
    uses_it = settings.drafter in (DrafterKind.MTP, DrafterKind.HYBRID)
    return replace(
        settings,
        pair=choices.pair,
        target_path=choices.target_path or settings.target_path,
        draft_path=choices.draft_path if choices.pair == CUSTOM else settings.draft_path,
        head_path=head.path,
        drafter=settings.drafter if uses_it else DrafterKind.HYBRID,
    )


def load_request_for(library: Library, settings: Settings) -> LoadRequest:
    """Return the request that loads the chosen pair.

    Raises UserError when a file is missing or none was chosen.
    """
    if settings.pair == CUSTOM:
        if not settings.target_path:
            raise UserError("No model file was chosen.", "Choose a target in the settings.")
        target, draft = resolve_pair(
            library, target=settings.target_path, draft=settings.draft_path or None
        )
    else:
        target, draft = resolve_pair(library, pair=settings.pair)
    return LoadRequest(
        target=str(target),
        draft=None if draft is None else str(draft),
        device=settings.device,
        precision=settings.precision,
        head=chosen_head(settings.head_path),
    )


def chosen_head(path: str) -> str | None:
    """Return where the head lies that was chosen by its folder or its name; None for none."""
    try:
        return str(resolve_head(path)) if path else None
    except UserError:
        return path  # the engine says what is wrong with it, and loads the pair without

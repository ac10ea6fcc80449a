"""Where a run keeps what it makes, and what that takes of the disk."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from core.errors import UserError
from core.hub.files import check_disk, explain_write_error
from core.models.mtp.card import CARD_NAME, HeadHost
from core.training.events import DiskUse
from core.training.jobs import GenerationSettings
from core.training.prompts import Prompt
from core.training.request import TrainRequest, prompts_hash, short_hash
from core.training.sizes import checkpoint_bytes, planned_tokens, text_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """``base`` is the host's own folder, in which the others are; ``head`` is the result's."""

    base: Path
    text: Path
    held_out: Path
    checkpoint: Path
    head: Path


def find_places(
    request: TrainRequest,
    host: HeadHost,
    settings: GenerationSettings,
    train: Sequence[Prompt],
    held_out: Sequence[Prompt],
) -> Places:
    """Return the places of a run; other choices have other ones, so that nothing is mixed."""
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", host.name)[:60] or "model"
    own = host.fingerprint[:8]
    base = request.home / "training" / f"{slug}-{own}"
    text = short_hash(settings.fixed(), list(request.temperatures), prompts_hash(train))
    measured = short_hash(settings.fixed(), prompts_hash(held_out))
    if request.text is not None:
        text = short_hash([str(path) for path in request.text])
    head = short_hash(text, request.kind, request.vocabulary, request.train_settings().fixed())
    return Places(
        base=base,
        text=base / f"text-{text}" if request.text is None else request.text[0],
        held_out=base / f"held-out-{measured}" if request.text is None else request.text[1],
        checkpoint=base / f"{request.kind}-{head}",
        head=request.out or request.home / "heads" / f"{slug}-{request.kind}-{own}",
    )


def disk_use(
    request: TrainRequest,
    host: HeadHost,
    layers: int,
    places: Places,
    *,
    prompts: int,
    model_bytes: int | None = None,
) -> DiskUse:
    """Return what a run will take. Raises UserError where there is too little.

    ``prompts`` are answered to train on, once at each temperature. ``model_bytes`` is what is kept
    of a whole model while it is trained, in place of a head.
    """
    text = 0
    if request.text is None:
        most = prompts * len(request.temperatures) * request.max_new_tokens
        tokens = planned_tokens(request.tokens, request.minutes, most)
        text = text_bytes(tokens, layers, host.hidden)
    here = sum(_size(folder) for folder in (places.text, places.held_out))
    kept = checkpoint_bytes(host.hidden) if model_bytes is None else model_bytes
    needed = max(0, text - here) + kept
    existing = next(path for path in (places.base, *places.base.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    purpose = "train this head" if model_bytes is None else "distil this draft"
    check_disk(places.base, needed, purpose)
    return DiskUse(folder=str(places.base), needed_bytes=needed, free_bytes=free)


def check_place(folder: Path) -> None:
    """Raise UserError where a result cannot be put at ``folder``, before hours go into it."""
    try:
        if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(
                f"There is something at {folder} already.",
                "Name another folder with --out, or delete this one.",
            )
        made = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        for path in made:
            path.rmdir()  # a run that ends without a result leaves nothing
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(
            f"The folder {folder} cannot be made or written to ({reason}).",
            "Name another folder with --out.",
        ) from error


def place_for_head(folder: Path) -> Path:
    """Return the place of a new head: that folder, or one beside it where it has a head."""
    number, place = 1, folder
    while (place / CARD_NAME).exists():
        number += 1
        place = folder.with_name(f"{folder.name}-{number}")
    return place


@contextmanager
def held(places: Places) -> Iterator[None]:
    """Hold a host's folder against other processes; a killed holder lets go.

    Raises UserError where another one holds it or it cannot be written.
    """
    lock = FileLock(places.base / ".lock")
    try:
        places.base.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(
            "Another training of this model is running.", "Wait until it has finished, or stop it."
        ) from None
    except OSError as error:
        raise explain_write_error(error, places.base) from error
    try:
        yield
    finally:
        lock.release()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*")) if folder.is_dir() else 0

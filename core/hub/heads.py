"""Which heads are on this computer, and where. It reads their cards alone, so it needs no torch."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import UserError, clause
from core.hub.files import read_json
from core.models.mtp.card import CARD_NAME, HeadCard

SHIPPED_HEADS = Path(__file__).resolve().parents[2] / "resources" / "heads"
_UNREADABLE = "its card cannot be read"
_SOME_VOCABULARY = (0,)
"""Stands for the one that a card has among its weights, which stay unread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHead:
    """A head by its card: ``host`` names the model it is for, ``kind`` says how it drafts.

    ``acceptance_length`` is the mean number of tokens a round that was measured at its making.
    ``damage`` says as a clause why it cannot be used, as far as that shows without reading its
    weights; what its card would say is empty then.
    """

    name: str
    path: Path
    shipped: bool
    size_bytes: int
    host: str = ""
    kind: str = ""
    depth: int | None = None
    acceptance_length: float | None = None
    damage: str = ""


def head_folders() -> tuple[Path, Path]:
    """Return the two folders that hold a head a folder: the person's own, and the shipped one."""
    from core.hub.library import data_root  # the engine alone runs where platformdirs is missing

    return data_root() / "heads", SHIPPED_HEADS


def local_heads() -> list[LocalHead]:
    """Return the heads in these folders, damaged ones too, the person's own first."""
    heads: list[LocalHead] = []
    for folder in head_folders():
        try:
            places = sorted(folder.iterdir())
        except OSError:
            continue  # there need not be any
        heads += [
            _read(place, shipped=folder == SHIPPED_HEADS)
            for place in places
            if os.path.isfile(place / CARD_NAME)
        ]
    return heads


def fingerprint_at(folder: Path) -> str | None:
    """Return the fingerprint of the host that the head in a folder is for; None without a head."""
    host = (read_json(folder / CARD_NAME) or {}).get("host")
    fingerprint = host.get("fingerprint") if isinstance(host, dict) else None
    return fingerprint if isinstance(fingerprint, str) else None


def length_at(folder: Path) -> float:
    """Return the acceptance length that was measured of the head in a folder; 0 without one."""
    length = (read_json(folder / CARD_NAME) or {}).get("acceptance_length")
    return float(length) if isinstance(length, int | float) else 0.0


def heads_for(fingerprint: str, folders: Sequence[Path]) -> list[Path]:
    """Return the heads for a host in these folders, one head a folder, the longest length first.

    Where lengths are equal the order of the folders decides.
    """
    places: list[Path] = []
    for folder in folders:
        try:
            places += sorted(path for path in folder.iterdir() if path.is_dir())
        except OSError:
            continue  # there need not be any, and a folder in the way is not worth a refusal
    found = [place for place in places if fingerprint_at(place) == fingerprint]
    return sorted(found, key=length_at, reverse=True)


def resolve_head(name: str) -> Path:
    """Return the path of a head: ``name`` is its folder or card, or what it is called here.

    Raises UserError where there is none, and for one that is damaged as far as that shows without
    reading its weights.
    """
    here = local_heads()
    paths = [Path(os.path.expanduser(name)), *(head.path for head in here if head.name == name)]
    path = next((path for path in paths if os.path.isfile(_card_of(path))), None)
    names = ", ".join(dict.fromkeys(head.name for head in here if not head.damage))
    action = f"Give the folder of a head, or one of these names: {names}."
    if not names:
        action = "Give the folder of a head, or train one with paceline train-mtp."
    if path is None:
        place = "at" if os.path.basename(name) != name or os.path.exists(paths[0]) else "called"
        raise UserError(f"There is no head {place} {name}.", action)
    folder = _card_of(path).parent
    if damage := _read(folder, shipped=False).damage:
        raise UserError(f"The head {folder.absolute().name} cannot be used: {damage}.", action)
    return path


def _card_of(path: Path) -> Path:
    """Return the card in a folder, or beside a file."""
    beside = os.path.exists(path) and not os.path.isdir(path)
    return (path.parent if beside else path) / CARD_NAME


def _read(place: Path, *, shipped: bool) -> LocalHead:
    card, damage = None, ""
    try:
        values = read_json(place / CARD_NAME) or {}
        card = HeadCard.from_json(values, _SOME_VOCABULARY)
        damage = _damage_of_weights(place, values)
    except UserError as error:
        damage = clause(error.message)
    except (ArithmeticError, ValueError):  # numbers beyond all reason
        damage = _UNREADABLE
    whole = card if not damage else None
    return LocalHead(
        name=place.absolute().name,
        path=place,
        shipped=shipped,
        size_bytes=sum(map(_size_of, place.glob("*.safetensors"))),
        host=str(whole.host.name or "") if whole else "",
        kind=whole.kind if whole else "",
        depth=whole.depth if whole else None,
        acceptance_length=whole.acceptance_length if whole else None,
        damage=damage,
    )


def _damage_of_weights(place: Path, values: Mapping[str, Any]) -> str:
    weights = values.get("weights")
    if not isinstance(weights, dict):
        return _UNREADABLE
    whole = _size_of(place / str(weights.get("file"))) == weights.get("size_bytes")
    return "" if whole else "its weights are missing or cut short"


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0

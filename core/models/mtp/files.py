"""A head on the disk: a folder with a card in JSON and the weights in safetensors.

The card names its file of weights, whose name comes from what is in it. So one replaced card
turns the old head into the new one, and whatever is cut short before that changes nothing.
"""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors

from core.errors import UserError
from core.hub.files import check_disk, explain_write_error, parse_json, write_json
from core.models.mtp.card import CARD_NAME, HeadCard, HeadHost, HeadKind
from core.models.mtp.modules import Head, ParallelHead, SequentialHead
from core.models.mtp.packing import pack, unpack
from core.models.source import PICKLE_SUFFIXES

_WEIGHTS = re.compile(r"head-[0-9a-f]{8}\.safetensors")
_VOCABULARY = "vocabulary"
_MAX_WEIGHTS_BYTES = 4 << 30
_AGAIN = "Train the head again, or choose another."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """What a folder holds: the card's own values, and where the weights are."""

    values: dict[str, Any]
    weights: Path
    size_bytes: int
    sha256: str


def save_head(
    head: Head,
    folder: Path,
    *,
    card: HeadCard | None = None,
    dtype: torch.dtype = torch.bfloat16,
    packed: bool = False,
) -> None:
    """Write a head into its folder, in place of the one that may be there.

    ``card`` takes the place of the head's own, with what was measured after the training, say.
    ``packed`` keeps its matrices in 4.5 bits a weight, in place of ``dtype``.
    Whoever reads meanwhile, or after this was cut short, finds the old head or the new one.
    Raises UserError where the folder cannot be written.
    """
    card = head.card if card is None else card
    tensors = {
        name: pack(weight) if packed else weight.detach().to("cpu", dtype).contiguous()
        for name, weight in head.state_dict().items()
    }
    tensors[_VOCABULARY] = torch.tensor(card.vocabulary, dtype=torch.int32)
    data = save_safetensors(tensors)
    digest = hashlib.sha256(data).hexdigest()
    weights = folder / f"head-{digest[:8]}.safetensors"
    stored = {"file": weights.name, "size_bytes": len(data), "sha256": digest}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_disk(folder, len(data), "save the head")
        _write(weights, data)
        write_json(folder / CARD_NAME, {**card.to_json(), "weights": stored})
        for other in folder.glob("head-*.safetensors"):
            if other != weights and _WEIGHTS.fullmatch(other.name):
                other.unlink(missing_ok=True)
    except OSError as error:
        raise explain_write_error(error, folder) from error


def load_head(path: Path, host: HeadHost | None = None) -> Head:
    """Read a head in float32 from its folder or card, and see that it is for ``host``.

    Raises UserError for what is no head, is damaged, or belongs to another model.
    """
    stored = _open(path)
    folder = stored.weights.parent
    if host is not None:
        check_host(stored.values, host, folder.name)
    tensors = _read_weights(stored)
    vocabulary = tensors.pop(_VOCABULARY, torch.empty(0))
    if vocabulary.dtype != torch.int32 or vocabulary.dim() != 1:
        raise _damaged(folder)
    card = HeadCard.from_json(stored.values, tuple(vocabulary.tolist()))
    try:
        tensors = {name: unpack(weight) for name, weight in tensors.items()}
    except ValueError as error:
        raise _damaged(folder) from error
    # On the meta device nothing is allocated for a card that promises too much.
    with torch.device("meta"):
        head = SequentialHead(card) if card.kind == HeadKind.SEQUENTIAL else ParallelHead(card)
    expected = {name: weight.shape for name, weight in head.state_dict().items()}
    found = {name: weight.shape for name, weight in tensors.items()}
    if expected != found or not all(bool(w.isfinite().all()) for w in tensors.values()):
        raise _damaged(folder)
    head.load_state_dict(tensors, assign=True)
    return head.eval()


def check_host(values: dict[str, Any], host: HeadHost, name: str) -> None:
    """Raise UserError where a card's values name another host than ``host``."""
    own = values.get("host")
    if not isinstance(own, dict):
        raise UserError(f"The card of the head {name} is damaged.", _AGAIN)
    if own.get("fingerprint") == host.fingerprint:
        return
    wanted = own.get("name") or "another model"
    sizes = [(own.get("layers"), own.get("hidden")), (host.layers, host.hidden)]
    reason = (
        "which has the same shape and other weights"
        if sizes[0] == sizes[1]
        else f"with {sizes[0][0]} layers of {sizes[0][1]}, and this one has {sizes[1][0]} of "
        f"{sizes[1][1]}"
    )
    raise UserError(
        f"The head {name} was made for {wanted}, {reason}.",
        "Choose a head that was made for this model, or train one.",
    )


def _open(path: Path) -> _Stored:
    if path.suffix.lower() in PICKLE_SUFFIXES:
        raise UserError(
            f"{path.name} looks like a pickle checkpoint, which can run code when it is opened: "
            "Paceline loads heads from safetensors only.",
            "Choose the folder of a head that was trained with paceline train-mtp.",
        )
    folder = path if path.is_dir() else path.parent
    card = folder / CARD_NAME
    try:
        if not card.is_file():
            raise FileNotFoundError(card)
        content = card.read_bytes()
    except OSError as error:
        raise UserError(
            f"There is no head at {path}: {CARD_NAME} is missing or cannot be read.",
            "Choose the folder of a head that was trained with paceline train-mtp.",
        ) from error
    try:
        values = parse_json(content)
        weights = values.pop("weights")
        if not _WEIGHTS.fullmatch(weights["file"]):
            raise ValueError("the weights have another name")
        return _Stored(
            values=values,
            weights=folder / weights["file"],
            size_bytes=weights["size_bytes"],
            sha256=weights["sha256"],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(folder) from error


def _read_weights(stored: _Stored) -> dict[str, torch.Tensor]:
    folder = stored.weights.parent
    try:
        if not stored.weights.is_file():
            raise FileNotFoundError(stored.weights)
        size_bytes = stored.weights.stat().st_size
        if size_bytes != stored.size_bytes or size_bytes > _MAX_WEIGHTS_BYTES:
            raise _damaged(folder)
        data = stored.weights.read_bytes()
    except OSError as error:
        raise UserError(
            f"The weights of the head {folder.name} are missing or cannot be read.", _AGAIN
        ) from error
    if hashlib.sha256(data).hexdigest() != stored.sha256:
        raise _damaged(folder)
    try:
        return load_safetensors(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise _damaged(folder) from error


def _damaged(folder: Path) -> UserError:
    return UserError(f"The head in {folder} is damaged.", _AGAIN)


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)

"""Where a training stands, on the disk: the old state or the new one, whole.

``checkpoint.json`` names the file of numbers that belongs to it. That file is written, flushed and
renamed first, and removed only when the next one counts.
"""

import os
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from core.errors import UserError
from core.hub.files import explain_write_error, read_json, write_json
from core.training.shards import save_whole

FORMAT = 1
_CARD = "checkpoint.json"
_DAMAGE = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)
"""What values give that were never written so."""


class Resumable(Protocol):
    """A training whose state is numbers by name and a few plain values."""

    step: int

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the numbers."""

    def position(self) -> dict[str, Any]:
        """Return the plain values."""

    def restore(self, tensors: dict[str, torch.Tensor], position: dict[str, Any]) -> None:
        """Go on where these were taken. Raises KeyError."""


class Remembered(Protocol):
    """What is kept beside a training, as plain values."""

    def kept(self) -> dict[str, Any]:
        """Return the values."""

    def restore(self, kept: dict[str, Any]) -> None:
        """Go on from them, after the trainer. Raises KeyError, TypeError and ValueError."""


def save_checkpoint(
    folder: Path, trainer: Resumable, settings: dict[str, Any], meter: Remembered
) -> Path:
    """Keep where the trainer stands, and its meter; return the file of numbers.

    ``settings`` are plain values that the next run must share. Raises UserError where the disk
    refuses.
    """
    path = folder / f"state-{trainer.step:08d}.safetensors"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: value.contiguous() for name, value in trainer.tensors().items()}
        size_bytes = save_whole(tensors, path)
        card = {
            "format": FORMAT,
            "file": path.name,
            "size_bytes": size_bytes,
            "settings": settings,
            "position": trainer.position(),
            "meter": meter.kept(),
        }
        write_json(folder / _CARD, card)
        for other in (*folder.glob("state-*"), *folder.glob(f"{_CARD}.*")):
            if other != path:
                other.unlink(missing_ok=True)
    except OSError as error:
        raise explain_write_error(error, folder) from error
    return path


def has_checkpoint(folder: Path) -> bool:
    """Whether a training is kept there, or what is left of one."""
    return os.path.lexists(folder / _CARD)


def restore_checkpoint(
    folder: Path, trainer: Resumable, settings: dict[str, Any], meter: Remembered
) -> bool:
    """Put the trainer and its meter where they were kept; return whether anything was.

    Raises UserError where that belongs to another run or is damaged.
    """
    damaged = UserError(
        f"What is kept of the training in {folder} is damaged.", "Begin anew with --anew."
    )
    card = read_json(folder / _CARD)
    if card is None:
        if has_checkpoint(folder):
            raise damaged
        return False
    if card.get("format") != FORMAT or card.get("settings") != settings:
        raise UserError(
            f"The training that is kept in {folder} was begun with other choices.",
            "Go on with the same ones, or begin anew with --anew.",
        )
    try:
        _check(card["position"])
        trainer.restore(_numbers(folder / card["file"], card["size_bytes"]), card["position"])
        meter.restore(card["meter"])
    except (*_DAMAGE, OSError, SafetensorError) as error:
        raise damaged from error
    return True


def remove_checkpoint(folder: Path) -> None:
    """Forget where a training stood."""
    # The card first: numbers without one count for nothing.
    for path in (folder / _CARD, *folder.glob("state-*")):
        path.unlink(missing_ok=True)


def _check(position: dict[str, Any]) -> None:
    """Raise ValueError for what is no place of a training."""
    for name, value in position.items():
        if type(value) is not int or value < 0:
            raise ValueError(f"{name} is {value!r}")
    if position["step"] > position.get("total_steps", position["step"]):
        raise ValueError("it is past its end")


def _numbers(path: Path, size_bytes: int) -> dict[str, torch.Tensor]:
    if path.stat().st_size != size_bytes:
        raise ValueError("not the size it was written with")
    return load_file(path)

"""Generated text with its states on the disk, in shards that are whole or do not count.

A folder of ``shard-00000.safetensors`` and a ``manifest.json`` that names the ones that count. A
shard is written under another name, flushed and renamed, and only then enters the manifest, so a
kill at any moment loses at most the shard that was being filled.

A shard holds ``ids`` int32 [tokens] of all its sequences one after the other, ``states``
[tokens, width] in bfloat16 beside them, ``starts`` int64 [sequences + 1], ``prompt_lengths`` int32
[sequences] and ``temperatures`` float32 [sequences]. The state of a token is what predicts the
next one; the last token of a sequence predicts nothing and has zeros.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from core.errors import UserError
from core.hub.files import explain_write_error, read_json, unwrapped_write_error, write_json

FORMAT = 1
MANIFEST = "manifest.json"
_NAME = re.compile(r"shard-\d+\.safetensors")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """One finished sequence: prompt and reply.

    ``states`` [len(ids) - 1, width] bfloat16 are those of all tokens but the last; ``key`` names
    the job it was made for.
    """

    key: str
    ids: tuple[int, ...]
    prompt_length: int
    temperature: float
    states: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one pass of the model over all sequences at work made: ``tokens``, and what ended."""

    tokens: int
    finished: tuple[Generated, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardInfo:
    """A shard that counts, as the manifest has it."""

    file: str
    size_bytes: int
    sequences: int
    tokens: int
    """Of prompts and replies together."""
    reply_tokens: int
    keys: tuple[str, ...]


def save_whole(tensors: dict[str, torch.Tensor], path: Path) -> int:
    """Write a safetensors file so that it is whole or not there; return its size in bytes.

    Raises OSError.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        save_file(tensors, temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
            size_bytes = os.fstat(file.fileno()).st_size
        os.replace(temporary, path)
    except SafetensorError as error:
        raise unwrapped_write_error(path.parent) from error
    finally:
        temporary.unlink(missing_ok=True)
    return size_bytes


class ShardStore:
    """The shards of one folder. One process writes; what it was begun with must stay the same."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        """Open or begin the folder.

        ``settings`` (plain JSON values) say what the text is made with. Raises UserError where
        the folder holds text made otherwise or cannot be written.
        """
        self.folder = folder
        self._settings = settings
        self._waiting: list[Generated] = []
        self.shards: list[ShardInfo] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._open()
        except OSError as error:
            raise explain_write_error(error, folder) from error

    @property
    def done(self) -> frozenset[str]:
        """The keys of the sequences that are safe on the disk."""
        return frozenset(key for shard in self.shards for key in shard.keys)

    @property
    def tokens(self) -> int:
        """Tokens of replies, safe and waiting."""
        waiting = sum(len(one.ids) - one.prompt_length for one in self._waiting)
        return sum(shard.reply_tokens for shard in self.shards) + waiting

    @property
    def waiting_tokens(self) -> int:
        """Tokens of prompts and replies that wait for their shard."""
        return sum(len(one.ids) for one in self._waiting)

    def add(self, sequence: Generated) -> None:
        """Keep a sequence for the next shard."""
        self._waiting.append(sequence)

    def flush(self) -> ShardInfo | None:
        """Write what waits as one shard. Raises UserError where the disk refuses."""
        if not self._waiting:
            return None
        name = f"shard-{self._next_number():05d}.safetensors"
        try:
            size_bytes = save_whole(_tensors(self._waiting), self.folder / name)
            info = ShardInfo(
                file=name,
                size_bytes=size_bytes,
                sequences=len(self._waiting),
                tokens=self.waiting_tokens,
                reply_tokens=sum(len(one.ids) - one.prompt_length for one in self._waiting),
                keys=tuple(one.key for one in self._waiting),
            )
            self.shards.append(info)
            self._write_manifest()
        except OSError as error:
            raise explain_write_error(error, self.folder) from error
        self._waiting.clear()
        return info

    def _next_number(self) -> int:
        numbers = [int(shard.file.removeprefix("shard-").split(".")[0]) for shard in self.shards]
        return max(numbers, default=-1) + 1

    def _open(self) -> None:
        manifest = read_json(self.folder / MANIFEST)
        if manifest is None and (self.folder / MANIFEST).exists():
            # What it named is still there, and not to be removed for that.
            raise UserError(
                f"The list of generated text in {self.folder} is damaged.",
                "Put a copy of it back, or delete the folder and start anew.",
            )
        if manifest is None:
            self._write_manifest()
        else:
            if manifest.get("format") != FORMAT or manifest.get("settings") != self._settings:
                raise UserError(
                    f"The folder {self.folder} holds text that was made with other settings.",
                    "Name another folder, or delete this one.",
                )
            self.shards = [s for s in parse_shards(manifest) if _is_whole(self.folder, s)]
        counted = {shard.file for shard in self.shards}
        for path in self.folder.iterdir():
            # Of a run that was killed before it counted.
            begun = path.name.startswith(("shard-", f"{MANIFEST}."))
            if begun and path.name not in counted:
                path.unlink()

    def _write_manifest(self) -> None:
        shards = [
            {
                "file": shard.file,
                "size_bytes": shard.size_bytes,
                "sequences": shard.sequences,
                "tokens": shard.tokens,
                "reply_tokens": shard.reply_tokens,
                "keys": list(shard.keys),
            }
            for shard in self.shards
        ]
        manifest = {"format": FORMAT, "settings": self._settings, "shards": shards}
        write_json(self.folder / MANIFEST, manifest)


def parse_shards(manifest: dict[str, Any]) -> list[ShardInfo]:
    """Return the shards of a manifest. Raises UserError where it is not one."""
    try:
        shards = [
            ShardInfo(**{**entry, "keys": tuple(entry["keys"])}) for entry in manifest["shards"]
        ]
        for shard in shards:
            counts = (shard.size_bytes, shard.sequences, shard.tokens, shard.reply_tokens)
            if any(type(count) is not int or count < 0 for count in counts):
                raise ValueError("a number of a shard is none")
            if len(shard.keys) != shard.sequences or not _NAME.fullmatch(shard.file):
                raise ValueError("a shard is not what it is called")
        return shards
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"The list of generated text is damaged ({error}).", "Delete its folder and start anew."
        ) from None


def holds_whole_text(folder: Path) -> bool:
    """Whether all shards that count are there in full. Raises UserError for a damaged list."""
    manifest = read_json(folder / MANIFEST)
    shards = parse_shards(manifest) if manifest is not None else []
    return bool(shards) and all(_is_whole(folder, shard) for shard in shards)


def _is_whole(folder: Path, shard: ShardInfo) -> bool:
    path = folder / shard.file
    return path.is_file() and path.stat().st_size == shard.size_bytes


def _tensors(sequences: Sequence[Generated]) -> dict[str, torch.Tensor]:
    lengths = torch.tensor([len(one.ids) for one in sequences])
    starts = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
    states = torch.zeros(int(starts[-1]), sequences[0].states.shape[1], dtype=torch.bfloat16)
    for one, start in zip(sequences, starts.tolist(), strict=False):
        states[start : start + len(one.states)] = one.states
    return {
        "ids": torch.tensor([i for one in sequences for i in one.ids], dtype=torch.int32),
        "states": states,
        "starts": starts,
        "prompt_lengths": torch.tensor([one.prompt_length for one in sequences]).int(),
        "temperatures": torch.tensor([one.temperature for one in sequences]).float(),
    }

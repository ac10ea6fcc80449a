"""Generated text and its states, mapped from the shards and cut into batches."""

import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from core.errors import UserError
from core.hub.files import read_json
from core.training.shards import MANIFEST, parse_shards

_SIZE_STEP = 32
_SORTED_BATCHES = 32
"""Sequences of so many batches are sorted by length together: little padding, and still mixed."""


def rounded(size: int) -> int:
    """Return a size rounded up to one that many batches share.

    On a CPU the products of each new shape get machine code of their own, which is kept: with any
    size at all a training would take more memory the longer it runs.
    """
    return -(-size // _SIZE_STEP) * _SIZE_STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Sequences, padded at their end.

    ``ids`` [rows, length] int64; ``states`` [rows, length, width] bfloat16; ``mask`` [rows, length]
    is true at real tokens; ``starts`` [rows] are the lengths of the prompts; ``greedy`` [rows].
    """

    ids: torch.Tensor
    states: torch.Tensor
    mask: torch.Tensor
    starts: torch.Tensor
    greedy: torch.Tensor

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device."""
        return Batch(
            ids=self.ids.to(device),
            states=self.states.to(device),
            mask=self.mask.to(device),
            starts=self.starts.to(device),
            greedy=self.greedy,
        )

    @property
    def tokens(self) -> int:
        """Real tokens, prompts among them."""
        return int(self.mask.sum())


class TextData:
    """The sequences of a folder of shards, read as they are asked for."""

    def __init__(self, folder: Path) -> None:
        """Open the shards. Raises UserError where there is no text or it is damaged."""
        manifest = read_json(folder / MANIFEST)
        shards = parse_shards(manifest) if manifest is not None else []
        if not shards:
            raise UserError(f"There is no generated text in {folder}.", "Generate it first.")
        self._folder = folder
        self._stack = ExitStack()
        self._files: list[Any] = []
        found: list[tuple[str, int, int, int, int, float]] = []
        for number, shard in enumerate(shards):
            try:
                file = self._stack.enter_context(safe_open(folder / shard.file, framework="pt"))
                starts = file.get_tensor("starts")
                prompts = file.get_tensor("prompt_lengths").tolist()
                temperatures = file.get_tensor("temperatures").tolist()
                lengths = starts.diff().tolist()
                found += [
                    (shard.keys[index], number, start, lengths[index], prompts[index], temperature)
                    for index, (start, temperature) in enumerate(
                        zip(starts[:-1].tolist(), temperatures, strict=True)
                    )
                ]
            except (OSError, LookupError, ValueError, RuntimeError, SafetensorError) as error:
                raise UserError(
                    f"The generated text in {shard.file} is damaged.",
                    f"Delete the folder {folder} and start anew.",
                ) from error
            self._files.append(file)
        found.sort()  # the same order, however often the generation was stopped
        self._prompts = len({key.rpartition("/")[0] for key, *_ in found})
        self.keys = [key for key, *_ in found]
        self._places = [(number, start) for _, number, start, _, _, _ in found]
        self.lengths = [length for _, _, _, length, _, _ in found]
        self.prompt_lengths = [length for _, _, _, _, length, _ in found]
        self.temperatures = [temperature for _, _, _, _, _, temperature in found]

    def __len__(self) -> int:
        return len(self.lengths)

    def __enter__(self) -> "TextData":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
        self._files.clear()

    @property
    def prompts(self) -> int:
        """How many prompts were answered."""
        return self._prompts

    @property
    def reply_tokens(self) -> int:
        """Tokens of all replies."""
        return sum(self.lengths) - sum(self.prompt_lengths)

    def check_states(self, width: int) -> None:
        """Raise UserError where the states are not as wide as those of the model at hand."""
        for file in self._files:
            if file.get_slice("states").get_shape()[1] != width:
                raise UserError(
                    f"The text in {self._folder} has the states of another model.",
                    "Name text that was generated with this one.",
                )

    def ids(self, index: int) -> torch.Tensor:
        """Return the ids [length] int64 of a sequence."""
        return self._slice("ids", index).long()

    def batch(self, indices: Sequence[int]) -> Batch:
        """Read sequences into one padded batch."""
        longest = rounded(max(self.lengths[index] for index in indices))
        states = [self._slice("states", index) for index in indices]
        padded = states[0].new_zeros(len(indices), longest, states[0].shape[1])
        ids = torch.zeros(len(indices), longest, dtype=torch.long)
        mask = torch.zeros(len(indices), longest, dtype=torch.bool)
        for row, (index, kept) in enumerate(zip(indices, states, strict=True)):
            padded[row, : len(kept)] = kept
            ids[row, : len(kept)] = self.ids(index)
            mask[row, : len(kept)] = True
        return Batch(
            ids=ids,
            states=padded,
            mask=mask,
            starts=torch.tensor([self.prompt_lengths[index] for index in indices]),
            greedy=torch.tensor([self.temperatures[index] == 0 for index in indices]),
        )

    def plan(self, batch_tokens: int, seed: int | None) -> list[list[int]]:
        """Cut all sequences into batches of at most that many tokens with their padding.

        Shuffled by the seed, the same for the same one; None keeps the order, sorted by length. A
        sequence longer than that is a batch of its own.
        """
        order = list(range(len(self)))
        if seed is None:
            return self._cut(sorted(order, key=self.lengths.__getitem__), batch_tokens)
        numbers = random.Random(seed)
        numbers.shuffle(order)
        mean = sum(self.lengths) / max(1, len(self))
        span = max(1, round(_SORTED_BATCHES * batch_tokens / max(1.0, mean)))
        batches: list[list[int]] = []
        for first in range(0, len(order), span):
            part = sorted(order[first : first + span], key=self.lengths.__getitem__)
            cut = self._cut(part, batch_tokens)
            numbers.shuffle(cut)
            batches += cut
        return batches

    def _cut(self, order: Sequence[int], batch_tokens: int) -> list[list[int]]:
        batches: list[list[int]] = [[]]
        for index in order:
            size = (len(batches[-1]) + 1) * rounded(self.lengths[index])
            if batches[-1] and size > batch_tokens:
                batches.append([])
            batches[-1].append(index)
        return [batch for batch in batches if batch]

    def _slice(self, name: str, index: int) -> torch.Tensor:
        file, start = self._places[index]
        part: torch.Tensor = self._files[file].get_slice(name)[start : start + self.lengths[index]]
        return part


def layers_of(folder: Path) -> tuple[int, ...]:
    """Return after which layers the states of a folder were kept. Raises UserError."""
    settings = (read_json(folder / MANIFEST) or {}).get("settings")
    layers = settings.get("layers") if isinstance(settings, dict) else None
    if not isinstance(layers, list) or not layers:
        raise UserError(f"There is no generated text in {folder}.", "Generate it first.")
    return tuple(int(layer) for layer in layers)


def frequent_tokens(data: TextData, size: int, always: Sequence[int] = ()) -> tuple[int, ...]:
    """Return the ``size`` most frequent ids of the replies, ``always`` among them, by frequency."""
    counts = _reply_counts(data)
    for token in always:
        counts[token] = counts.get(token, 0) + sum(data.lengths)
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    return tuple(ranked[:size])


def coverage(data: TextData, vocabulary: Sequence[int]) -> float:
    """Return which share of the replies' tokens is in a vocabulary."""
    counts = _reply_counts(data)
    known = set(vocabulary)
    total = sum(counts.values())
    return sum(count for token, count in counts.items() if token in known) / max(1, total)


def _reply_counts(data: TextData) -> dict[int, int]:
    counts: dict[int, int] = {}
    for index in range(len(data)):
        for token in data.ids(index)[data.prompt_lengths[index] :].tolist():
            counts[token] = counts.get(token, 0) + 1
    return counts

"""What a training run is asked for."""

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.errors import UserError
from core.models.mtp.card import MAX_DEPTH, HeadKind
from core.requests import LoadRequest
from core.training.mtp import TrainSettings, step_weights
from core.training.prompts import Prompt, Split, read_prompts, read_user_prompts

HELD_OUT_PROMPTS = 120
"""How many held-out prompts are answered to measure on, at most."""
_OWN_HELD_OUT_EVERY = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """A head to be trained.

    ``load`` names the host as its target. ``layers`` None takes the thirds of the host. ``tokens``
    of replies are generated, or as many as half of ``minutes`` allow; training takes what is left
    of the minutes, or all epochs. ``data`` are files of the person's own prompts, which join the
    shipped ones or, with ``own_only``, take their place. ``out`` None puts the head below
    ``home``/heads; everything else is kept below ``home``/training. Raises UserError for values out
    of range.
    """

    load: LoadRequest
    home: Path
    kind: str = HeadKind.SEQUENTIAL
    depth: int = 3
    layers: tuple[int, ...] | None = None
    vocabulary: int = 8192
    data: tuple[Path, ...] = ()
    own_only: bool = False
    tokens: int | None = None
    minutes: float | None = None
    epochs: float = 6.0
    temperatures: tuple[float, ...] = (0.0, 0.7, 0.7, 1.0)
    fast: bool = False
    """Generate with one term of activations: faster, and a little less the host's own text."""
    loss: str = "kl"
    weights: tuple[float, ...] | None = None
    learning_rate: float = 5e-3
    noise: float = 0.0
    batch_tokens: int = 2048
    max_new_tokens: int = 384
    lanes: int = 32
    seed: int = 0
    out: Path | None = None
    packed: bool = False
    """Keep the head in 4.5 bits a weight."""
    anew: bool = False
    text: tuple[Path, Path] | None = None
    """Folders of text that was generated before, to train on and to measure on."""
    author: LoadRequest | None = None
    """The target whose text the head learns where the host is its draft; None: the host's own."""
    command: str = ""

    def __post_init__(self) -> None:
        if self.kind not in [str(kind) for kind in HeadKind]:
            raise UserError(
                f"There is no head called {self.kind!r}.", "Choose sequential or parallel."
            )
        ranges: dict[str, tuple[float, float]] = {
            "depth": (1, MAX_DEPTH),
            "vocabulary": (16, 1 << 20),
            "tokens": (100, 1 << 40),
            "minutes": (0.1, 100_000),
            "epochs": (0.01, 1000),
            "max_new_tokens": (4, 1 << 16),
            "lanes": (1, 1024),
            "seed": (0, 2**31),
        }
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise UserError(f"{name} is {value}.", f"It must be from {low:g} to {high:g}.")
        if not self.temperatures or not all(0 <= value <= 5 for value in self.temperatures):
            raise UserError("A temperature is out of range.", "It must be from 0 to 5.")
        if self.weights is not None and len(self.weights) != self.depth:
            raise UserError(
                f"There are {len(self.weights)} weights and {self.depth} steps.",
                "Give one weight a step.",
            )
        if self.own_only and not self.data:
            raise UserError("There are no prompts to train on.", "Name a file of your own prompts.")
        self.train_settings()

    def train_settings(self) -> TrainSettings:
        """Return how the head is trained. Raises UserError for values out of range."""
        return TrainSettings(
            weights=self.weights or step_weights(self.depth),
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            loss=self.loss,
            noise=self.noise,
            batch_tokens=self.batch_tokens,
            seed=self.seed,
        )


def read_both(request: TrainRequest) -> tuple[list[Prompt], list[Prompt]]:
    """Return the prompts to train on and those to measure on.

    Own prompts that name no split give every twelfth to measuring. Raises UserError with file and
    line for what cannot be read.
    """
    train: list[Prompt] = []
    held_out: list[Prompt] = []
    if not request.own_only:
        train += read_prompts(Split.TRAIN)
        held_out += read_prompts(Split.HELD_OUT)
    for number, path in enumerate(request.data):
        own = [replace(p, id=f"file{number}-{p.id}") for p in read_user_prompts(path)]
        kept = [prompt for prompt in own if prompt.split == Split.HELD_OUT]
        if not kept:
            kept = own[:: min(_OWN_HELD_OUT_EVERY, len(own))] if len(own) > 1 else []
        names = {prompt.id for prompt in kept}
        held_out += kept
        train += [prompt for prompt in own if prompt.id not in names]
    if len(held_out) > HELD_OUT_PROMPTS:
        held_out = random.Random(0).sample(held_out, HELD_OUT_PROMPTS)
    if not train or not held_out:
        raise UserError(
            "There are too few prompts: some are needed to train on and some to measure on.",
            "Add more prompts to the file.",
        )
    return train, held_out


def short_hash(*values: Any) -> str:
    """Return a name for plain values: equal ones have the same."""
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def prompts_hash(prompts: Sequence[Prompt]) -> str:
    """Return a name for a list of prompts."""
    return short_hash([[prompt.id, *map(list, prompt.messages)] for prompt in prompts])

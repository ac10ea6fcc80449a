"""What is to be generated, and how."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from core.errors import UserError
from core.prompt import render
from core.training.prompts import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One sequence to make; ``key`` is unique and decides its random numbers."""

    key: str
    prompt_ids: tuple[int, ...]
    temperature: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """How sequences are made.

    ``layers``: after how many layers the states are kept, the last being all of them, whose state
    is the normalised one. ``max_prompt_tokens``: longer prompts are left out. ``two_terms`` False
    is faster and less precise on the int8 weights; None is what replies are made with.
    """

    layers: tuple[int, ...]
    max_new_tokens: int = 384
    max_prompt_tokens: int = 768
    lanes: int = 32
    shard_tokens: int = 32_768
    seed: int = 0
    two_terms: bool | None = None

    def __post_init__(self) -> None:
        for name in ("max_new_tokens", "max_prompt_tokens", "lanes", "shard_tokens"):
            value = getattr(self, name)
            if value < 1:
                raise UserError(f"{name} is {value}.", "It must be at least 1.")

    def fixed(self) -> dict[str, Any]:
        """Return what must stay the same between two runs on one folder, as plain values."""
        values = asdict(self)
        return {**values, "layers": list(self.layers), "lanes": None, "shard_tokens": None}


def check_layers(layers: Sequence[int], available: int) -> tuple[int, ...]:
    """Return the layers, ending with the last one. Raises UserError for what is not there."""
    wrong = [layer for layer in layers if not 0 <= layer <= available]
    if wrong or not layers:
        raise UserError(
            f"There are no states after layer {wrong[0] if wrong else 'none'}.",
            f"Name layers from 0 to {available}.",
        )
    return tuple(sorted({*layers, available}))


def make_jobs(
    tokenizer: Any, prompts: Sequence[Prompt], temperatures: Sequence[float], seed: int
) -> list[Job]:
    """Return a job for every prompt at every temperature.

    Equal temperatures give different samples. Prompts are shuffled, the same for the same seed,
    and the jobs of one prompt are neighbours.
    """
    shuffled = list(prompts)
    random.Random(seed).shuffle(shuffled)
    jobs = []
    for prompt in shuffled:
        ids = render(tokenizer, prompt.messages).ids
        jobs += [
            Job(key=f"{prompt.id}/{number}", prompt_ids=ids, temperature=temperature)
            for number, temperature in enumerate(temperatures)
        ]
    return jobs

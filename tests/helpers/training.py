"""Generated text of tiny models, and trainers on it."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.models.mtp.card import HeadKind
from core.models.mtp.host import describe_host
from core.models.mtp.modules import make_head
from core.models.runners import make_runner
from core.training.data import TextData
from core.training.generate import generate
from core.training.jobs import GenerationSettings, Job
from core.training.mtp import Trainer, TrainSettings, step_weights
from core.training.shards import ShardStore
from tests.helpers.heads import head_card

VOCAB = 256


def sentences(
    count: int = 20, *, seed: int = 3, temperatures: Sequence[float] = (0.0,)
) -> list[Job]:
    numbers = random.Random(seed)
    prompts = [
        tuple(numbers.randrange(VOCAB) for _ in range(numbers.randrange(4, 12)))
        for _ in range(count)
    ]
    return [
        Job(key=f"p{index}/{number}", prompt_ids=prompt, temperature=temperature)
        for index, prompt in enumerate(prompts)
        for number, temperature in enumerate(temperatures)
    ]


def write_text(model: Any, folder: Path, jobs: list[Job], *, new_tokens: int = 24) -> Path:
    """Let the model answer the jobs into a folder of shards; states of layers 1 and 2."""
    settings = GenerationSettings(
        layers=(1, 2), max_new_tokens=new_tokens, lanes=8, shard_tokens=300
    )
    generate(
        model,
        jobs,
        ends=frozenset(),
        settings=settings,
        store=ShardStore(folder, settings.fixed()),
        on_progress=lambda _: None,
        stop=lambda: False,
    )
    return folder


def make_trainer(
    model: Any,
    data: TextData,
    *,
    kind: str = HeadKind.SEQUENTIAL,
    vocabulary: Sequence[int] | None = None,
    depth: int = 3,
    **settings: Any,
) -> Trainer:
    runner = make_runner(model)
    card = head_card(kind=kind, host=describe_host(runner), vocabulary=vocabulary, depth=depth)
    values = {"weights": step_weights(depth), "batch_tokens": 256, "warm_up_steps": 5, **settings}
    return Trainer(
        make_head(card),
        data,
        embed=runner.embed,
        unembedding=runner.unembedding(card.vocabulary),
        settings=TrainSettings(**values),
        bfloat16=False,
    )

"""Replies of Paceline's own loop on ids alone, for two models on any runner."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from core.decoding.gamma import GammaController
from core.decoding.loop import Limits, RoundIds, decode
from core.decoding.sampling import Sampler
from core.drafting.model import ModelDrafter
from core.models.cache import TokenCache
from core.models.runner import EagerRunner, Runner
from core.models.static.graphs import CudaGraphs
from core.models.static.obstacle import capture_obstacle
from core.models.static.runner import StaticRunner
from core.requests import SamplingParams


def eager(model: Any) -> Runner:
    """Return the reference runner."""
    return EagerRunner(model)


def static(model: Any) -> StaticRunner:
    """Return the static runner: with graphs on CUDA where they can be had, as it is elsewhere."""
    captured = model.device.type == "cuda" and not capture_obstacle(model)
    return StaticRunner(model, graphs=CudaGraphs(model.device) if captured else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The new ids of a reply and what its rounds took; the prompt's reading is left out."""

    ids: tuple[int, ...]
    seconds: float
    rounds: int
    proposed: int
    accepted: int
    draft_ms: float
    verify_ms: float

    @property
    def tokens_per_second(self) -> float:
        """Tokens over the time of the rounds."""
        return len(self.ids) / self.seconds

    @property
    def acceptance_length(self) -> float:
        """Tokens a round."""
        return len(self.ids) / self.rounds


class Talk:
    """A target and perhaps a draft with their caches, which later replies reuse."""

    def __init__(self, target: Runner, draft: Runner | None = None) -> None:
        self.target = TokenCache(target)
        self._drafter = None if draft is None else ModelDrafter(draft)

    def reply(
        self,
        prompt: Sequence[int],
        count: int,
        gamma: GammaController,
        *,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> Reply:
        """Write ``count`` tokens; without a draft every round is plain."""
        ids = list(prompt)
        runner = self.target.runner
        for _ in self.target.prefill(ids[:-1], lambda: False):
            pass
        if self._drafter is not None:
            self._drafter.reset()
            for _ in self._drafter.prefill(ids[:-1], lambda: False):
                pass
        sampler = Sampler(
            SamplingParams(temperature=temperature, seed=seed),
            vocab_size=runner.vocab_size,
            prompt_ids=ids,
            device=runner.device,
        )
        limits = Limits(
            max_new_tokens=count, context_limit=runner.context_limit, stop_ids=frozenset()
        )
        started = time.perf_counter()
        rounds: list[RoundIds] = list(
            decode(
                target=self.target,
                drafter=self._drafter,
                gamma=gamma,
                sampler=sampler,
                ids=ids,
                limits=limits,
                cancelled=lambda: False,
            )
        )
        return Reply(
            ids=tuple(ids[len(prompt) :]),
            seconds=time.perf_counter() - started,
            rounds=len(rounds),
            proposed=sum(r.proposed for r in rounds),
            accepted=sum(r.accepted for r in rounds),
            draft_ms=sum(r.draft_ms for r in rounds),
            verify_ms=sum(r.verify_ms for r in rounds),
        )


def random_ids(vocab: int, count: int, seed: int = 1) -> list[int]:
    """Return ids of a prompt that means nothing."""
    generator = torch.Generator().manual_seed(seed)
    ids: list[int] = torch.randint(vocab, (count,), generator=generator).tolist()
    return ids

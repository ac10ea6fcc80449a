"""Jobs through any transformers causal LM, in waves: the way for CUDA and for other families."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from transformers import DynamicCache

from core.training.jobs import GenerationSettings, Job
from core.training.sampling import choose, uniforms_of
from core.training.shards import Generated, Pass

_WAVES_SORTED = 8
"""Waves whose prompts are sorted together."""


def decode_eagerly(
    model: Any,
    jobs: Sequence[Job],
    ends: frozenset[int],
    settings: GenerationSettings,
    cut: Callable[[], bool],
) -> Iterator[Pass]:
    """Yield every pass with what was finished in it, mostly nothing.

    A wave of jobs, alike in prompt length, is padded on the left and decoded until the last of it
    ends; rows that ended before leave the cache. Once ``cut()`` is true what is at work ends where
    it is.
    """
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None) or 2**31
    # Waves of the whole order, so that a run that stops early still has something of everything.
    span = settings.lanes * _WAVES_SORTED
    for first in range(0, len(jobs), span):
        part = sorted(jobs[first : first + span], key=lambda job: len(job.prompt_ids))
        for start in range(0, len(part), settings.lanes):
            wave = _Wave(model, part[start : start + settings.lanes], ends, settings, limit)
            while wave.rows:
                tokens = len(wave.rows)
                yield Pass(tokens=tokens, finished=tuple(wave.step()))
                if cut():
                    yield Pass(tokens=0, finished=tuple(row.result() for row in wave.rows))
                    return


class _Wave:
    def __init__(
        self,
        model: Any,
        jobs: Sequence[Job],
        ends: frozenset[int],
        settings: GenerationSettings,
        limit: int,
    ) -> None:
        self._model = model
        self._ends = ends
        self._settings = settings
        self._limit = limit
        self._cache = DynamicCache(config=model.config)
        parameters = inspect.signature(model.forward).parameters
        # transformers renamed the argument in 5.2x; the old name warns where the new one exists.
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"
        self._last_logits = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
        longest = max(len(job.prompt_ids) for job in jobs)
        self.rows = [_Row(job, settings) for job in jobs]
        self._mask = torch.tensor(
            [[int(i >= longest - len(row.ids)) for i in range(longest)] for row in self.rows]
        )  # [rows, positions]
        self._next = torch.tensor([[0] * (longest - len(row.ids)) + row.ids for row in self.rows])

    @torch.inference_mode()
    def step(self) -> list[Generated]:
        """Feed what is new to all rows, choose their next tokens and return what ended."""
        device = self._model.device
        count = self._next.shape[1]
        positions = (self._mask.cumsum(1) - 1).clamp_(min=0)[:, -count:]
        output = self._model(
            input_ids=self._next.to(device),
            attention_mask=self._mask.to(device),
            position_ids=positions.to(device),
            use_cache=True,
            output_hidden_states=True,
            **{self._cache_argument: self._cache},
            **self._last_logits,
        )
        kept = [output.hidden_states[layer] for layer in self._settings.layers]
        states = torch.cat(kept, dim=2).to("cpu", torch.bfloat16)  # [rows, count, width]
        chosen = choose(
            output.logits[:, -1].float().cpu(),
            torch.tensor([row.job.temperature for row in self.rows]),
            torch.stack([row.uniforms[row.made] for row in self.rows]),
        )
        for row, mine, token in zip(self.rows, states, chosen.tolist(), strict=True):
            row.states.append(mine[-(len(row.ids) - row.fed) :])
            row.fed = len(row.ids)
            row.ids.append(token)
        return self._drop_ended(chosen)

    def _drop_ended(self, chosen: torch.Tensor) -> list[Generated]:
        ended = [row for row in self.rows if self._has_ended(row)]
        going = [index for index, row in enumerate(self.rows) if not self._has_ended(row)]
        if ended and going:
            self._cache.batch_select_indices(torch.tensor(going, device=self._model.device))
        self.rows = [self.rows[index] for index in going]
        self._next = chosen[going, None]
        self._mask = torch.nn.functional.pad(self._mask[going], (0, 1), value=1)
        return [row.result() for row in ended]

    def _has_ended(self, row: "_Row") -> bool:
        full = row.made >= self._settings.max_new_tokens or len(row.ids) > self._limit
        return full or row.ids[-1] in self._ends


class _Row:
    __slots__ = ("fed", "ids", "job", "states", "uniforms")

    def __init__(self, job: Job, settings: GenerationSettings) -> None:
        self.job = job
        self.ids = list(job.prompt_ids)
        self.fed = 0
        self.states: list[torch.Tensor] = []
        self.uniforms = uniforms_of(settings.seed, job.key, settings.max_new_tokens)

    @property
    def made(self) -> int:
        return len(self.ids) - len(self.job.prompt_ids)

    def result(self) -> Generated:
        """Return the finished sequence."""
        return Generated(
            key=self.job.key,
            ids=tuple(self.ids),
            prompt_length=len(self.job.prompt_ids),
            temperature=self.job.temperature,
            states=torch.cat(self.states),
        )

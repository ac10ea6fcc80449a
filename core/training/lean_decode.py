"""Jobs through a :class:`LeanBatch`: a lane that ends is refilled at once."""

import itertools
from collections.abc import Callable, Iterator, Sequence

import torch

from core.models.lean.model import LeanModel
from core.training.jobs import GenerationSettings, Job
from core.training.lean_batch import LeanBatch
from core.training.sampling import choose, uniforms_of
from core.training.shards import Generated, Pass


def decode_leanly(
    model: LeanModel,
    jobs: Sequence[Job],
    ends: frozenset[int],
    settings: GenerationSettings,
    cut: Callable[[], bool],
) -> Iterator[Pass]:
    """Yield every pass with what was finished in it, mostly nothing.

    Sequences come in the order in which they end. Neighbouring jobs with the same prompt read it
    once together. Once ``cut()`` is true what is at work ends where it is.
    """
    queue = [list(group) for _, group in itertools.groupby(jobs, lambda job: job.prompt_ids)]
    queue.reverse()
    longest = max((len(job.prompt_ids) for job in jobs), default=0)
    positions = min(longest + settings.max_new_tokens, len(model.weights.rotations))
    lanes = _Lanes(model, min(settings.lanes, len(jobs)), positions, ends, settings)
    while queue or lanes.active:
        if cut():
            yield Pass(tokens=0, finished=tuple(lanes.cut()))
            return
        if queue and (lanes.free >= len(queue[-1]) or not lanes.active):
            group = queue.pop()
            if len(group) > lanes.free:
                queue.append(group[lanes.free :])
            group = group[: lanes.free]
            yield Pass(tokens=len(group), finished=tuple(lanes.start(group)))
        else:
            yield Pass(tokens=lanes.active, finished=tuple(lanes.step()))


class _Lanes:
    """Per row of the batch, the sequence that stands in it."""

    def __init__(
        self,
        model: LeanModel,
        rows: int,
        positions: int,
        ends: frozenset[int],
        settings: GenerationSettings,
    ) -> None:
        self._batch = LeanBatch(
            model.weights,
            rows=rows,
            positions=positions,
            layers=settings.layers,
            two_terms=settings.two_terms,
        )
        self._hidden = model.weights.shape.hidden
        self._ends = ends
        self._settings = settings
        self._rows: list[_Sequence] = []
        width = len(settings.layers) * self._hidden
        positions = self._batch.positions
        self._states = torch.empty(rows, positions, width, dtype=torch.bfloat16)
        self._uniforms = torch.zeros(rows, settings.max_new_tokens)
        self._free_slots = list(range(rows))

    @property
    def active(self) -> int:
        return len(self._rows)

    @property
    def free(self) -> int:
        return self._batch.capacity - len(self._rows)

    def start(self, jobs: list[Job]) -> list[Generated]:
        """Read the one prompt of the jobs and choose first tokens; return what ends with them."""
        begun = []
        for job in jobs:
            one = _Sequence(job, self._free_slots.pop())
            self._uniforms[one.slot] = uniforms_of(
                self._settings.seed, job.key, self._settings.max_new_tokens
            )
            self._rows.append(one)
            for origin, goal in self._batch.place(len(job.prompt_ids)):
                self._rows[goal] = self._rows[origin]
                self._rows[origin] = one
            begun.append(one)
        place = {id(one): row for row, one in enumerate(self._rows)}
        rows = [place[id(one)] for one in begun]
        first = begun[0]
        states = self._batch.read(place[id(first)], first.job.prompt_ids)
        for one, row in zip(begun, rows, strict=True):
            self._batch.copy(place[id(first)], row)
            self._states[one.slot, : len(states)] = states
        return self._extend(rows, states[-1:].expand(len(rows), -1))

    def step(self) -> list[Generated]:
        """Feed every lane its newest token and choose the next; return what ends with it."""
        rows = range(len(self._rows))
        slots = torch.tensor([one.slot for one in self._rows])
        places = torch.tensor(self._batch.lengths)
        states = self._batch.step(torch.tensor([one.ids[-1] for one in self._rows]))
        self._states[slots, places] = states.to(torch.bfloat16)
        return self._extend(rows, states)

    def cut(self) -> list[Generated]:
        """Return what is in the lanes as it stands, and leave them."""
        return [self._take(one) for one in tuple(self._rows)]

    def _extend(self, rows: Sequence[int], states: torch.Tensor) -> list[Generated]:
        chosen_from = [self._rows[row] for row in rows]
        logits = self._batch.logits(states[:, -self._hidden :].contiguous())
        temperatures = torch.tensor([one.job.temperature for one in chosen_from])
        slots = torch.tensor([one.slot for one in chosen_from])
        numbers = torch.tensor([one.made for one in chosen_from])
        chosen = choose(logits, temperatures, self._uniforms[slots, numbers])
        for one, token in zip(chosen_from, chosen.tolist(), strict=True):
            one.ids.append(token)
        ended = [one for one in chosen_from if self._has_ended(one)]
        return [self._take(one) for one in ended]

    def _has_ended(self, one: "_Sequence") -> bool:
        full = len(one.ids) > self._batch.positions or one.made >= self._settings.max_new_tokens
        return full or one.ids[-1] in self._ends

    def _take(self, one: "_Sequence") -> Generated:
        row = next(row for row, other in enumerate(self._rows) if other is one)
        for origin, goal in self._batch.remove(row):
            self._rows[goal] = self._rows[origin]
        self._rows.pop()
        self._free_slots.append(one.slot)
        return Generated(
            key=one.job.key,
            ids=tuple(one.ids),
            prompt_length=len(one.job.prompt_ids),
            temperature=one.job.temperature,
            states=self._states[one.slot, : len(one.ids) - 1].clone(),
        )


class _Sequence:
    __slots__ = ("ids", "job", "slot")

    def __init__(self, job: Job, slot: int) -> None:
        self.job = job
        self.slot = slot
        self.ids = list(job.prompt_ids)

    @property
    def made(self) -> int:
        return len(self.ids) - len(self.job.prompt_ids)

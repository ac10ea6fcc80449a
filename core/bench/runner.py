"""Runs the same prompts through several configurations on one loaded engine.

Every reply starts from empty caches, so that none profits from the one before. All configurations
answer a prompt one after the other, in an order shuffled anew each time, so that whatever else
the machine does falls on all of them and a reply is paired with a plain one made next to it.
What an automatic gamma has learnt stays from reply to reply, as it does in a chat.
"""

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from core.bench.cases import Case, Suite
from core.bench.configuration import Configuration, require_available, with_baselines
from core.bench.machine import Machine, describe_machine, peak_resident_bytes, resident_bytes
from core.bench.records import BenchEnded, BenchEvent, BenchResult, Measured, Measurement, WarmUp
from core.bench.summary import summarise
from core.cancel import CancelToken
from core.errors import UserError
from core.events import Event, Failed, Finished, FinishReason, Loaded, Notice, Round
from core.requests import GenerateRequest

COLD = "cold: every reply reads its whole prompt"
MAX_REPEATS = 1000
_WARM_UP_TOKENS = 32


class BenchEngine(Protocol):
    """The part of :class:`core.engine.Engine` that a benchmark uses."""

    def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]:
        """Yield the events of one reply."""

    def clear_caches(self) -> None:
        """Forget every prompt that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run. Plain configurations that others are measured against are added.

    ``seed`` decides the order and, above temperature 0, the replies: repeat r draws with seed + r.

    Raises UserError for a number out of range, or nothing to run.
    """

    cases: tuple[Case, ...]
    configurations: tuple[Configuration, ...]
    repeats: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.cases or not self.configurations:
            raise UserError("There is nothing to run.", "Name a suite and a configuration.")
        if not 1 <= self.repeats <= MAX_REPEATS:
            raise UserError(
                f"repeats is {self.repeats}.",
                f"It must be a whole number from 1 to {MAX_REPEATS}.",
            )
        if not 0 <= self.seed < 2**32:
            raise UserError(
                f"seed is {self.seed}.", f"It must be a whole number from 0 to {2**32 - 1}."
            )
        object.__setattr__(self, "configurations", with_baselines(self.configurations))

    @property
    def suites(self) -> tuple[Suite, ...]:
        """The suites in the order of the prompts."""
        return tuple(dict.fromkeys(case.suite for case in self.cases))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One reply to be measured."""

    repeat: int
    case: Case
    configuration: Configuration


def schedule(plan: Plan) -> tuple[Step, ...]:
    """Return every reply of the plan in the order of its seed.

    The prompts of a repeat are shuffled, and the configurations anew for each prompt.
    """
    order = random.Random(plan.seed)
    steps: list[Step] = []
    for repeat in range(plan.repeats):
        for case in order.sample(plan.cases, len(plan.cases)):
            steps += [
                Step(repeat=repeat, case=case, configuration=configuration)
                for configuration in order.sample(plan.configurations, len(plan.configurations))
            ]
    return tuple(steps)


def run_bench(
    engine: BenchEngine,
    loaded: Loaded,
    plan: Plan,
    cancel: CancelToken,
    *,
    heads: Mapping[str, tuple[BenchEngine, Loaded]] | None = None,
    machine: Callable[[], Machine] = describe_machine,
) -> Iterator[BenchEvent]:
    """Yield the progress of a benchmark; the last event is its only BenchEnded.

    ``loaded`` is what ``engine`` holds; ``heads`` has for each further head that the plan names the
    same pair loaded with it, and what that holds. Cancelling takes at most one round or prefill
    chunk; what was measured before is in the result, and so it is where a reply fails.

    Raises UserError for a configuration that the loaded pair cannot run, before anything runs.
    """
    engines = {"": (engine, loaded), **(heads or {})}
    for configuration in plan.configurations:
        _, held = engines[configuration.head]
        require_available(configuration, held.drafters)
    where = machine()
    steps = schedule(plan)
    measured: list[Measurement] = []

    def ended(failure: Failed | None = None) -> BenchEnded:
        complete = failure is None and len(measured) == len(steps)
        holds = {name: held for name, (_, held) in engines.items()}
        return BenchEnded(result=_result(plan, holds, where, measured, complete), failure=failure)

    def made(
        step: Step, max_new_tokens: int | None = None, order: int = 0
    ) -> Measurement | Failed | None:
        chosen, _ = engines[step.configuration.head]
        return measure(chosen, step, plan.seed, cancel, order=order, max_new_tokens=max_new_tokens)

    for index, configuration in enumerate(plan.configurations, start=1):
        yield WarmUp(index=index, total=len(plan.configurations), configuration=configuration.name)
        step = Step(repeat=0, case=plan.cases[0], configuration=configuration)
        outcome = made(step, _WARM_UP_TOKENS)
        if outcome is None or isinstance(outcome, Failed):
            yield ended(outcome)
            return
    for index, step in enumerate(steps):
        outcome = made(step, order=index)
        if outcome is None or isinstance(outcome, Failed):
            yield ended(outcome)
            return
        measured.append(outcome)
        yield Measured(index=index + 1, total=len(steps), measurement=outcome)
    yield ended()


def measure(
    engine: BenchEngine,
    step: Step,
    seed: int,
    cancel: CancelToken,
    *,
    order: int = 0,
    max_new_tokens: int | None = None,
) -> Measurement | Failed | None:
    """Make one reply from empty caches and return its numbers; None when it was cancelled.

    ``max_new_tokens`` caps the case's own length.
    """
    length = min(max_new_tokens or step.case.max_new_tokens, step.case.max_new_tokens)
    request = GenerateRequest(
        messages=(("user", step.case.text),),
        sampling=step.configuration.sampling(seed + step.repeat),
        speculation=step.configuration.speculation(),
        max_new_tokens=length,
    )
    if cancel.cancelled:
        return None
    engine.clear_caches()
    positions = _Positions()
    notices: list[str] = []
    for event in engine.generate(request, cancel):
        if isinstance(event, Round):
            positions.add(event)
        elif isinstance(event, Notice):
            notices.append(event.message)
        elif isinstance(event, Failed):
            return event
        elif isinstance(event, Finished) and event.reason != FinishReason.CANCELLED:
            return _measurement(step, order, event, positions, tuple(notices))
    return None


class _Positions:
    """Counts rounds by draft position."""

    def __init__(self) -> None:
        self.proposed: list[int] = []
        self.accepted: list[int] = []

    def add(self, round_: Round) -> None:
        """Count one round."""
        while len(self.proposed) < round_.proposed:
            self.proposed.append(0)
            self.accepted.append(0)
        for position in range(round_.proposed):
            self.proposed[position] += 1
        for position in range(round_.accepted):
            self.accepted[position] += 1


def _measurement(
    step: Step, order: int, finished: Finished, positions: _Positions, notices: tuple[str, ...]
) -> Measurement:
    metrics = finished.metrics
    return Measurement(
        order=order,
        repeat=step.repeat,
        suite=step.case.suite,
        case=step.case.name,
        configuration=step.configuration.name,
        reason=finished.reason,
        digest=hashlib.sha256(finished.text.encode()).hexdigest()[:16],
        prompt_tokens=metrics.prompt_tokens,
        tokens=metrics.tokens,
        rounds=metrics.rounds,
        proposed=metrics.proposed,
        accepted=metrics.accepted,
        proposed_at=tuple(positions.proposed),
        accepted_at=tuple(positions.accepted),
        tokens_per_second=metrics.tokens_per_second,
        time_to_first_token_ms=metrics.time_to_first_token_ms,
        decode_ms=metrics.decode_ms,
        draft_ms=metrics.draft_ms,
        verify_ms=metrics.verify_ms,
        resident_bytes=resident_bytes(),
        notices=notices,
    )


def _result(
    plan: Plan,
    holds: Mapping[str, Loaded],
    machine: Machine,
    measured: Sequence[Measurement],
    complete: bool,
) -> BenchResult:
    loaded = holds[""]
    notices = [notice for held in holds.values() for notice in held.notices]
    notices += [notice for one in measured for notice in one.notices]
    return BenchResult(
        complete=complete,
        target=loaded.target,
        draft=loaded.draft,
        device=loaded.device,
        precision=loaded.precision,
        machine=machine,
        seed=plan.seed,
        repeats=plan.repeats,
        caches=COLD,
        # The system notes its peak now and then, so that it can lag behind what was just read.
        peak_bytes=max([peak_resident_bytes(), *(one.resident_bytes for one in measured)]),
        summaries=summarise(measured, plan.configurations, plan.suites),
        measurements=tuple(measured),
        heads={name: held.head for name, held in holds.items() if held.head},
        notices=tuple(dict.fromkeys(notices)),
    )

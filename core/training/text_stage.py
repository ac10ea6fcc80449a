"""The stage that generates text: budgets, progress and what is there already."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core.errors import UserError
from core.hub.files import explain_write_error, read_json, write_json
from core.models.loader import LoadedModel
from core.prompt import stop_ids
from core.training.events import Kept, Progress, Stage
from core.training.generate import GenerationProgress, generate
from core.training.jobs import GenerationSettings, Job, make_jobs
from core.training.places import Places
from core.training.prompts import Prompt
from core.training.report import Report
from core.training.request import TrainRequest
from core.training.shards import MANIFEST, ShardStore, holds_whole_text
from core.training.sizes import DEFAULT_TOKENS

_ENOUGH = "enough.json"
"""Says in a folder of text how many minutes it had, so that it is not made longer for as many."""
_TEXT_SHARE = 1 / 2
"""Of all minutes, the share that the loading and all text may take."""
_HELD_OUT_SHARE = 1 / 6
_LEAST_TOKENS = 256
"""Tokens of replies that are made however little time there is: fewer say nothing."""
_FEWEST_HELD_OUT = 8
_HELD_OUT_A_MINUTE = 6
"""Prompts to measure on: few minutes make no text for more, and leave less to measure."""


def reply_ends(host: LoadedModel) -> frozenset[int]:
    """Return the ids that end a reply of the model."""
    generation = getattr(host.model, "generation_config", None)
    return stop_ids(host.tokenizer, generation, host.model.config)


def make_text(
    request: TrainRequest,
    host: LoadedModel,
    settings: GenerationSettings,
    prompts: tuple[Sequence[Prompt], Sequence[Prompt]],
    places: Places,
    report: Report,
    *,
    begun: bool = False,
) -> None:
    """See that there is text to train on and, of greedy replies, text to measure on.

    ``prompts`` are those of either kind. Where a training was ``begun`` on whole text, that is what
    it goes on with, however much more there is time for. Raises Cancelled with what was made kept,
    and UserError.
    """
    train, held_out = prompts
    if begun and holds_whole_text(places.text) and holds_whole_text(places.held_out):
        return  # more text would have another vocabulary
    minutes = request.minutes
    report.begin(Stage.GENERATE, "held-out prompts", resumed=_has_some(places.held_out))
    precise = replace(settings, two_terms=None)
    jobs = make_jobs(host.tokenizer, held_out, (0.0,), settings.seed)
    until_s = None
    if minutes is not None:  # however the amount of text is given
        jobs = jobs[: max(_FEWEST_HELD_OUT, round(minutes * _HELD_OUT_A_MINUTE))]
        until_s = _until(report, minutes, _HELD_OUT_SHARE)
    if not _generate(host, jobs, (0.0,), precise, places.held_out, report, until_s=until_s):
        raise _too_long(settings)
    report.begin(Stage.GENERATE, "training prompts", resumed=_has_some(places.text))
    until_s = None
    tokens = request.tokens
    if tokens is None and minutes is None:
        tokens = DEFAULT_TOKENS
    if tokens is None and minutes is not None:
        if _had_minutes(places.text) >= minutes and holds_whole_text(places.text):
            return
        until_s = _until(report, minutes, _TEXT_SHARE)
    temperatures = request.temperatures
    jobs = make_jobs(host.tokenizer, train, temperatures, settings.seed)
    if not _generate(
        host, jobs, temperatures, settings, places.text, report, tokens, until_s=until_s
    ):
        raise _too_long(settings)
    if until_s is not None:
        try:
            write_json(places.text / _ENOUGH, {"minutes": minutes})
        except OSError as error:
            raise explain_write_error(error, places.text) from error


def _until(report: Report, minutes: float, share: float) -> float:
    """Return when that share of all minutes is over; half of it is left at the least."""
    share_s = minutes * 60 * share
    return max(report.started_s + share_s, report.clock() + share_s / 2)


def _has_some(folder: Path) -> bool:
    return bool((read_json(folder / MANIFEST) or {}).get("shards"))


def _had_minutes(folder: Path) -> float:
    minutes = (read_json(folder / _ENOUGH) or {}).get("minutes")
    if isinstance(minutes, bool) or not isinstance(minutes, int | float):
        return 0.0
    return minutes


def _too_long(settings: GenerationSettings) -> UserError:
    return UserError(
        f"Every prompt is longer than {settings.max_prompt_tokens} tokens.", "Give shorter ones."
    )


def _generate(
    host: LoadedModel,
    jobs: Sequence[Job],
    temperatures: tuple[float, ...],
    settings: GenerationSettings,
    folder: Path,
    report: Report,
    max_tokens: int | None = None,
    *,
    until_s: float | None = None,
) -> int:
    """Return how many tokens of replies there are now."""
    store = ShardStore(folder, {**settings.fixed(), "temperatures": list(temperatures)})
    if max_tokens is not None and store.tokens >= max_tokens:
        return store.tokens
    before = made = store.tokens
    started_s = report.clock()

    def on_progress(progress: GenerationProgress) -> None:
        nonlocal made
        made = progress.tokens
        if progress.flushed:
            report.emit(Kept(kind="text", path=str(folder), tokens=store.tokens))
        speed = (progress.tokens - before) / max(1e-6, report.clock() - started_s)
        left_s, total = progress.seconds_left, progress.total_tokens
        if until_s is not None:
            time_s = max(0.0, until_s - report.clock())
            left_s = time_s if left_s is None else min(left_s, time_s)
            total = min(total, progress.tokens + round(speed * time_s))
        report.progress(
            Progress(
                stage=Stage.GENERATE,
                done=progress.tokens,
                total=total,
                seconds_left=left_s,
                tokens_per_second=speed,
            )
        )

    generate(
        host.model,
        jobs,
        ends=reply_ends(host),
        settings=settings,
        store=store,
        on_progress=on_progress,
        stop=report.stopped,
        cut=lambda: until_s is not None and report.clock() > until_s and made >= _LEAST_TOKENS,
        max_tokens=max_tokens,
    )
    report.emit(Kept(kind="text", path=str(folder), tokens=store.tokens))
    report.check()
    return store.tokens

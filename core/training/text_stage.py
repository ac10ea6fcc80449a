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
from core.training.jobs import GenerationSettings, make_jobs
from core.training.places import Places
from core.training.prompts import Prompt
from core.training.report import Report
from core.training.request import TrainRequest
from core.training.shards import ShardStore
from core.training.sizes import DEFAULT_TOKENS

_ENOUGH = "enough.json"
"""Says in a folder of text how many minutes it had, so that it is not made longer for as many."""


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
) -> None:
    """See that there is text to train on and, of greedy replies, text to measure on.

    ``prompts`` are those of either kind. Raises Cancelled with what was made kept, and UserError.
    """
    train, held_out = prompts
    report.begin(Stage.GENERATE, "held-out prompts")
    precise = replace(settings, two_terms=None)
    if not _generate(host, held_out, (0.0,), precise, places.held_out, report):
        raise _too_long(settings)
    report.begin(Stage.GENERATE, "training prompts")
    tokens, until_s = request.tokens, None
    if tokens is None and request.minutes is not None:
        if _had_minutes(places.text) >= request.minutes:
            return
        until_s = report.started_s + request.minutes * 60 / 2
    elif tokens is None:
        tokens = DEFAULT_TOKENS
    made = _generate(
        host, train, request.temperatures, settings, places.text, report, tokens, until_s=until_s
    )
    if not made and until_s is not None:
        raise UserError(
            f"No reply was finished in half of {request.minutes:g} minutes.",
            "Allow more minutes, or name a number of tokens.",
        )
    if not made:
        raise _too_long(settings)
    if until_s is not None:
        try:
            write_json(places.text / _ENOUGH, {"minutes": request.minutes})
        except OSError as error:
            raise explain_write_error(error, places.text) from error


def _had_minutes(folder: Path) -> float:
    minutes = (read_json(folder / _ENOUGH) or {}).get("minutes")
    return minutes if isinstance(minutes, int | float) else 0.0


def _too_long(settings: GenerationSettings) -> UserError:
    return UserError(
        f"Every prompt is longer than {settings.max_prompt_tokens} tokens.", "Give shorter ones."
    )


def _generate(
    host: LoadedModel,
    prompts: Sequence[Prompt],
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
    before = store.tokens
    started_s = report.clock()

    def on_progress(progress: GenerationProgress) -> None:
        if progress.flushed:
            report.emit(Kept(kind="text", path=str(folder), tokens=store.tokens))
        left_s = progress.seconds_left
        if until_s is not None and left_s is not None:
            left_s = min(left_s, max(0.0, until_s - report.clock()))
        spent_s = max(1e-6, report.clock() - started_s)
        report.progress(
            Progress(
                stage=Stage.GENERATE,
                done=progress.tokens,
                total=progress.total_tokens,
                seconds_left=left_s,
                tokens_per_second=(progress.tokens - before) / spent_s,
            )
        )

    generate(
        host.model,
        make_jobs(host.tokenizer, prompts, temperatures, settings.seed),
        ends=reply_ends(host),
        settings=settings,
        store=store,
        on_progress=on_progress,
        stop=lambda: report.stopped() or (until_s is not None and report.clock() > until_s),
        max_tokens=max_tokens,
    )
    report.emit(Kept(kind="text", path=str(folder), tokens=store.tokens))
    report.check()
    return store.tokens

"""A training run from prompts to a saved head: stages that are done already are passed over."""

import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.cancel import CancelToken
from core.errors import Cancelled
from core.events import LoadProgress
from core.hub.files import check_disk, read_json, write_json
from core.models.loader import LoadedModel, load_pair
from core.models.mtp.card import HeadCard, HeadKind, HeadShape
from core.models.mtp.files import save_head
from core.models.mtp.host import describe_host
from core.models.mtp.modules import make_head
from core.models.runner import Runner
from core.models.runners import make_runner
from core.prompt import stop_ids
from core.training.acceptance import Acceptance, measure
from core.training.checkpoint import remove_checkpoint, restore_checkpoint, save_checkpoint
from core.training.data import TextData, coverage, frequent_tokens
from core.training.events import (
    DiskUse,
    Evaluated,
    Finished,
    Kept,
    Notice,
    Progress,
    Stage,
    StageStarted,
    Stopped,
    TrainingEvent,
)
from core.training.generate import GenerationProgress, generate
from core.training.jobs import GenerationSettings, check_layers, make_jobs
from core.training.meter import Meter
from core.training.mtp import Trainer, TrainSettings, step_weights
from core.training.prompts import Prompt
from core.training.request import (
    DEFAULT_TOKENS,
    HELD_OUT_PROMPTS,
    TrainRequest,
    prompts_hash,
    read_both,
    short_hash,
    thirds,
)
from core.training.shards import ShardStore

CHECKPOINT_EVERY_S = 60.0
_EVALUATIONS = 12
"""How often a training is measured on the way."""
_EVALUATED_SEQUENCES = 32
"""Held-out replies that are looked at on the way; all of them are at the end."""
_PROGRESS_EVERY_S = 0.5
_REPLY_RATE = 300
"""Tokens a second that generation is taken to make before it began."""
_PROMPT_SHARE = 1.8
"""Tokens kept for one of a reply: prompts are kept, too."""

Emit = Callable[[TrainingEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where a run keeps what it makes."""

    text: Path
    held_out: Path
    checkpoint: Path
    head: Path


def run_training(request: TrainRequest, emit: Emit, stopped: Callable[[], bool]) -> Path | None:
    """Make the head of a request and return its folder, or None where ``stopped()`` became true.

    Whatever was made is kept, and the same request goes on from it; a training that was begun is
    gone on with where ``request.resume``. ``emit`` hears everything, Finished or Stopped last.
    Raises UserError.
    """
    return _Run(request, emit, stopped).run()


class _Run:
    def __init__(self, request: TrainRequest, emit: Emit, stopped: Callable[[], bool]) -> None:
        self._request = request
        self._emit = emit
        self._stopped = stopped
        self._started_s = time.monotonic()
        self._stage = Stage.LOAD
        self._progress_due_s = 0.0

    def run(self) -> Path | None:
        try:
            return self._run()
        except Cancelled:
            self._emit(Stopped(stage=self._stage))
            return None

    def _run(self) -> Path:
        request = self._request
        train, held_out = read_both(request)  # bad data is refused before minutes go into loading
        self._begin(Stage.LOAD, Path(request.load.target).name)
        host = self._load()
        runner = make_runner(host.model)
        described = describe_host(runner, name=host.name)
        wanted = request.layers or thirds(runner.layers)
        if request.kind == HeadKind.PARALLEL:
            wanted = (runner.layers,)
        layers = check_layers(wanted, runner.layers)
        settings = GenerationSettings(
            layers=layers,
            max_new_tokens=request.max_new_tokens,
            lanes=request.lanes,
            seed=request.seed,
            two_terms=False if request.fast else None,
        )
        places = self._places(described.fingerprint, host.name, settings, train, held_out)
        self._state_disk_use(runner, len(layers), places)
        ends = self._ends(host)
        self._begin(Stage.GENERATE, "held-out prompts")
        greedy = replace(settings, two_terms=None)
        self._generate(host, held_out, (0.0,), greedy, places.held_out, None)
        self._begin(Stage.GENERATE, "training prompts")
        self._generate_training(host, train, settings, places)
        with TextData(places.text) as data, TextData(places.held_out) as measured:
            vocabulary = frequent_tokens(data, request.vocabulary, sorted(ends))
            share = coverage(measured, vocabulary)
            self._emit(
                Notice(
                    kind="vocabulary",
                    message=f"The head drafts the {len(vocabulary):,} most frequent of "
                    f"{runner.width:,} tokens, {share:.1%} of the held-out text.",
                )
            )
            card = HeadCard(
                kind=request.kind,
                host=described,
                shape=_shape(request.kind, host.model.config.get_text_config()),
                state_layers=layers,
                vocabulary=vocabulary,
                depth=request.depth,
                seed=request.seed,
                licence="the licence of its host",
                command=request.command,
                data=self._describe(data, train),
            )
            trainer = self._trainer(card, data, runner)
            loss = self._train(trainer, measured, places)
            self._begin(Stage.EVALUATE, "held-out prompts")
            found = self._evaluate(trainer, measured, loss, len(measured))
            self._begin(Stage.SAVE, str(places.head))
            weights = "/".join(f"{weight:g}" for weight in trainer.settings.weights)
            card = replace(
                card,
                acceptance=found.by_step,
                acceptance_length=found.length,
                losses=f"{request.loss} by step {weights}, {loss:.3f} at the end of "
                f"{trainer.step} steps",
            )
            with trainer.averaged():
                save_head(trainer.head, places.head, card=card)
        self._emit(
            Finished(
                path=str(places.head),
                acceptance=found.by_step,
                length=found.length,
                seconds=time.monotonic() - self._started_s,
            )
        )
        return places.head

    def _begin(self, stage: Stage, detail: str, *, resumed: bool = False) -> None:
        self._check()
        self._stage = stage
        self._emit(StageStarted(stage=stage, detail=detail, resumed=resumed))

    def _check(self) -> None:
        if self._stopped():
            raise Cancelled

    def _load(self) -> LoadedModel:
        def on_progress(progress: LoadProgress) -> None:
            self._check()
            done = round(100 * (progress.fraction or 0.0))
            self._emit(Progress(stage=Stage.LOAD, done=done, total=100, unit="percent"))

        pair = load_pair(
            replace(self._request.load, draft=None),
            prepared_dir=self._request.home / "prepared",
            on_progress=on_progress,
            cancel=CancelToken(),
        )
        for message in pair.notices:
            self._emit(Notice(kind="load", message=message))
        return pair.target

    def _ends(self, host: LoadedModel) -> frozenset[int]:
        generation = getattr(host.model, "generation_config", None)
        return stop_ids(host.tokenizer, generation, host.model.config)

    def _places(
        self,
        fingerprint: str,
        name: str,
        settings: GenerationSettings,
        train: list[Prompt],
        held_out: list[Prompt],
    ) -> _Places:
        request = self._request
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:60]
        base = request.home / "training" / f"{slug}-{fingerprint[:8]}"
        made = settings.fixed()
        text = short_hash(made, list(request.temperatures), prompts_hash(train))
        chosen = short_hash(text, request.kind, request.vocabulary, self._train_settings().fixed())
        return _Places(
            text=base / f"text-{text}",
            held_out=base / f"held-out-{short_hash(made, prompts_hash(held_out))}",
            checkpoint=base / f"{request.kind}-{chosen}",
            head=request.out or request.home / "heads" / f"{slug}-{request.kind}",
        )

    def _state_disk_use(self, runner: Runner, layers: int, places: _Places) -> None:
        request = self._request
        tokens = request.tokens or DEFAULT_TOKENS
        if request.minutes is not None and request.tokens is None:
            tokens = round(request.minutes * 60 / 2 * _REPLY_RATE)
        tokens += HELD_OUT_PROMPTS * request.max_new_tokens // 2
        text_bytes = round(tokens * _PROMPT_SHARE) * (2 * layers * runner.hidden + 4)
        here = sum(_size(folder) for folder in (places.text, places.held_out))
        # Weights, their mean and two moments, and the next of all before the last one goes.
        kept_bytes = 2 * 4 * 4 * 20 * runner.hidden**2
        needed = max(0, text_bytes - here) + kept_bytes
        folder = places.text.parent
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        self._emit(DiskUse(folder=str(folder), needed_bytes=needed, free_bytes=free))
        check_disk(folder, needed, "train this head")

    def _generate_training(
        self,
        host: LoadedModel,
        train: list[Prompt],
        settings: GenerationSettings,
        places: _Places,
    ) -> None:
        request = self._request
        tokens, until_s = request.tokens, None
        if request.minutes is not None and tokens is None:
            marker = places.text / "enough.json"
            if read_json(marker) is not None:
                return
            until_s = self._started_s + request.minutes * 60 / 2
        elif tokens is None:
            tokens = DEFAULT_TOKENS
        self._generate(
            host, train, request.temperatures, settings, places.text, tokens, until_s=until_s
        )
        if until_s is not None:
            write_json(places.text / "enough.json", {"minutes": request.minutes})

    def _generate(
        self,
        host: LoadedModel,
        prompts: list[Prompt],
        temperatures: tuple[float, ...],
        settings: GenerationSettings,
        folder: Path,
        max_tokens: int | None,
        *,
        until_s: float | None = None,
    ) -> None:
        jobs = make_jobs(host.tokenizer, prompts, temperatures, settings.seed)
        store = ShardStore(folder, {**settings.fixed(), "temperatures": list(temperatures)})
        before = store.tokens
        started_s = time.monotonic()

        def on_progress(progress: GenerationProgress) -> None:
            if progress.flushed:
                self._emit(Kept(kind="text", path=str(folder), tokens=store.tokens))
            spent_s = time.monotonic() - started_s
            left_s = progress.seconds_left
            if until_s is not None and left_s is not None:
                left_s = min(left_s, max(0.0, until_s - time.monotonic()))
            self._progress(
                Progress(
                    stage=Stage.GENERATE,
                    done=progress.tokens,
                    total=progress.total_tokens,
                    seconds_left=left_s,
                    tokens_per_second=(progress.tokens - before) / max(1e-6, spent_s),
                )
            )

        def over() -> bool:
            return self._stopped() or (until_s is not None and time.monotonic() > until_s)

        if max_tokens is None or store.tokens < max_tokens:
            generate(
                host.model,
                jobs,
                ends=self._ends(host),
                settings=settings,
                store=store,
                on_progress=on_progress,
                stop=over,
                max_tokens=max_tokens,
            )
            self._emit(Kept(kind="text", path=str(folder), tokens=store.tokens))
        self._check()

    def _train_settings(self) -> TrainSettings:
        request = self._request
        return TrainSettings(
            weights=request.weights or step_weights(request.depth),
            epochs=request.epochs,
            learning_rate=request.learning_rate,
            loss=request.loss,
            noise=request.noise,
            batch_tokens=request.batch_tokens,
            seed=request.seed,
        )

    def _trainer(self, card: HeadCard, data: TextData, runner: Runner) -> Trainer:
        return Trainer(
            make_head(card).to(runner.device),
            data,
            embed=runner.embed,
            unembedding=runner.unembedding(card.vocabulary),
            settings=self._train_settings(),
        )

    def _train(self, trainer: Trainer, measured: TextData, places: _Places) -> float:
        fixed: dict[str, Any] = {
            **trainer.settings.fixed(),
            "vocabulary": short_hash(list(trainer.head.card.vocabulary)),
        }
        resumed = False
        if self._request.resume:
            resumed = restore_checkpoint(places.checkpoint, trainer, fixed)
        else:
            remove_checkpoint(places.checkpoint)
        self._begin(Stage.TRAIN, f"{trainer.total_steps} steps", resumed=resumed)
        meter = Meter(trainer)
        kept_s = time.monotonic()
        every = max(1, trainer.total_steps // _EVALUATIONS)
        while not trainer.done:
            if self._stopped():
                self._keep(trainer, places, fixed)
                raise Cancelled
            loss, by_step, tokens = trainer.train_step()
            meter.after(loss, by_step, tokens)
            if not resumed and trainer.step == 20 and self._request.minutes is not None:
                self._fit(trainer, meter)
                every = max(1, trainer.total_steps // _EVALUATIONS)
            self._progress(meter.progress())
            if trainer.step % every == 0 and not trainer.done:
                self._evaluate(trainer, measured, meter.loss, _EVALUATED_SEQUENCES)
            if time.monotonic() - kept_s > CHECKPOINT_EVERY_S:
                self._keep(trainer, places, fixed)
                kept_s = time.monotonic()
        self._keep(trainer, places, fixed)
        return meter.loss

    def _fit(self, trainer: Trainer, meter: Meter) -> None:
        """Take as many steps as the minutes allow, decided once."""
        minutes = self._request.minutes or 0.0
        left_s = self._started_s + minutes * 60 - time.monotonic()
        fits = 20 + int(max(0.0, left_s) / meter.seconds_a_step)
        trainer.total_steps = max(21, min(trainer.total_steps, fits))

    def _keep(self, trainer: Trainer, places: _Places, fixed: dict[str, Any]) -> None:
        path = save_checkpoint(places.checkpoint, trainer, fixed)
        self._emit(Kept(kind="checkpoint", path=str(path), step=trainer.step))

    def _evaluate(
        self, trainer: Trainer, measured: TextData, loss: float, sequences: int
    ) -> Acceptance:
        batch_tokens = trainer.settings.batch_tokens
        # Every so many of the batches, which are sorted by length.
        plan = measured.plan(batch_tokens, None)
        share = max(1, round(len(measured) / max(1, sequences)))
        batches = (measured.batch(part) for part in plan[::share])
        with trainer.averaged():
            found = measure(
                trainer.head, trainer.outputs, batches, trainer.teacher, self._request.depth
            )
        self._emit(
            Evaluated(
                step=trainer.step,
                acceptance=found.by_step,
                length=found.length,
                loss=loss,
                tokens=found.tokens,
            )
        )
        return found

    def _progress(self, progress: Progress) -> None:
        if time.monotonic() >= self._progress_due_s:
            self._progress_due_s = time.monotonic() + _PROGRESS_EVERY_S
            self._emit(progress)

    def _describe(self, data: TextData, prompts: list[Prompt]) -> str:
        temperatures = ", ".join(f"{value:g}" for value in sorted(set(data.temperatures)))
        own = f", {len(self._request.data)} files of own prompts" if self._request.data else ""
        return (
            f"{len(data):,} replies of the host's own with {data.reply_tokens:,} tokens, at "
            f"temperatures {temperatures}, to {len(prompts):,} prompts{own}"
        )


def _shape(kind: str, config: Any) -> HeadShape:
    hidden: int = config.hidden_size
    if kind == HeadKind.PARALLEL:
        return HeadShape(intermediate=hidden)
    heads: int = config.num_attention_heads
    return HeadShape(
        intermediate=min(config.intermediate_size, 3 * hidden),
        heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or hidden // heads,
    )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*")) if folder.is_dir() else 0

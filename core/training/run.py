"""A training run from prompts to a saved head: stages that are done already are passed over."""

import gc
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.hub.heads import SHIPPED_HEADS, heads_for, length_at
from core.models.loader import LoadedModel
from core.models.mtp.card import HeadCard, HeadHost, HeadKind, HeadShape
from core.models.mtp.files import save_head
from core.models.mtp.host import describe_host
from core.models.mtp.modules import make_head
from core.models.runner import Runner
from core.models.runners import make_runner
from core.requests import LoadRequest
from core.training.acceptance import Acceptance, measure
from core.training.author import make_author_text, read_again
from core.training.checkpoint import has_checkpoint
from core.training.data import Batch, TextData, coverage, frequent_tokens, layers_of
from core.training.events import Finished, Notice, Stage
from core.training.jobs import GenerationSettings, check_layers
from core.training.loading import load_alone
from core.training.loop import Loop
from core.training.mtp import Trainer
from core.training.outcome import outcome_of
from core.training.places import Places, check_place, disk_use, find_places, held, place_for_head
from core.training.prompts import Prompt
from core.training.report import Emit, Report
from core.training.request import TrainRequest, read_both, short_hash
from core.training.sizes import thirds
from core.training.text_stage import make_text, reply_ends

Prompts = tuple[list[Prompt], list[Prompt]]
"""To train on, and to measure on."""


def run_training(request: TrainRequest, emit: Emit, stopped: Callable[[], bool]) -> Path | None:
    """Make the head of a request and return its folder, or None where ``stopped()`` became true.

    Whatever was made is kept, and the same request goes on from it; where ``request.anew`` the
    training itself begins from nothing. ``emit`` hears everything, Finished or Stopped last.
    Raises UserError.
    """
    return outcome_of(lambda report: _run(request, report), emit, stopped)


def _run(request: TrainRequest, report: Report) -> Path:
    if request.out is not None:
        check_place(request.out)
    if request.author is not None and request.text is None:
        return _run_on_author(request, request.author, report)
    # Bad data is refused before minutes go into loading.
    prompts = ([], []) if request.text is not None else read_both(request)
    host = load_alone(request.load, request.home, report)
    return _make_head(request, host, prompts, report)


def _run_on_author(request: TrainRequest, author: LoadRequest, report: Report) -> Path:
    """Make a head for a draft: from its target's text, which it reads again for its own states."""
    theirs = replace(request, load=author, author=None, kind=HeadKind.PARALLEL, layers=None)
    # The target's last states stay beside those of the draft, which is no wider.
    text = make_author_text(theirs, report, states=1 + len(request.layers or thirds(3)))
    gc.collect()  # the draft takes the target's place in memory
    host = load_alone(request.load, request.home, report)
    text.check_reader(host)
    runner = make_runner(host.model)
    layers = _layers(request, runner)
    tail = short_hash(describe_host(runner).fingerprint, list(layers))
    with held(text.places):
        mine, measured = (
            read_again(folder, _beside(folder, tail), runner, layers, report)
            for folder in (text.places.text, text.places.held_out)
        )
    return _make_head(replace(request, text=(mine, measured)), host, ([], []), report)


def _beside(folder: Path, tail: str) -> Path:
    return folder.with_name(f"{folder.name}-read-{tail}")


def _make_head(request: TrainRequest, host: LoadedModel, prompts: Prompts, report: Report) -> Path:
    runner = make_runner(host.model)
    described = describe_host(runner, name=host.name)
    settings = GenerationSettings(
        layers=_layers(request, runner) if request.text is None else layers_of(request.text[0]),
        max_new_tokens=request.max_new_tokens,
        lanes=request.lanes,
        seed=request.seed,
        two_terms=False if request.fast else None,
    )
    places = find_places(request, described, settings, *prompts)
    states = len(settings.layers)
    report.emit(disk_use(request, described, states, places, prompts=len(prompts[0])))
    with held(places):
        if request.text is None:
            begun = not request.anew and has_checkpoint(places.checkpoint)
            make_text(request, host, settings, prompts, places, report, begun=begun)
        with TextData(places.text) as data, TextData(places.held_out) as measured:
            for text in (data, measured):
                text.check_states(states * described.hidden)
            card = _card(request, host, described, settings, data)
            _say_coverage(card, measured, report)
            trainer = Trainer(
                make_head(card).to(runner.device),
                data,
                embed=runner.embed,
                unembedding=runner.unembedding(card.vocabulary),
                settings=request.train_settings(),
            )
            return _train(request, card, trainer, measured, places, report)


def _train(
    request: TrainRequest,
    card: HeadCard,
    trainer: Trainer,
    measured: TextData,
    places: Places,
    report: Report,
) -> Path:
    def measure_head(batches: Iterable[Batch]) -> Acceptance:
        with trainer.averaged():
            return measure(trainer.head, trainer.outputs, batches, trainer.teacher, request.depth)

    loop = Loop(
        trainer=trainer,
        measure=measure_head,
        measured=measured,
        batch_tokens=request.batch_tokens,
        folder=places.checkpoint,
        fixed={**trainer.settings.fixed(), "vocabulary": short_hash(list(card.vocabulary))},
        report=report,
    )
    loss = loop.train(anew=request.anew, minutes=request.minutes)
    report.begin(Stage.EVALUATE, "held-out prompts")
    found = loop.evaluate(loss)
    folder = place_for_head(places.head)
    report.begin(Stage.SAVE, str(folder))
    weights = "/".join(f"{weight:g}" for weight in trainer.settings.weights)
    card = replace(
        card,
        acceptance=found.by_step,
        acceptance_length=found.length,
        losses=f"{request.loss}, steps weighted {weights}: {loss:.3f} after {trainer.step} steps",
    )
    with trainer.averaged():
        save_head(trainer.head, folder, card=card, packed=request.packed)
    loop.forget()
    _say_better(card, request, report)
    report.emit(
        Finished(
            path=str(folder),
            acceptance=found.by_step,
            length=found.length,
            seconds=report.seconds,
        )
    )
    return folder


def _say_better(card: HeadCard, request: TrainRequest, report: Report) -> None:
    """Say which head was measured better and so drafts before this one, where there is one."""
    found = heads_for(card.host.fingerprint, (request.home / "heads", SHIPPED_HEADS))
    length = length_at(found[0]) if found else 0.0
    if length > (card.acceptance_length or 0.0):
        message = (
            f"The head {found[0].name} was measured better, {length:.2f} tokens a round, and "
            "drafts unless this one is chosen."
        )
        report.emit(Notice(kind="better-head", message=message))


def _layers(request: TrainRequest, runner: Runner) -> tuple[int, ...]:
    """Return after which layers states are kept. Raises UserError for what is not there."""
    if request.kind == HeadKind.PARALLEL:
        return (runner.layers,)
    return check_layers(request.layers or thirds(runner.layers), runner.layers)


def _card(
    request: TrainRequest,
    host: LoadedModel,
    described: HeadHost,
    settings: GenerationSettings,
    data: TextData,
) -> HeadCard:
    temperatures = ", ".join(f"{value:g}" for value in sorted(set(data.temperatures)))
    prompts = f"{data.prompts:,}"
    own = ", own ones among them" if request.data else ""
    whose = "of the host's" if request.author is None else "of the target's"
    parallel = request.kind == HeadKind.PARALLEL
    return HeadCard(
        kind=request.kind,
        host=described,
        shape=_shape(request.kind, host.model.config.get_text_config()),
        state_layers=(described.layers,) if parallel else settings.layers,
        vocabulary=frequent_tokens(data, request.vocabulary, sorted(reply_ends(host))),
        depth=request.depth,
        seed=request.seed,
        licence="the licence of its host",
        command=request.command,
        data=f"{len(data):,} replies {whose} own with {data.reply_tokens:,} tokens, at "
        f"temperatures {temperatures}, to {prompts} prompts{own}",
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


def _say_coverage(card: HeadCard, measured: TextData, report: Report) -> None:
    share = coverage(measured, card.vocabulary)
    report.emit(
        Notice(
            kind="vocabulary",
            message=f"The head drafts the {len(card.vocabulary):,} most frequent of "
            f"{card.host.vocab:,} tokens, which make {share:.1%} of the held-out text.",
        )
    )

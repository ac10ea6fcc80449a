"""A distillation from prompts to a fine-tuned draft in a folder of its own."""

import gc
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from core.hub.files import check_disk, explain_write_error, flush_folder
from core.models.checkpoint import save_folder
from core.models.loader import LoadedModel
from core.models.mtp.card import HeadKind
from core.models.source import open_source
from core.requests import LoadRequest, Precision
from core.training.author import make_author_text
from core.training.data import TextData
from core.training.distill import DistillSettings, DraftTrainer
from core.training.events import Finished, Stage
from core.training.loading import load_alone
from core.training.loop import Loop
from core.training.outcome import outcome_of
from core.training.places import Places, check_place, held
from core.training.report import Emit, Report
from core.training.request import TrainRequest, short_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillRequest:
    """A draft to be fine-tuned on its target's text.

    ``text`` says which target answers which prompts; ``draft`` is the model's path. ``out`` None
    puts the result beside the draft, or below ``text.home``/models where the draft lies there.
    """

    text: TrainRequest
    draft: str
    settings: DistillSettings
    out: Path | None = None
    anew: bool = False

    @property
    def result(self) -> Path:
        """The folder of the result."""
        if self.out is not None:
            return self.out
        path = Path(self.draft)
        models = self.text.home / "models"
        name = path.name if path.is_dir() else path.stem
        folder = models if path.is_relative_to(models) else path.parent
        return folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}-distilled"


def text_request(load: LoadRequest, home: Path, **choices: Any) -> TrainRequest:
    """Return the request for the target's text alone: the last states are all that is kept."""
    return TrainRequest(load=load, home=home, kind=HeadKind.PARALLEL, **choices)


def run_distillation(
    request: DistillRequest, emit: Emit, stopped: Callable[[], bool]
) -> Path | None:
    """Fine-tune the draft and return its new folder, or None where ``stopped()`` became true.

    The original is read and never written. Events, stopping and going on are those of
    :func:`core.training.run.run_training`; Finished has the mean acceptance length before and
    after. Raises UserError.
    """
    return outcome_of(lambda report: _run(request, report), emit, stopped)


def _run(request: DistillRequest, report: Report) -> Path:
    check_place(request.result)
    # Weights and two moments in float32, the next of all before the last one goes, and the result.
    model_bytes = open_source(request.draft).elements * (2 * 3 * 4 + 2)
    text = make_author_text(request.text, report, model_bytes=model_bytes)
    gc.collect()  # the draft takes the target's place in memory
    draft = load_alone(
        replace(request.text.load, target=request.draft, precision=Precision.FLOAT32),
        request.text.home,
        report,
    )
    text.check_reader(draft)
    places = text.places
    with (
        held(places),
        TextData(places.text) as data,
        TextData(places.held_out) as measured,
    ):
        return _train(request, draft, data, measured, text.unembedding, places, report)


def _train(
    request: DistillRequest,
    draft: LoadedModel,
    data: TextData,
    measured: TextData,
    unembedding: torch.Tensor,
    places: Places,
    report: Report,
) -> Path:
    trainer = DraftTrainer(draft.model, data, unembedding=unembedding, settings=request.settings)
    fixed = {**request.settings.fixed(), "draft": request.draft}
    loop = Loop(
        trainer=trainer,
        measure=trainer.measure,
        measured=measured,
        batch_tokens=request.settings.batch_tokens,
        folder=places.base / f"distilled-{short_hash(fixed, str(places.text))}",
        fixed=fixed,
        report=report,
    )
    report.begin(Stage.EVALUATE, "the draft as it is")
    before = loop.evaluate(0.0)
    loss = loop.train(anew=request.anew)
    report.begin(Stage.EVALUATE, "the distilled draft")
    after = loop.evaluate(loss)
    report.begin(Stage.SAVE, str(request.result))
    _save(draft, request.result)
    loop.forget()  # several times the size of the result
    report.emit(
        Finished(
            path=str(request.result),
            acceptance=after.by_step,
            length=after.length,
            before=before.length,
            seconds=report.seconds,
        )
    )
    return request.result


def _save(draft: LoadedModel, folder: Path) -> None:
    """Write the model in bfloat16 so that its folder is whole or not there."""
    model = draft.model.to(torch.bfloat16)
    size_bytes = sum(parameter.nbytes for parameter in model.parameters())
    check_disk(folder.parent, size_bytes, "save the distilled draft")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=".distilled-", dir=folder.parent))
        try:
            save_folder(model, draft.tokenizer, building, lambda _: None)
            flush_folder(building)
            building.chmod(0o755)
            os.replace(building, folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    except OSError as error:
        raise explain_write_error(error, folder.parent) from error

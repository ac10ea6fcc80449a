"""Loading one model for a training, with its progress among the run's events."""

from dataclasses import replace
from pathlib import Path

from core.cancel import CancelToken
from core.events import LoadProgress
from core.models.loader import LoadedModel, load_pair
from core.requests import LoadRequest
from core.training.events import Notice, Progress, Stage
from core.training.report import Report


def load_alone(load: LoadRequest, home: Path, report: Report) -> LoadedModel:
    """Load the target of a request without a draft. Raises UserError and Cancelled."""
    report.begin(Stage.LOAD, Path(load.target).name)

    def on_progress(progress: LoadProgress) -> None:
        report.check()
        done = round(100 * (progress.fraction or 0.0))
        report.progress(Progress(stage=Stage.LOAD, done=done, total=100, unit="percent"))

    pair = load_pair(
        replace(load, draft=None),
        prepared_dir=home / "prepared",
        on_progress=on_progress,
        cancel=CancelToken(),
    )
    for message in pair.notices:
        report.emit(Notice(kind="load", message=message))
    return pair.target

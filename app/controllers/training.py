"""Training a head: starting, watching, pausing, stopping, and going on with one that was begun."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.controllers.pairs import pair_choices
from app.controllers.training_plan import (
    check_file,
    disk_plan,
    host_choices,
    obstacle,
    run_title,
    train_arguments,
)
from app.controllers.training_views import TrainingViews
from app.engine.training import TrainingProcess
from app.settings import Settings
from app.storage.training import UnfinishedStore
from app.training_records import (
    DiskPlan,
    Phase,
    PromptFile,
    TrainedHead,
    TrainingChoices,
    Unfinished,
)
from core.errors import UserError
from core.hub.library import Library
from core.training import events

GO_ON = "go-on-training"
RETRY = "retry-training"
FORGET = "forget-training"
OK = "training-ok"
_STAGE_WORDS: dict[str, str] = {
    events.Stage.LOAD: "loading the model",
    events.Stage.GENERATE: "writing text",
    events.Stage.READ: "reading",
    events.Stage.TRAIN: "training",
    events.Stage.EVALUATE: "measuring",
    events.Stage.SAVE: "saving",
}
_FAULT = "The training broke off because of a fault in Paceline ({}). What was made is kept."


class TrainingController(QObject):
    """Runs one training at a time in a process of its own. Lives on the window thread.

    ``loadWanted`` carries a TrainedHead that is to draft from now on.
    """

    loadWanted = Signal(object)

    def __init__(
        self,
        *,
        library: Library,
        process: TrainingProcess,
        home: Path,
        settings: Callable[[], Settings],
        views: TrainingViews,
        clock: Callable[[], float] = time.monotonic,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._library = library
        self._process = process
        self._home = home
        self._store = UnfinishedStore(home / "training" / "unfinished.json")
        self._settings = settings
        self._views = views
        self._clock = clock
        self._files: dict[str, PromptFile] = {}
        self._run: Unfinished | None = None
        """The training that runs, or can be gone on with."""
        self._phase = Phase.IDLE
        self._head: TrainedHead | None = None
        self._since_s: float | None = None
        """When the time that counts began to run; None while it does not."""
        self._now: tuple[str, float] = ("", 0.0)
        """The present stage and how far it is; one that goes on may be further in its record."""
        self._looked_at = False
        self._news = ""
        """How the last training ended, until the page is looked at."""
        process.happened.connect(self._happened)
        process.ended.connect(self._ended)

    @property
    def phase(self) -> Phase:
        """Whether a training is at work."""
        return self._phase

    @property
    def unfinished(self) -> Unfinished | None:
        """The training that runs, or can be gone on with."""
        return self._run

    @property
    def head(self) -> TrainedHead | None:
        """What the last training made."""
        return self._head

    # -- what the person does --------------------------------------------------------------------

    def start(self) -> None:
        """Show what can be trained, and offer to go on with what was not finished."""
        settings = self._settings()
        self._run = self._store.load()
        self._show(self._run.choices if self._run else _of_settings(settings))
        if self._run is not None:
            self._offer(f"{_sentence(self._run)} It can be gone on with.")
            self._news = "Training unfinished"
        self._show_status()

    def look(self, looked_at: bool) -> None:
        """The page comes into sight, or is left: bring it up to date."""
        self._looked_at = looked_at
        if looked_at and self._phase is Phase.IDLE:
            choices = self._views.form.choices()
            if self._run is None or self._run.choices != choices:
                choices = _with_models_of(choices, self._settings())
            self._show(choices)
        self._show_status()

    def changed(self) -> None:
        """Follow a change of the form."""
        choices = self._views.form.choices()
        self._views.form.set_hosts(host_choices(self._library, choices))
        self._check(choices)

    def add_files(self, paths: list[Path]) -> None:
        """Take files of prompts, each once."""
        form = self._views.form
        files = dict.fromkeys([*form.choices().files, *map(str, paths)])
        self._files.update({str(path): check_file(str(path)) for path in paths})
        self._show(replace(form.choices(), files=tuple(files)))

    def remove_file(self, path: str) -> None:
        """Leave a file of prompts out."""
        choices = self._views.form.choices()
        self._files.pop(path, None)
        self._show(replace(choices, files=tuple(f for f in choices.files if f != path)))

    def begin(self) -> None:
        """Train what the form shows; the same as what is unfinished is gone on with."""
        choices = self._views.form.choices()
        if self._run is not None and self._run.choices == choices:
            self.go_on()
        else:
            run = Unfinished(choices=choices, title=run_title(self._library, choices))
            self._begin(run, resume=False)

    def go_on(self) -> None:
        """Go on with the training that is not finished."""
        if self._run is not None:
            self._begin(self._run, resume=True)

    def forget(self) -> None:
        """Do not go on with it. What it made stays for the next training of that model."""
        if self._phase is not Phase.IDLE:
            return
        self._store.remove()
        self._run = None
        folder = self._home / "training"
        self._views.run.show_notice(
            f"The training is forgotten. The text it wrote stays in {folder}, and the next "
            "training with the same prompts uses it.",
            ((OK, "OK"),),
        )
        self._check(self._views.form.choices())

    def pause(self) -> None:
        """Let the training wait."""
        if self._phase is Phase.RUNNING:
            self._process.pause()
            self._enter(Phase.PAUSED)

    def resume(self) -> None:
        """Let it go on."""
        if self._phase is Phase.PAUSED:
            self._process.resume()
            self._enter(Phase.RUNNING)

    def stop(self) -> None:
        """Stop the training with everything kept."""
        if self._phase in (Phase.RUNNING, Phase.PAUSED):
            self._process.cancel()
            self._enter(Phase.STOPPING)

    def choose_notice(self, key: str) -> None:
        """Act on a button of the notice."""
        if key == GO_ON:
            self.go_on()
        elif key == RETRY:
            self.begin()
        elif key == FORGET:
            self.forget()
        else:
            self._views.run.dismiss_notice()

    def load_head(self) -> None:
        """Let the head that was made draft from now on."""
        if self._head is not None:
            self.loadWanted.emit(self._head)

    def close(self) -> None:
        """Stop what runs and keep that it can be gone on with."""
        if self._phase is Phase.IDLE:
            return
        last = self._process.close()
        self._count_time(False)
        self._phase = Phase.IDLE
        if isinstance(last, events.Finished):
            self._store.remove()
        else:
            self._keep()

    # -- the run ---------------------------------------------------------------------------------

    def _begin(self, run: Unfinished, *, resume: bool) -> None:
        if self._phase is not Phase.IDLE:
            return
        files = [self._file(path) for path in run.choices.files]
        reason = obstacle(self._library, run.choices, files)
        try:
            if not reason:
                self._store.save(run)
        except UserError as error:
            reason = str(error)
        if reason:
            self._views.run.show_notice(reason, ((OK, "OK"),), error=True)
            return
        self._run, self._head = run, None
        self._now, self._news = ("", 0.0), ""
        self._show(run.choices)
        self._views.form.set_locked(True)
        self._views.run.begin(run.title)
        self._enter(Phase.RUNNING)
        self._process.start(train_arguments(run.choices, resume=resume, spent_s=run.spent_s))

    def _happened(self, event: events.TrainingEvent) -> None:
        run = self._views.run
        match event:
            case events.StageStarted():
                run.show_stage(event.stage, event.detail, resumed=event.resumed)
                self._reach(event.stage, 0.0)
                self._keep()
            case events.Progress():
                run.show_progress(event)
                self._reach(event.stage, min(1.0, event.done / max(1, event.total)))
            case events.Evaluated():
                run.show_evaluated(event)
            case events.Kept():
                self._keep()
            case events.Notice():
                run.add_note(event.message)
            case events.DiskUse():
                self._views.form.set_disk(
                    DiskPlan(
                        folder=event.folder,
                        needed_bytes=event.needed_bytes,
                        free_bytes=event.free_bytes,
                    )
                )
            case events.Paused() if self._phase is not Phase.STOPPING:
                self._enter(Phase.PAUSED if event.paused else Phase.RUNNING)
            case _:
                pass
        self._show_status()

    def _ended(self, event: events.TrainingEvent) -> None:
        self._enter(Phase.IDLE)
        self._keep()
        run = self._run
        self._views.form.set_locked(False)
        if run is None:
            return
        if isinstance(event, events.Finished):
            self._finished(run, event)
        elif isinstance(event, events.Failed):
            self._failed(run, event)
        else:
            self._views.run.end("Stopped")
            self._news = "Training stopped"
            self._offer(f"{_sentence(run)} What was made is kept.")
        self._check(self._views.form.choices())
        self._show_status()

    def _finished(self, run: Unfinished, event: events.Finished) -> None:
        self._store.remove()
        self._run = None
        self._head = TrainedHead(
            path=event.path,
            title=run.title,
            choices=run.choices,
            acceptance=event.acceptance,
            length=event.length,
            seconds=run.spent_s,
        )
        self._views.run.finish(self._head)
        self._news = "The head is ready"

    def _failed(self, run: Unfinished, event: events.Failed) -> None:
        self._views.run.end("Broken off")
        self._news = "Training failed"
        if event.kind == "user":
            sentence = event.message
        else:
            sentence = _FAULT.format(event.message.partition(":")[0])
        if run.stage in ("", events.Stage.LOAD):
            # Nothing was made that could be gone on with.
            self._store.remove()
            self._run = None
            actions = ((RETRY, "Try again"), (OK, "Dismiss"))
        else:
            actions = ((GO_ON, "Try again"), (FORGET, "Forget it"))
        self._views.run.show_notice(sentence, actions, error=True)

    # -- what is shown ---------------------------------------------------------------------------

    def _show(self, choices: TrainingChoices) -> None:
        form = self._views.form
        form.set_pairs(pair_choices(self._library))
        form.set_hosts(host_choices(self._library, choices))
        form.set_choices(choices)
        form.set_files([self._file(path) for path in choices.files])
        self._check(choices)

    def _check(self, choices: TrainingChoices) -> None:
        form = self._views.form
        files = [self._file(path) for path in choices.files]
        reason = obstacle(self._library, choices, files)
        plan = None
        if not reason:
            try:
                plan = disk_plan(self._library, choices, self._home)
            except UserError as error:
                reason = str(error)
        form.set_disk(plan)
        form.set_obstacle(reason)
        same = self._run is not None and self._run.choices == choices
        form.set_start_words("Go on with the training" if same else "Start training")

    def _file(self, path: str) -> PromptFile:
        if path not in self._files:
            self._files[path] = check_file(path)
        return self._files[path]

    def _offer(self, sentence: str) -> None:
        self._views.run.show_notice(sentence, ((GO_ON, "Go on"), (FORGET, "Forget it")))

    def _show_status(self) -> None:
        stage, fraction = self._now
        if self._looked_at:
            text = self._news = ""
        elif self._phase is Phase.IDLE:
            text = self._news
        elif self._phase is Phase.PAUSED:
            text = "Training paused"
        elif self._phase is Phase.STOPPING:
            text = "Training stops"
        else:
            part = f" {fraction:.0%}" if fraction else ""
            text = f"Head: {_STAGE_WORDS.get(stage, 'starting')}{part}"
        self._views.status.set_training(text)

    # -- bookkeeping -----------------------------------------------------------------------------

    def _reach(self, stage: str, fraction: float) -> None:
        """Note how far the training is; going on begins with stages that are done already."""
        self._now = (stage, fraction)
        before = self._run.stage if self._run is not None else ""
        if _place(stage) > _place(before) or (stage == before and fraction):
            self._note(stage=stage, fraction=fraction)

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._count_time(phase in (Phase.RUNNING, Phase.STOPPING))
        self._views.run.set_phase(phase)
        self._show_status()

    def _count_time(self, runs: bool) -> None:
        now_s = self._clock()
        if self._since_s is not None and self._run is not None:
            self._note(spent_s=self._run.spent_s + now_s - self._since_s)
        self._since_s = now_s if runs else None

    def _note(self, **values: object) -> None:
        if self._run is not None:
            self._run = replace(self._run, **values)  # type: ignore[arg-type]

    def _keep(self) -> None:
        """Keep where the training is; one that cannot be kept goes on all the same."""
        if self._phase is not Phase.IDLE:
            self._count_time(self._since_s is not None)
        if self._run is None:
            return
        try:
            self._store.save(self._run)
        except UserError as error:
            self._views.run.add_note(str(error))


def _of_settings(settings: Settings) -> TrainingChoices:
    return _with_models_of(TrainingChoices(pair=settings.pair), settings)


def _with_models_of(choices: TrainingChoices, settings: Settings) -> TrainingChoices:
    return replace(
        choices,
        target_path=settings.target_path,
        draft_path=settings.draft_path,
        device=settings.device,
        precision=settings.precision,
    )


def _place(stage: str) -> int:
    """Return which stage it is, from 0; -1 before the first."""
    stages = list(_STAGE_WORDS)
    return stages.index(stage) if stage in stages else -1


def _sentence(run: Unfinished) -> str:
    """Return how far a training is."""
    where = _STAGE_WORDS.get(run.stage, "")
    part = f" at {run.fraction:.0%}" if run.fraction else ""
    return f"{run.title}: stopped {f'while {where}{part}' if where else 'at its beginning'}."

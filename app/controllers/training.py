"""Training a head: starting, watching, pausing, stopping, and going on with one that was begun."""

import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.controllers.training_form import TrainingFormController
from app.controllers.training_plan import run_title, train_arguments
from app.controllers.training_progress import TrainingProgress, how_far
from app.controllers.training_views import TrainingViews
from app.engine.training import TrainingProcess
from app.settings import Settings
from app.storage.training import UnfinishedStore
from app.training_records import DiskPlan, Phase, TrainedHead, Unfinished
from core.errors import UserError
from core.hub.library import Library
from core.training import events

GO_ON = "go-on-training"
RETRY = "retry-training"
FORGET = "forget-training"
OK = "training-ok"
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
        self._folder = home / "training"
        self._views = views
        self._progress = TrainingProgress(UnfinishedStore(self._folder / "unfinished.json"), clock)
        self.form = TrainingFormController(
            library=library,
            home=home,
            settings=settings,
            form=views.form,
            unfinished=lambda: self.unfinished,
        )
        self._phase = Phase.IDLE
        self._head: TrainedHead | None = None
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
        return self._progress.run

    @property
    def head(self) -> TrainedHead | None:
        """What the last training made."""
        return self._head

    # -- what the person does ----------------------------------------------------------------

    def start(self) -> None:
        """Show what can be trained, and offer to go on with what was not finished."""
        run = self.unfinished
        if run is None:
            self.form.show_settings()
        else:
            self.form.show(run.choices, check=False)
            self._offer(f"{how_far(run)} It can be gone on with.")
            self._news = "Training unfinished"
        self._show_status()

    def look(self, looked_at: bool) -> None:
        """The page comes into sight, or is left: bring it up to date."""
        self._looked_at = looked_at
        if looked_at and self._phase is Phase.IDLE:
            self.form.refresh()
        self._show_status()

    def begin(self) -> None:
        """Train what the form shows; the same as what is unfinished is gone on with."""
        choices = self._views.form.choices()
        if self.unfinished is not None and self.unfinished.choices == choices:
            self.go_on()
        else:
            run = Unfinished(choices=choices, title=run_title(self._library, choices))
            self._begin(run, resume=False)

    def go_on(self) -> None:
        """Go on with the training that is not finished."""
        if self.unfinished is not None:
            self._begin(self.unfinished, resume=True)

    def forget(self) -> None:
        """Do not go on with it. What it made stays for the next training of that model."""
        if self._phase is not Phase.IDLE:
            return
        self._progress.forget()
        self._views.run.show_notice(
            f"The training is forgotten. The text it wrote stays in {self._folder}, and the next "
            "training with the same prompts uses it.",
            ((OK, "OK"),),
        )
        self.form.check()

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
        self._phase = Phase.IDLE
        self._progress.keep()
        if isinstance(last, events.Finished):
            self._progress.forget()

    # -- the run -------------------------------------------------------------------------------

    def _begin(self, run: Unfinished, *, resume: bool) -> None:
        if self._phase is not Phase.IDLE:
            return
        reason = self.form.obstacle(run.choices)
        try:
            if not reason:
                self._progress.begin(run)
        except UserError as error:
            reason = str(error)
        if reason:
            self._views.run.show_notice(reason, ((OK, "OK"),), error=True)
            return
        self._head, self._news = None, ""
        self.form.show(run.choices)
        self._views.form.set_locked(True)
        self._views.run.begin(run.title)
        self._enter(Phase.RUNNING)
        self._process.start(train_arguments(run.choices, resume=resume, spent_s=run.spent_s))

    def _happened(self, event: events.TrainingEvent) -> None:
        run = self._views.run
        match event:
            case events.StageStarted():
                run.show_stage(event.stage, event.detail, resumed=event.resumed)
                self._progress.reach(event.stage, 0.0)
                self._keep()
            case events.Progress():
                run.show_progress(event)
                self._progress.reach(event.stage, min(1.0, event.done / max(1, event.total)))
            case events.Evaluated():
                run.show_evaluated(event)
            case events.Earlier():
                if self.unfinished is not None:
                    run.show_earlier(event, self.unfinished.choices.depth)
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
        self._views.form.set_locked(False)
        run = self.unfinished
        if run is not None:
            if isinstance(event, events.Finished):
                self._finished(run, event)
            elif isinstance(event, events.Failed):
                self._failed(event)
            else:
                self._views.run.end("Stopped")
                self._news = "Training stopped"
                self._offer(f"{how_far(run)} What was made is kept.")
        self.form.check()
        self._show_status()

    def _finished(self, run: Unfinished, event: events.Finished) -> None:
        self._progress.forget()
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

    def _failed(self, event: events.Failed) -> None:
        self._views.run.end("Broken off")
        self._news = "Training failed"
        sentence = event.message
        if event.kind != "user":
            sentence = _FAULT.format(event.message.partition(":")[0])
        actions = ((GO_ON, "Try again"), (FORGET, "Forget it"))
        if self._progress.nothing_made():
            self._progress.forget()
            actions = ((RETRY, "Try again"), (OK, "Dismiss"))
        self._views.run.show_notice(sentence, actions, error=True)

    # -- what is shown -------------------------------------------------------------------------

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._progress.count_time(phase in (Phase.RUNNING, Phase.STOPPING))
        self._views.run.set_phase(phase)
        self._show_status()

    def _keep(self) -> None:
        # A training whose progress cannot be kept goes on all the same.
        if problem := self._progress.keep():
            self._views.run.add_note(problem)

    def _offer(self, sentence: str) -> None:
        self._views.run.show_notice(sentence, ((GO_ON, "Go on"), (FORGET, "Forget it")))

    def _show_status(self) -> None:
        if self._looked_at:
            self._news = text = ""
        elif self._phase is Phase.IDLE:
            text = self._news
        elif self._phase is Phase.PAUSED:
            text = "Training paused"
        elif self._phase is Phase.STOPPING:
            text = "Training stops"
        else:
            text = self._progress.words()
        self._views.status.set_training(text)

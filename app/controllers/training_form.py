"""The form of the training page: what can be chosen, why it cannot start, what it takes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from app.controllers.pairs import pair_choices
from app.controllers.training_plan import check_file, disk_plan, host_choices, obstacle
from app.controllers.training_views import TrainingForm
from app.settings import Settings
from app.training_records import PromptFile, TrainingChoices, Unfinished
from core.errors import UserError
from core.hub.library import Library


class TrainingFormController:
    """Keeps the form true to what is on this computer. Lives on the window thread.

    ``unfinished`` gives the training that runs or can be gone on with.
    """

    def __init__(
        self,
        *,
        library: Library,
        home: Path,
        settings: Callable[[], Settings],
        form: TrainingForm,
        unfinished: Callable[[], Unfinished | None],
    ) -> None:
        self._library = library
        self._home = home
        self._settings = settings
        self._form = form
        self._unfinished = unfinished
        self._files: dict[str, PromptFile] = {}
        self._pair = settings().pair
        """The pair of the settings when it was last looked at."""

    def show(self, choices: TrainingChoices, *, check: bool = True) -> None:
        """Show ``choices`` and what they lead to, which takes a look at the files of the models."""
        form = self._form
        form.set_pairs(pair_choices(self._library))
        form.set_hosts(host_choices(self._library, choices))
        form.set_choices(choices)
        form.set_files([self._file(path) for path in choices.files])
        if check:
            self.check()

    def show_settings(self) -> None:
        """Show a training of the chosen pair, whose files are looked at once the page is seen."""
        settings = self._settings()
        self.show(_with_models_of(TrainingChoices(pair=settings.pair), settings), check=False)

    def refresh(self) -> None:
        """Take over what changed in the settings; an unfinished training stays as it was begun."""
        choices, settings = self._form.choices(), self._settings()
        if not self._is_unfinished(choices):
            choices = _with_models_of(choices, settings)
            if settings.pair != self._pair:
                choices = replace(choices, pair=settings.pair)
        self._pair = settings.pair
        self.show(choices)

    def changed(self) -> None:
        """Follow a change of the form."""
        self._form.set_hosts(host_choices(self._library, self._form.choices()))
        self.check()

    def add_files(self, paths: list[Path]) -> None:
        """Take files of prompts, each once."""
        choices = self._form.choices()
        files = dict.fromkeys([*choices.files, *map(str, paths)])
        self._files.update({str(path): check_file(str(path)) for path in paths})
        self.show(replace(choices, files=tuple(files)))

    def remove_file(self, path: str) -> None:
        """Leave a file of prompts out."""
        choices = self._form.choices()
        self._files.pop(path, None)
        self.show(replace(choices, files=tuple(each for each in choices.files if each != path)))

    def obstacle(self, choices: TrainingChoices) -> str:
        """Return why ``choices`` cannot be trained, "" where they can."""
        files = [self._file(path) for path in choices.files]
        return obstacle(self._library, choices, files)

    def check(self) -> None:
        """Say what the choices take of the disk, or why they cannot be trained."""
        choices = self._form.choices()
        reason, plan = self.obstacle(choices), None
        if not reason:
            try:
                plan = disk_plan(self._library, choices, self._home)
            except UserError as error:
                reason = str(error)
        self._form.set_disk(plan)
        self._form.set_obstacle(reason)
        again = self._is_unfinished(choices)
        self._form.set_start_words("Go on with the training" if again else "Start training")

    def _is_unfinished(self, choices: TrainingChoices) -> bool:
        run = self._unfinished()
        return run is not None and run.choices == choices

    def _file(self, path: str) -> PromptFile:
        if path not in self._files:
            self._files[path] = check_file(path)
        return self._files[path]


def _with_models_of(choices: TrainingChoices, settings: Settings) -> TrainingChoices:
    return replace(
        choices,
        target_path=settings.target_path,
        draft_path=settings.draft_path,
        device=settings.device,
        precision=settings.precision,
    )

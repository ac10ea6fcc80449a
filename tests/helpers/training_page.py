"""The training page in the whole window, on a child that speaks and does not train."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtWidgets import QPushButton

from app.settings import Settings
from app.storage.training import UnfinishedStore
from app.training_records import Phase
from app.widgets.stage_list import Mark
from tests.helpers.fake_training import FakeTraining, Step
from tests.helpers.model_folder import model_folder
from tests.helpers.window import Bench, MakeBench


class Answers:
    """Chooses files for the person."""

    def __init__(self, *prompts: Path) -> None:
        self.prompts = list(prompts)
        self.model: Path | None = None

    def ask_save(self, title: str, name: str, kinds: str) -> Path | None:
        return None

    def ask_model(self, title: str) -> Path | None:
        return self.model

    def ask_prompts(self, title: str) -> list[Path]:
        return self.prompts

    def show_keys(self, keys: Sequence[tuple[str, str]]) -> None: ...

    def show_text(self, title: str, text: str) -> None: ...


class Page:
    """A program with the page in sight, and what the person does there."""

    def __init__(
        self,
        make_bench: MakeBench,
        folder: Path,
        *plays: Sequence[Step],
        shown: bool = True,
        **options: object,
    ) -> None:
        model = folder / "tiny-model"
        if not model.exists():
            model_folder(model)
        self.fake = FakeTraining(*plays)
        settings = Settings(pair="custom", target_path=str(model))
        self.bench: Bench = make_bench(
            settings=settings, train_command=self.fake.command, **options
        )
        self.window = self.bench.window
        self.training = self.bench.app.training
        self.form = self.window.training.form
        self.run = self.window.training.run
        self.record = UnfinishedStore(folder / "training" / "unfinished.json")
        if shown:
            self.window.commands.train.trigger()

    def start(self) -> None:
        self.form.findChild(QPushButton, "start").click()

    def button(self, text: str) -> QPushButton:
        """The button of the page that says ``text``, which must be in sight."""
        found = [
            button
            for button in self.window.training.findChildren(QPushButton)
            if button.text() == text and button.isVisible()
        ]
        assert len(found) == 1, text
        return found[0]

    def until(self, phase: Phase) -> None:
        self.bench.until(lambda: self.training.phase is phase)

    def until_stage(self, stage: str) -> None:
        self.bench.until(lambda: self.run.stages.marks()[stage] is Mark.PRESENT)

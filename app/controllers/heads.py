"""Says which head a model has before another is trained, and how one that was trained compares."""

from collections.abc import Callable
from pathlib import Path

from app.controllers.models import ModelController
from app.controllers.pairs import CUSTOM, chosen_head
from app.names import head_name
from app.settings import Settings
from app.training_records import TrainedHead, TrainingChoices
from app.widgets.training_form import TrainingForm
from app.widgets.training_result import TrainingResult
from core.events import Loaded
from core.hub.heads import fingerprint_at, heads_for, length_at


class HeadsController:
    """Keeps form and card of the training page true to the heads in ``folders``.

    Lives on the window thread and reads no weights. What a model has is known once it is loaded.
    """

    def __init__(
        self,
        *,
        models: ModelController,
        settings: Callable[[], Settings],
        form: TrainingForm,
        result: TrainingResult,
        folders: tuple[Path, ...],
    ) -> None:
        self._models = models
        self._settings = settings
        self._form = form
        self._result = result
        self._folders = folders
        result.shown.connect(self.compare)
        form.changed.connect(self.tell)
        models.changed.connect(self.tell)

    def tell(self, _shown: bool = True) -> None:
        """Say below the form which head the chosen host has, as far as that is known."""
        loaded = self._models.loaded
        chosen = self._models.kept(self._settings())
        words = ""
        if loaded is not None and is_loaded(self._form.choices(), chosen, loaded):
            name = head_name(loaded.head or "")
            own = chosen_head(chosen.head_path)
            places = [Path(own)] if own else []
            places += [folder / name for folder in self._folders]
            length = next((length_at(place) for place in places if place.name == name), 0.0)
            words = f"This model has a head already: {name}"
            words += f", which brings {length:.2f} tokens a round." if length else "."
        self._form.set_head(words)

    def compare(self, head: TrainedHead) -> None:
        """Show beside a trained head the one that drafts for the same model without it."""
        chosen = chosen_head(self._settings().head_path) or ""
        present = present_head(head, chosen, self._folders)
        if present is not None:
            self._result.set_present(present.name, length_at(present))


def is_loaded(choices: TrainingChoices, chosen: Settings, loaded: Loaded) -> bool:
    """Whether the host of ``choices`` is loaded with a head; ``chosen`` is what was loaded."""
    if choices.pair != chosen.pair:
        return False
    paths = (choices.target_path, choices.draft_path) == (chosen.target_path, chosen.draft_path)
    if choices.pair == CUSTOM and not paths:
        return False
    host = loaded.target if choices.host == "target" else loaded.draft
    return loaded.head is not None and loaded.head.endswith(f" on {host}")


def present_head(head: TrainedHead, chosen_path: str, folders: tuple[Path, ...]) -> Path | None:
    """Return the head that the host of ``head`` has without it: the chosen one, else the best."""
    own = Path(head.path).resolve()
    host = fingerprint_at(own)
    if host is None:
        return None
    chosen = Path(chosen_path).resolve()
    if chosen_path and chosen != own and fingerprint_at(chosen) == host:
        return chosen
    return next((path for path in heads_for(host, folders) if path.resolve() != own), None)

"""What can be trained with what is on this computer, and what that takes. No Qt, no torch."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from app.controllers.pairs import CUSTOM, missing_models
from app.records import Choice
from app.training_records import Budget, DiskPlan, PromptFile, TrainingChoices
from core.errors import UserError
from core.hub.library import Library
from core.hub.resolve import resolve_pair
from core.models.source import open_source
from core.training.prompts import Split, read_prompts, read_user_prompts
from core.training.sizes import checkpoint_bytes, planned_tokens, states_kept, text_bytes

_CHECKED_BYTES = 4 << 20
"""Larger files of prompts are read by the training alone, so that the window never waits."""
_MIN_MINUTES = 1.0
"""What a training that is gone on with gets at least."""


def host_choices(library: Library, choices: TrainingChoices) -> list[Choice]:
    """Return target and draft of the chosen pair; one that cannot be trained on says why."""
    if choices.pair == CUSTOM:
        target, draft = Path(choices.target_path).name, Path(choices.draft_path).name
    else:
        pair = library.catalog.pairs.get(choices.pair)
        if pair is None:
            return [Choice("target", "Target", enabled=False, reason="There is no such pair.")]
        models = library.catalog.models
        target = models[pair.target].title
        draft = models[pair.draft].title if pair.draft is not None else ""
    return [
        _host("target", "Target", target, "No target is chosen."),
        _host("draft", "Draft", draft, "This pair has no draft model."),
    ]


def _host(value: str, title: str, name: str, missing: str) -> Choice:
    if not name:
        return Choice(value, title, enabled=False, reason=missing)
    return Choice(value, title, detail=name)


def host_name(library: Library, choices: TrainingChoices) -> str:
    """Return the name of the model that the head is for."""
    for choice in host_choices(library, choices):
        if choice.value == choices.host:
            return choice.detail or choice.title
    return choices.pair


def run_title(library: Library, choices: TrainingChoices) -> str:
    """Return a training's name."""
    return f"{choices.kind.capitalize()} head for {host_name(library, choices)}"


def obstacle(library: Library, choices: TrainingChoices, files: Sequence[PromptFile]) -> str:
    """Return why the training cannot be started, in a sentence with what to do; "" where it can."""
    if missing_models(library, choices.pair):
        return "This pair is not on this computer. Choose it in the settings and fetch it first."
    for choice in host_choices(library, choices):
        if choice.value == choices.host and not choice.enabled:
            other = choices.host == "draft"
            return f"{choice.reason} Choose {'another host' if other else 'one in the settings'}."
    if not choices.shipped and not files:
        return "There are no prompts. Add a file, or take the ones that come with Paceline."
    for file in files:
        if file.problem:
            name = Path(file.path).name
            return f"{name} cannot be used. Remove it, or mend it and add it again."
    try:
        host_path(library, choices)
    except UserError as error:
        return str(error)
    return ""


def host_path(library: Library, choices: TrainingChoices) -> Path:
    """Return the model that the head is for. Raises UserError where it is not here."""
    if choices.pair == CUSTOM:
        target, draft = resolve_pair(
            library, target=choices.target_path, draft=choices.draft_path or None
        )
    else:
        target, draft = resolve_pair(library, pair=choices.pair)
    if choices.host == "target":
        return target
    if draft is None:
        raise UserError("This pair has no draft model.", "Choose the target as host.")
    return draft


def disk_plan(library: Library, choices: TrainingChoices, home: Path) -> DiskPlan:
    """Return what the training takes of the disk below ``home``, from heads of files alone.

    Raises UserError where the host cannot be read.
    """
    layers, hidden = _shape(str(host_path(library, choices)))
    states = states_kept(choices.kind, layers)
    if choices.host == "draft":
        # The target writes the text, and its last states stay beside those of the draft.
        _, hidden = _shape(str(host_path(library, replace(choices, host="target"))))
        states += 1
    by_time = choices.budget == Budget.MINUTES
    tokens = planned_tokens(
        None if by_time else choices.tokens, choices.minutes if by_time else None
    )
    needed = text_bytes(tokens, states, hidden)
    folder = home / "training"
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return DiskPlan(
        folder=str(folder),
        needed_bytes=needed + checkpoint_bytes(hidden),
        free_bytes=shutil.disk_usage(existing).free,
    )


@lru_cache(maxsize=8)
def _shape(path: str) -> tuple[int, int]:
    """Return layers and width of the model at ``path``."""
    numbers = open_source(path).numbers
    if "layers" not in numbers or "hidden" not in numbers:
        raise UserError(f"{path} does not say how large it is.", "Choose another model.")
    return numbers["layers"], numbers["hidden"]


def shipped_prompts() -> int:
    """Return how many prompts to train on come with the program."""
    return len(read_prompts(Split.TRAIN))


def check_file(path: str) -> PromptFile:
    """Return what a file of prompts holds, or why it cannot be used."""
    place = Path(path)
    try:
        if place.is_file() and place.stat().st_size > _CHECKED_BYTES:
            return PromptFile(path=path)
        return PromptFile(path=path, prompts=len(read_user_prompts(place)))
    except UserError as error:
        return PromptFile(path=path, problem=error.message)
    except OSError as error:
        return PromptFile(path=path, problem=f"{place.name}: {error.strerror}.")


def train_arguments(choices: TrainingChoices, *, resume: bool, spent_s: float = 0.0) -> list[str]:
    """Return the arguments of ``paceline train-mtp`` that train what was chosen.

    ``spent_s`` of a budget in minutes are used already.
    """
    if choices.pair == CUSTOM:
        arguments = [f"--target={choices.target_path}"]
        arguments += [f"--draft={choices.draft_path}"] if choices.draft_path else []
    else:
        arguments = ["--pair", choices.pair]
    arguments += ["--device", choices.device, "--precision", choices.precision]
    arguments += ["--host", choices.host, "--kind", choices.kind]
    arguments += ["--depth", str(choices.depth), "--vocabulary", str(choices.vocabulary)]
    if choices.budget == Budget.MINUTES:
        left = max(_MIN_MINUTES, choices.minutes - spent_s / 60)
        arguments += ["--minutes", f"{left:g}"]
    else:
        arguments += ["--tokens", str(choices.tokens)]
    arguments += [] if choices.shipped else ["--own-only"]
    arguments += [] if resume else ["--anew"]
    # Last: the list of files ends with the line.
    return arguments + (["--data", *choices.files] if choices.files else [])

"""What the person chose, kept between starts in one JSON file."""

import json
import logging
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Literal

from app.storage.files import set_aside, write_atomic
from core.errors import UserError
from core.requests import (
    DEFAULT_MAX_NEW_TOKENS,
    GenerateRequest,
    LoadRequest,
    SamplingParams,
    SpeculationParams,
)

THEMES = ("system", "light", "dark")
MIN_FONT_POINTS = 6
MAX_FONT_POINTS = 48

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every choice of the settings panel and the window.

    ``pair`` is a pair id of the catalog, or "custom" for ``target_path`` / ``draft_path``.
    ``gamma`` "auto" lets the engine choose, 0 decodes plainly. ``seed`` None draws a fresh one for
    every reply.

    Raises UserError naming the field, its value and its range; the ranges are those of
    core.requests.
    """

    pair: str = "smollm2-135m"
    target_path: str = ""
    draft_path: str = ""
    head_path: str = ""
    """The folder of a head that was chosen for these models; "" takes what there is for them."""
    device: str = "auto"
    precision: str = "auto"
    drafter: str = "hybrid"
    gamma: int | Literal["auto"] = "auto"
    rule: str = "exact"
    ensemble_weight: float = 0.7
    typical_epsilon: float = 0.09
    typical_delta: float = 0.3
    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 0.95
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS
    stop: tuple[str, ...] = ()
    system_prompt: str = ""
    theme: str = "system"
    colouring: bool = True
    font_points: int = 0
    """0 follows the system."""

    def __post_init__(self) -> None:
        for name in ("pair", "target_path", "draft_path", "head_path", "system_prompt"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise UserError(f"{name} is {value!r}.", "It must be text.")
        if not self.pair:
            raise UserError("pair is ''.", 'It must be a pair of the catalog or "custom".')
        if not isinstance(self.stop, tuple) or not all(isinstance(s, str) for s in self.stop):
            raise UserError(f"stop is {self.stop!r}.", "It must be a list of texts.")
        if self.theme not in THEMES:
            raise UserError(f"theme is {self.theme!r}.", f"It must be one of: {', '.join(THEMES)}.")
        if not isinstance(self.colouring, bool):
            raise UserError(f"colouring is {self.colouring!r}.", "It must be true or false.")
        points = self.font_points
        if type(points) is not int or (points and not MIN_FONT_POINTS <= points <= MAX_FONT_POINTS):
            raise UserError(
                f"font_points is {points!r}.",
                f"It must be 0 or a whole number from {MIN_FONT_POINTS} to {MAX_FONT_POINTS}.",
            )
        # The rest is checked where it is used; making the requests applies the same ranges.
        GenerateRequest(
            messages=(("user", ""),),
            sampling=sampling_params(self),
            speculation=speculation_params(self),
            max_new_tokens=self.max_new_tokens,
            stop=self.stop,
        )
        LoadRequest(target=self.pair, device=self.device, precision=self.precision)


def sampling_params(settings: Settings) -> SamplingParams:
    """Return how the next reply draws its tokens."""
    return SamplingParams(
        temperature=settings.temperature,
        top_k=settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
        presence_penalty=settings.presence_penalty,
        frequency_penalty=settings.frequency_penalty,
        seed=settings.seed,
    )


def speculation_params(settings: Settings) -> SpeculationParams:
    """Return who drafts the next reply, how far ahead, and by which rule."""
    return SpeculationParams(
        drafter=settings.drafter,
        gamma=settings.gamma,
        rule=settings.rule,
        ensemble_weight=settings.ensemble_weight,
        typical_epsilon=settings.typical_epsilon,
        typical_delta=settings.typical_delta,
    )


class SettingsStore:
    """Reads and writes the settings file; nothing in it can keep the program from starting.

    ``notices`` holds sentences for the person about what the last :meth:`load` could not use.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notices: tuple[str, ...] = ()

    def load(self) -> Settings:
        """Return the stored settings, with the default where one is missing or invalid.

        A file that cannot be understood at all is set aside under another name.
        """
        self.notices = ()
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return Settings()
        except OSError as error:
            return self._without(f"{self.path} could not be read: {error.strerror or error}.")
        try:
            stored = json.loads(content.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            _log.warning("the settings file is damaged: %s", type(error).__name__)
            return self._damaged()
        if not isinstance(stored, dict):
            return self._damaged()
        return self._from(stored)

    def save(self, settings: Settings) -> None:
        """Write the settings whole or not at all. Raises UserError when they cannot be written."""
        write_atomic(self.path, json.dumps(asdict(settings), indent=2) + "\n")

    def _from(self, stored: dict[str, object]) -> Settings:
        known = {field.name for field in fields(Settings)}
        notices = []
        settings = Settings()
        for name, value in stored.items():
            if name not in known:
                notices.append(f"The setting {name!r} is not known and was left out.")
                continue
            try:
                # One field at a time, so that one bad value does not cost the others.
                settings = _with(settings, name, tuple(value) if isinstance(value, list) else value)
            except UserError as error:
                notices.append(f"The setting {error} The default is used.")
        self.notices = tuple(notices)
        return settings

    def _damaged(self) -> Settings:
        try:
            moved = set_aside(self.path)
        except UserError as error:
            return self._without(str(error))
        return self._without(f"The settings file was damaged. It was kept as {moved.name}.")

    def _without(self, reason: str) -> Settings:
        self.notices = (f"{reason} The default settings are used.",)
        return Settings()


def _with(settings: Settings, name: str, value: object) -> Settings:
    # What comes from a file has any type; Settings checks it.
    changes: dict[str, object] = {name: value}
    return replace(settings, **changes)  # type: ignore[arg-type]

"""The jobs that the engine's thread takes and the events they end with: plain values."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from app.records import Choice
from core.cancel import CancelToken
from core.events import Event, Failed, Finished, Loaded, LoadProgress
from core.requests import GenerateRequest, LoadRequest


class EngineLike(Protocol):
    """What the thread needs of an engine; core.engine.Engine has it."""

    @property
    def loaded(self) -> Loaded | None: ...

    def load(
        self,
        request: LoadRequest,
        on_progress: Callable[[LoadProgress], None],
        cancel: CancelToken,
    ) -> Loaded: ...

    def unload(self) -> None: ...

    def generate(self, request: GenerateRequest, cancel: CancelToken) -> Iterator[Event]: ...

    def count_prompt_tokens(self, request: GenerateRequest) -> int: ...


@dataclass(frozen=True, slots=True)
class Load:
    """Load a pair; ends with Loaded, Cancelled or Failed."""

    request: LoadRequest


@dataclass(frozen=True, slots=True)
class Generate:
    """Write a reply; ends with Finished or Failed.

    ``leave_out_oldest`` drops whole turns from the start of the chat until the prompt fits.
    """

    request: GenerateRequest
    leave_out_oldest: bool = False


@dataclass(frozen=True, slots=True)
class CountTokens:
    """Count the prompt's tokens; ends with TokensCounted, Cancelled or Failed."""

    request: GenerateRequest


@dataclass(frozen=True, slots=True)
class Unload:
    """Free the models; ends with Unloaded or Failed."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Ask what this machine and ``device`` can run; ends with OptionsListed or Failed."""

    device: str = "auto"


Work = Load | Generate | CountTokens | Unload | ListOptions


@dataclass(frozen=True, slots=True)
class TokensCounted:
    """How many tokens the prompt takes, of how many that fit."""

    tokens: int
    limit: int


@dataclass(frozen=True, slots=True)
class Unloaded:
    """No model is held any more."""


@dataclass(frozen=True, slots=True)
class OptionsListed:
    """Devices and number formats, with the reason beside each that cannot be had."""

    devices: tuple[Choice, ...]
    precisions: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The job was given up before it had a result."""


JobEvent = Event | TokensCounted | Unloaded | OptionsListed | Cancelled

_TERMINAL: dict[type[object], tuple[type[object], ...]] = {
    Load: (Loaded, Cancelled, Failed),
    Generate: (Finished, Failed),
    CountTokens: (TokensCounted, Cancelled, Failed),
    Unload: (Unloaded, Cancelled, Failed),
    ListOptions: (OptionsListed, Cancelled, Failed),
}


@dataclass(frozen=True, slots=True)
class Job:
    """Work that was handed over. ``cancel`` may be set from any thread."""

    id: int
    work: Work
    cancel: CancelToken

    def ends_with(self, event: JobEvent) -> bool:
        """Whether nothing follows ``event``."""
        return isinstance(event, _TERMINAL[type(self.work)])

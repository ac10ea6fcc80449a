"""Keeps header, numbers and status saying what the running or next reply uses."""

import time
from collections.abc import Callable

from app.controllers.force import in_force, in_force_of, off_reason
from app.controllers.views import ModelViews
from app.names import drafter_name
from app.records import InForce, Message
from app.settings import Settings
from app.widgets.formats import rule_words
from core.events import Loaded
from core.requests import AUTO_GAMMA, SpeculationParams

GAMMA_INTERVAL_S = 0.5
"""An automatic gamma changes with every round; shown more often it could not be read."""


class ForceDisplay:
    """Remembers what was shown, so that a new draft length renews it by itself."""

    def __init__(self, views: ModelViews, clock: Callable[[], float] = time.monotonic) -> None:
        self._views = views
        self._clock = clock
        self._shown: tuple[str, Settings, SpeculationParams, Loaded | None] | None = None
        self._plotted: InForce | None = None
        self._now = InForce()
        self._broke_off = ""
        self._gamma: int | None = None
        self._gamma_at = 0.0

    def begin(self) -> None:
        """Forget what the last reply came to, and say what the one that begins uses."""
        self._plotted = None
        self._broke_off = ""
        self._gamma = None

    def end(self) -> None:
        """Say what is chosen again, and no longer what was drafted last."""
        self._gamma = None

    @property
    def plots_loaded(self) -> bool:
        """Whether what is plotted was made, or is to be, with the models that are loaded."""
        then, now = self._plotted or self._now, self._now
        return (then.pair, then.device, then.precision) == (now.pair, now.device, now.precision)

    def plot(self, message: Message | None) -> None:
        """Say above the plots what the stored reply that is plotted was made with."""
        self._plotted = in_force_of(message) if message is not None else None
        if self._shown is not None:
            self.show(*self._shown)

    def break_off(self, why: str) -> None:
        """Note why the running reply goes on without a draft."""
        self._broke_off = why

    def drafted(self, gamma: int) -> None:
        """Show how long the newest draft of an automatic gamma was, twice a second at most."""
        if self._shown is None or self._shown[2].gamma != AUTO_GAMMA:
            return
        now = self._clock()
        due = self._gamma is None or now - self._gamma_at >= GAMMA_INTERVAL_S
        if due and gamma != self._gamma:
            self._gamma, self._gamma_at = gamma, now
            self.show(*self._shown)

    def show(
        self, pair: str, settings: Settings, speculation: SpeculationParams, loaded: Loaded | None
    ) -> None:
        """Show what a reply with ``speculation`` uses of the loaded pair."""
        self._shown = (pair, settings, speculation, loaded)
        why = self._broke_off or off_reason(settings, speculation, loaded)
        now = self._now = in_force(pair, speculation, loaded, why, self._gamma)
        self._views.metrics.set_in_force(self._plotted or now, plotted=self._plotted is not None)
        self._views.header.set_in_force(now)
        if loaded is None:
            self._views.status.set_speculation("Drafting begins once a model is loaded", True)
            return
        if why:
            self._views.status.set_speculation(f"Speculation is off because {why}", False)
            return
        words = [f"Speculation on: {drafter_name(now.drafter)}"]
        if now.lossy:
            words.append(rule_words(now.rule, lossy=True))
        self._views.status.set_speculation(", ".join([*words, f"gamma {now.gamma}"]), True)

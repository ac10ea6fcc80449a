"""The loaded pair: choosing, fetching, loading, and what is in force."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.controllers.baseline import DISMISS, Baseline
from app.controllers.fetching import FetchController
from app.controllers.force import drafter_choices, head_words, speculation_for
from app.controllers.force_display import ForceDisplay
from app.controllers.pairs import (
    fetch_bytes,
    load_request_for,
    missing_models,
    pair_choices,
    pair_title,
    with_models_of,
)
from app.controllers.views import ModelViews
from app.engine.pump import EventPump
from app.engine.work import Cancelled, Job, JobEvent, ListOptions, Load, OptionsListed
from app.records import Message
from app.settings import Settings
from core.errors import UserError
from core.events import Failed, Finished, Loaded, LoadProgress
from core.hub.files import format_bytes
from core.hub.library import Library
from core.metrics import GenerationMetrics
from core.requests import DrafterKind, GenerateRequest, LoadRequest, SpeculationParams

RETRY_LOAD = "retry-load"
LOAD_LAST = "load-last"
_ABSENT = "This pair is not on this computer: {} to fetch."
_TRIED = "The chosen pair is not loaded. The line above the chat says why."


class ModelController(QObject):
    """Keeps one pair loaded and says in words whatever keeps it from being so.

    Lives on the window thread. ``changed`` follows every change of :attr:`ready`.
    """

    changed = Signal()

    def __init__(
        self,
        *,
        library: Library,
        pump: EventPump,
        fetch: FetchController,
        settings: Callable[[], Settings],
        views: ModelViews,
        other_work: Callable[[], bool] = lambda: False,
        parent: QObject | None = None,
    ) -> None:
        """``other_work`` says whether the processor is shared, and speeds say nothing."""
        super().__init__(parent)
        self._other_work = other_work
        self._library = library
        self._pump = pump
        self._fetch = fetch
        self._settings = settings
        self._views = views
        self._loaded: Loaded | None = None
        self._request: LoadRequest | None = None
        self._good: LoadRequest | None = None
        """The last load that succeeded, to return to from one that failed."""
        self._good_title = ""
        self._chosen: Settings | None = None
        """What was set when Load was last pressed."""
        self._good_chosen: Settings | None = None
        self._pair = ""
        self._load_job: Job | None = None
        self._options_job: Job | None = None
        self._device_asked = ""
        self._reason = "No model is loaded yet."
        self._running: GenerateRequest | None = None
        self._force = ForceDisplay(views)
        self._baseline = Baseline(pump, views.status, views.notices, self)
        self._baseline.changed.connect(self._baseline_changed)
        pump.eventsArrived.connect(self._on_events)
        fetch.fetched.connect(self._fetched)
        fetch.missing.connect(self._not_here)

    # -- what others ask ----------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether a reply can be asked for."""
        return self._loaded is not None and self._load_job is None and not self._baseline.measuring

    @property
    def loading(self) -> bool:
        """Whether a pair is being loaded."""
        return self._load_job is not None

    @property
    def reason(self) -> str:
        """Why no reply can be asked for."""
        return "The plain speed is being measured." if self._baseline.measuring else self._reason

    @property
    def loaded(self) -> Loaded | None:
        """What is loaded."""
        return self._loaded

    @property
    def context_limit(self) -> int:
        """The context of the loaded model in tokens; 0 while there is none."""
        return self._loaded.context_limit if self._loaded is not None else 0

    @property
    def pair_title(self) -> str:
        """The name of the loaded pair."""
        return self._pair

    @property
    def baseline(self) -> float | None:
        """Plain tokens/s measured with the loaded target, or None."""
        return self._baseline.value

    def speed_up(self, metrics: GenerationMetrics) -> float | None:
        """Return how much faster than plain decoding a reply was, None where nobody knows."""
        return None if self._other_work() else self._baseline.speed_up(metrics)

    def speculation(self, settings: Settings) -> SpeculationParams:
        """Return the speculation that the loaded pair can do of what was chosen."""
        return speculation_for(settings, self._loaded)

    def kept(self, settings: Settings) -> Settings:
        """Return ``settings`` as the next start should find them.

        A choice that was not loaded is not kept, so that the next start is not left without a
        model; until the first load has ended, what it loads is.
        """
        loaded = self._good_chosen or (self._chosen if self._load_job is not None else None)
        return settings if loaded is None else with_models_of(settings, loaded)

    # -- what the person does ------------------------------------------------------------------

    def start(self) -> None:
        """Show the choices, and load the last pair if it is here."""
        self._views.panel.set_pairs(pair_choices(self._library))
        self._ask_options()
        self.load()

    def load(self) -> None:
        """Load the chosen pair, or offer to fetch what is missing of it."""
        if self._load_job is not None or self._fetch.running:
            return
        if self._running is not None:
            self._refuse("A reply is being written. Stop it before loading another pair.")
            return
        self._baseline.cancel()
        self._chosen = self._settings()
        if missing_models(self._library, self._settings().pair):
            self._fetch.offer(self._settings().pair)
            return
        try:
            request = load_request_for(self._library, self._settings())
        except UserError as error:
            self._refuse(str(error))
            return
        self._begin_load(request)

    def _begin_load(self, request: LoadRequest) -> None:
        self._request = request
        self._load_job = self._pump.submit(Load(request))
        self._reason = "The model is loading."
        self._views.notices.dismiss()
        self._views.panel.set_busy_loading(True)
        self._views.status.set_state("Loading")
        self._views.status.set_progress(None, "Starting the engine")
        self.changed.emit()

    def measure(self) -> None:
        """Measure the speed of plain decoding on the loaded pair."""
        if self._fetch.running:
            self._views.status.set_state("The plain speed can be measured after the fetch")
        elif self.ready and self._running is None:
            self._baseline.measure()

    def cancel_load(self) -> None:
        """Give up the load that is under way."""
        if self._load_job is not None:
            self._load_job.cancel.cancel()

    def settings_changed(self) -> None:
        """Take over changed settings: what is in force, and whether a reload is needed."""
        if self._settings().device != self._device_asked:
            self._ask_options()
        self._show_reload()
        self._show_in_force()

    def choose_notice(self, key: str) -> None:
        """Act on a button of the notice about the model."""
        if key == RETRY_LOAD:
            self.load()
        elif key == LOAD_LAST and self._good is not None:
            self._begin_load(self._good)
        elif not self._fetch.choose_notice(key):
            self._views.notices.dismiss()
        self._show_reload()

    # -- replies ------------------------------------------------------------------------------

    def reply_started(self, request: GenerateRequest) -> None:
        """Note that a reply is being written with ``request``."""
        self._running = request
        self._force.begin()
        self._show_in_force()

    def show_plotted(self, message: Message | None) -> None:
        """Say above the plots how the reply was made that they show; None: the next one."""
        self._force.plot(message)
        self._show_baseline()

    def drafted(self, gamma: int) -> None:
        """Show how many tokens an automatic gamma drafted in the newest round."""
        self._force.drafted(gamma)

    def speculation_broke_off(self, why: str) -> None:
        """Show why the running reply goes on without a draft."""
        if self._running is not None and self._running.speculation.drafter == DrafterKind.OFF:
            return  # it was off by choice, or by a reason that is already shown
        self._force.break_off(why)
        self._show_in_force()

    def reply_finished(self, event: Finished | Failed) -> None:
        """Note the end of the reply; a plain one gives the baseline."""
        request, self._running = self._running, None
        if request is not None:
            self._baseline.note(request, event)
        self._force.end()
        self._show_in_force()
        self._show_reload()

    # -- events of the engine -------------------------------------------------------------------

    def _on_events(self, job_id: int, events: tuple[JobEvent, ...]) -> None:
        if self._options_job is not None and job_id == self._options_job.id:
            self._options_job = None
            if isinstance(events[-1], OptionsListed):
                self._views.panel.set_devices(list(events[-1].devices))
                self._views.panel.set_precisions(list(events[-1].precisions))
        elif self._load_job is not None and job_id == self._load_job.id:
            last = events[-1]
            if isinstance(last, LoadProgress):
                text = f"{last.stage}: {last.detail}" if last.detail else last.stage
                self._views.status.set_progress(last.fraction, text)
            else:
                self._load_ended(last)

    def _ask_options(self) -> None:
        self._device_asked = self._settings().device
        self._options_job = self._pump.submit(ListOptions(self._device_asked))

    def _load_ended(self, event: JobEvent) -> None:
        self._load_job = None
        self._views.status.clear_progress()
        self._views.panel.set_busy_loading(False)
        # A load takes the place of the pair before it, also when it fails.
        self._loaded = event if isinstance(event, Loaded) else None
        if isinstance(event, Loaded):
            self._now_loaded(event)
        else:
            again = [(RETRY_LOAD, "Try again")]
            if self._good is not None and self._good != self._request:
                again.append((LOAD_LAST, f"Load {self._good_title}"))
            self._request, self._pair = None, ""
            if isinstance(event, Failed):
                self._refuse(event.message, tuple(again))
            elif isinstance(event, Cancelled):
                self._refuse("The load was cancelled.", tuple(again), error=False)
        self.settings_changed()
        self.changed.emit()

    def _now_loaded(self, loaded: Loaded) -> None:
        if self._request != self._good:
            self._good, self._good_chosen = self._request, self._chosen
            chosen = self._chosen or self._settings()
            self._good_title = pair_title(self._library, chosen, loaded)
        self._pair = self._good_title
        self._reason = ""
        self._views.status.set_state("Ready")
        if loaded.memory_bytes is not None:
            self._views.status.set_memory(loaded.memory_bytes)
        self._views.panel.set_drafters(drafter_choices(loaded))
        if self._request is not None:
            self._baseline.set_pair(self._request, loaded)
        if loaded.notices:
            self._views.notices.show_notice(" ".join(loaded.notices), ((DISMISS, "OK"),))

    def _baseline_changed(self) -> None:
        self._show_baseline()
        self.changed.emit()

    def _show_baseline(self) -> None:
        # Of these models alone: the plots may show a reply of others.
        known = None
        if self._force.plots_loaded and not self._other_work():
            known = self.baseline
        self._views.metrics.set_baseline(known)

    def _refuse(
        self, sentence: str, actions: tuple[tuple[str, str], ...] = (), *, error: bool = True
    ) -> None:
        self._views.notices.show_notice(sentence, actions or ((DISMISS, "OK"),), error=error)
        self._not_here(sentence)

    def _fetched(self) -> None:
        self._views.panel.set_pairs(pair_choices(self._library))
        self.load()

    def _not_here(self, sentence: str) -> None:
        if self._loaded is None:
            self._reason = sentence
            self._views.status.set_state("No model")
        self._show_reload()
        self.changed.emit()

    # -- what is in force -------------------------------------------------------------------------

    def _show_reload(self) -> None:
        needed = self._reload_needed()
        self._views.panel.set_head("" if needed else head_words(self._loaded))
        tried = self._chosen is not None and with_models_of(self._settings(), self._chosen)
        words, button = (_TRIED if tried == self._settings() else ""), ""
        if missing := missing_models(self._library, self._settings().pair):
            size = format_bytes(fetch_bytes(self._library, missing))
            words, button = words or _ABSENT.format(size), "Fetch and load…"
        self._views.panel.set_reload_needed(needed, words, button)

    def _reload_needed(self) -> bool:
        if self._load_job is not None or self._fetch.running:
            return False
        try:
            return load_request_for(self._library, self._settings()) != self._request
        except UserError:
            return True

    def _show_in_force(self) -> None:
        settings = self._settings()
        speculation = self._running.speculation if self._running else self.speculation(settings)
        self._force.show(self._pair, settings, speculation, self._loaded)
        self._show_baseline()

"""Offers to fetch what is missing of a pair, and shows how far the fetch is."""

from PySide6.QtCore import QObject, Signal

from app.controllers.pairs import fetch_bytes, missing_models
from app.controllers.views import Notices
from app.engine.fetch import ModelFetch
from core.hub.files import format_bytes
from core.hub.library import Library

FETCH = "fetch-model"
STOP_FETCH = "stop-fetch"
NOT_NOW = "not-now"


class FetchController(QObject):
    """Runs one fetch at a time, each begun by the person. Lives on the window thread.

    ``fetched`` follows when the pair is whole; ``missing`` carries the sentence that says what is
    not here whenever that becomes or stays so.
    """

    fetched = Signal()
    missing = Signal(str)

    def __init__(
        self,
        *,
        library: Library,
        fetch: ModelFetch,
        notices: Notices,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._library = library
        self._fetch = fetch
        self._notices = notices
        self._pair = ""
        fetch.progressed.connect(self._progressed)
        fetch.finished.connect(self._finished)
        fetch.failed.connect(self._failed)
        fetch.cancelled.connect(lambda: self.offer(self._pair))

    @property
    def running(self) -> bool:
        """Whether a fetch is under way."""
        return self._fetch.running

    def offer(self, pair_id: str) -> None:
        """Say what is missing of a catalog pair and offer to fetch it."""
        self._pair = pair_id
        missing = missing_models(self._library, pair_id)
        titles = " and ".join(model.title for model in missing)
        sentence = f"{titles} {'is' if len(missing) == 1 else 'are'} not on this computer yet."
        partly = any(self._library.status(model.id).done_bytes for model in missing)
        verb = "Go on fetching" if partly else "Fetch"
        size = format_bytes(fetch_bytes(self._library, missing))
        self._notices.show_notice(sentence, ((FETCH, f"{verb} ({size})"),), primary=True)
        self.missing.emit(sentence)

    def choose_notice(self, key: str) -> bool:
        """Act on a button of the notice; return whether it was one of the fetch."""
        if key == FETCH:
            self._notices.show_notice("Fetching the model", ((STOP_FETCH, "Stop"),))
            self._notices.set_progress(None)
            self._fetch.start(self._pair)
        elif key == STOP_FETCH:
            self._fetch.cancel()
        else:
            return False
        return True

    def _progressed(self, model_id: str, stage: str, fraction: float, rate: float) -> None:
        title = self._library.catalog.model(model_id).title
        doing = "Fetching" if stage == "fetching" else "Checking"
        speed = f", {format_bytes(rate)}/s" if stage == "fetching" else ""
        self._notices.set_text(f"{doing} {title}: {fraction:.0%}{speed}")
        self._notices.set_progress(fraction)

    def _finished(self) -> None:
        self._notices.dismiss()
        self.fetched.emit()

    def _failed(self, sentence: str) -> None:
        self._notices.show_notice(
            sentence, ((FETCH, "Try again"), (NOT_NOW, "Not now")), error=True
        )
        self.missing.emit(sentence)

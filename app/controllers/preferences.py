"""The person's choices: one Settings value, saved on every change."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from app.controllers.pairs import without_foreign_head
from app.controllers.views import Notices, SettingsView
from app.settings import MAX_FONT_POINTS, MIN_FONT_POINTS, Settings
from core.errors import UserError

SAVE_DELAY_MS = 400
DISMISS = "dismiss"


class Saver(Protocol):
    """Where settings are kept between starts."""

    def save(self, settings: Settings, /) -> object: ...


class PreferencesController(QObject):
    """Holds the settings, takes changes from the panel and the menu, and saves them.

    Saving waits until changes rest, so that dragging a slider writes once. Lives on the window
    thread. ``kept`` turns the settings into what the next start should find.
    """

    changed = Signal(object)
    """The new Settings."""

    def __init__(
        self,
        *,
        settings: Settings,
        saver: Saver,
        panel: SettingsView,
        notices: Notices,
        kept: Callable[[Settings], Settings] = lambda settings: settings,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._saver = saver
        self._panel = panel
        self._notices = notices
        self._kept = kept
        self._closed = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_DELAY_MS)
        self._timer.timeout.connect(self.flush)
        panel.set_settings(settings)

    @property
    def settings(self) -> Settings:
        """The choices as they stand."""
        return self._settings

    def take(self, settings: Settings) -> None:
        """Take over what the panel says. Other models do not keep the head of those before."""
        own = without_foreign_head(settings, self._settings)
        if own != settings:
            settings = own
            self._panel.set_settings(settings)
        if settings != self._settings:
            self._settings = settings
            self.save_soon()
            self.changed.emit(settings)

    def replace(self, settings: Settings) -> None:
        """Show and take over other settings as a whole."""
        self._change(settings)

    def choose_theme(self, mode: str) -> None:
        """Choose "system", "light" or "dark"."""
        self._change(replace(self._panel.settings(), theme=mode))

    def set_colouring(self, on: bool) -> None:
        """Switch the colours of the tokens on or off."""
        self._change(replace(self._panel.settings(), colouring=on))

    def set_font_points(self, points: int) -> None:
        """Set the size of the text of the chat; 0 follows the system."""
        if points:
            points = min(MAX_FONT_POINTS, max(MIN_FONT_POINTS, points))
        self._change(replace(self._panel.settings(), font_points=points))

    def change_paths(self, *, target: str | None = None, draft: str | None = None) -> None:
        """Set the person's own model files; None leaves one as it is."""
        settings = replace(self._panel.settings(), pair="custom")
        if target is not None:
            settings = replace(settings, target_path=target)
        if draft is not None:
            settings = replace(settings, draft_path=draft)
        self._change(settings)

    def change_head(self, path: str) -> None:
        """Set the folder of the head that drafts."""
        self._change(replace(self._panel.settings(), head_path=path))

    def save_soon(self) -> None:
        """Save once changes rest; for when what is kept changed without a choice."""
        if not self._closed:
            self._timer.start()

    def close(self) -> None:
        """Save now and never again: what ends with the window changes no choice."""
        self.flush()
        self._closed = True

    def flush(self) -> None:
        """Save now what waits to be saved."""
        self._timer.stop()
        self._settings = self._panel.settings()
        try:
            self._saver.save(self._kept(self._settings))
        except UserError as error:
            self._notices.show_notice(str(error), ((DISMISS, "OK"),), error=True)

    def _change(self, settings: Settings) -> None:
        # The panel's unsent changes are in these settings, so none is lost.
        self._panel.set_settings(settings)
        self.take(settings)

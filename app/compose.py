"""The composition root: builds every part once and wires their signals."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from app.controllers.chat import ChatController
from app.controllers.commands import CommandsController
from app.controllers.conversations import ConversationsController
from app.controllers.fetching import FetchController
from app.controllers.heads import HeadsController
from app.controllers.models import ModelController
from app.controllers.pairs import with_head
from app.controllers.preferences import PreferencesController, Saver
from app.controllers.training import TrainingController
from app.controllers.training_views import TrainingViews
from app.controllers.views import ChatViews, ModelViews
from app.crash import CrashReport
from app.engine.fetch import ModelFetch
from app.engine.imports import import_engine_libraries
from app.engine.pump import EventPump
from app.engine.training import TrainingProcess
from app.engine.work import EngineLike, OptionsListed
from app.engine.worker import EngineThread
from app.records import Choice
from app.rendering.highlight import prepare_highlighting
from app.settings import Settings
from app.storage.conversations import ConversationStore
from app.theme import Theme, ThemeController
from app.training_records import Phase, TrainedHead
from app.widgets.dialogs import Dialogs, WindowDialogs
from app.widgets.main_window import MainWindow
from app.widgets.settings_choices import PRECISIONS
from core.errors import UserError
from core.hub.heads import SHIPPED_HEADS
from core.hub.library import Library, data_root
from core.requests import Device

DISMISS = "dismiss"
SHOW_TRAINING = "show-training"
COPY_REPORT = "copy-report"
_PRECISION_TITLES = {choice.value: choice.title for choice in PRECISIONS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the window is built from; tests give a scripted engine and a temporary store."""

    engine_factory: Callable[[], EngineLike]
    list_options: Callable[[str], OptionsListed]
    library: Library
    store: ConversationStore
    settings: Settings
    saver: Saver
    fetch: ModelFetch
    training: TrainingProcess = field(default_factory=TrainingProcess)
    home: Path = field(default_factory=data_root)
    """Below it trainings are kept."""
    dialogs: Dialogs | None = None
    """None opens real dialogs over the window."""
    unkept: str = ""
    """Why nothing is kept after closing; "" where it is."""
    unread: bool = False
    """Whether stored chats could not be read."""


class Paceline(QObject):
    """The running program: the window, its controllers and the engine's thread.

    Built and used on the window thread. :meth:`start` shows nothing; the caller shows
    :attr:`window`. :meth:`close` is called once, by the window's closing.
    """

    def __init__(self, parts: Parts, app: QApplication) -> None:
        super().__init__()
        self.window = window = MainWindow()
        self.engine = EngineThread(parts.engine_factory, parts.list_options)
        self.pump = EventPump(self.engine, self)
        self.preferences = PreferencesController(
            settings=parts.settings,
            saver=parts.saver,
            panel=window.settings,
            notices=window.chat_bar,
            kept=lambda settings: self.models.kept(settings),
            parent=self,
        )
        self.theme = ThemeController(app, parent=self)
        self.fetch = parts.fetch
        self.models = ModelController(
            library=parts.library,
            pump=self.pump,
            fetch=FetchController(
                library=parts.library, fetch=parts.fetch, notices=window.model_bar, parent=self
            ),
            settings=lambda: self.preferences.settings,
            views=ModelViews(
                panel=window.settings,
                metrics=window.metrics,
                status=window.status,
                header=window.header,
                notices=window.model_bar,
            ),
            other_work=lambda: self.training.phase in (Phase.RUNNING, Phase.STOPPING),
            parent=self,
        )
        self.chat = ChatController(
            store=parts.store,
            pump=self.pump,
            models=self.models,
            settings=lambda: self.preferences.settings,
            views=ChatViews(
                transcript=window.transcript,
                composer=window.composer,
                metrics=window.metrics,
                status=window.status,
                notices=window.chat_bar,
            ),
            parent=self,
        )
        self.conversations = ConversationsController(
            store=parts.store,
            chat=self.chat,
            view=window.conversations,
            notices=window.chat_bar,
            parent=self,
        )
        self.training = TrainingController(
            library=parts.library,
            process=parts.training,
            home=parts.home,
            settings=lambda: self.preferences.settings,
            views=TrainingViews(window.training.form, window.training.run, window.status),
            parent=self,
        )
        self.heads = HeadsController(
            models=self.models,
            settings=lambda: self.preferences.settings,
            form=window.training.form,
            result=window.training.run.result,
            folders=(parts.home / "heads", SHIPPED_HEADS),
        )
        dialogs = parts.dialogs or WindowDialogs(window)
        self.commands = CommandsController(
            window=window,
            chat=self.chat,
            models=self.models,
            preferences=self.preferences,
            store=parts.store,
            dialogs=dialogs,
            training=self.training,
            parent=self,
        )
        window.conversations.set_unkept(parts.unkept, unread=parts.unread)
        self.stopped_in_time = True
        self._closed = False
        self._report = ""
        self._wire()

    def start(self) -> None:
        """Start the engine's thread, show the last chat and load the last pair."""
        self.engine.start()
        self._apply_settings(self.preferences.settings)
        self.window.set_theme(self.theme.theme)
        self.conversations.start()
        self.models.start()
        self.training.start()
        if self.training.unfinished is not None:
            self.window.chat_bar.show_notice(
                f"A training is not finished: {self.training.unfinished.title}.",
                ((SHOW_TRAINING, "Show it"), (DISMISS, "Later")),
            )

    def show_notice(self, text: str, *, error: bool = False) -> None:
        """Show a sentence above the composer until it is dismissed."""
        self.window.chat_bar.show_notice(text, ((DISMISS, "OK"),), error=error)

    def show_crash(self, report: CrashReport) -> None:
        """Say that something went wrong, and offer the report where there is one."""
        self._report = report.text
        actions: tuple[tuple[str, str], ...] = ((DISMISS, "OK"),)
        if report.is_bug:
            actions = ((COPY_REPORT, "Copy the report"), *actions)
        self.window.chat_bar.show_notice(report.sentence, actions, error=True)

    def close(self) -> None:
        """Cancel what runs, wait for it at most some seconds, store what was decided."""
        if self._closed:
            return
        self._closed = True
        self.window.hide()
        self.preferences.close()
        self.fetch.close()
        self.training.stop()
        self.stopped_in_time = self.engine.shutdown()
        self.pump.drain()
        self.pump.stop()
        self.chat.close()
        self.training.close()

    def _wire(self) -> None:
        window, chat = self.window, self.chat
        window.closing.connect(self.close)
        window.composer.submitted.connect(chat.send)
        window.composer.stopClicked.connect(chat.reply.stop)
        window.composer.textEdited.connect(lambda text: chat.text_edited())
        window.transcript.regenerateClicked.connect(chat.regenerate)
        window.transcript.versionClicked.connect(chat.choose_version)
        window.transcript.copyClicked.connect(chat.copy)
        window.transcript.promptChosen.connect(self._take_prompt)
        window.chat_bar.actionChosen.connect(self._choose_notice)
        window.model_bar.actionChosen.connect(self.models.choose_notice)
        listing = window.conversations
        listing.newClicked.connect(lambda: chat.open(None))
        listing.selected.connect(self.conversations.select)
        listing.renamed.connect(self.conversations.rename)
        listing.deleted.connect(chat.delete)
        listing.searched.connect(self.conversations.search)
        window.settings.changed.connect(self.preferences.take)
        window.settings.loadClicked.connect(self.models.load)
        self.preferences.changed.connect(self._apply_settings)
        self.models.changed.connect(self.preferences.save_soon)
        self.theme.changed.connect(self._apply_theme)
        window.legend.toggled.connect(self.preferences.set_colouring)
        self.training.loadWanted.connect(self._load_head)
        # After the training has looked at its page, so that the form stands.
        window.trainingShown.connect(self.heads.tell)

    def _load_head(self, head: TrainedHead) -> None:
        self.preferences.replace(with_head(self.window.settings.settings(), head))
        self.window.show_chat()
        self.models.load()

    def _take_prompt(self, prompt: str) -> None:
        # Into the composer first, so that it stays where it cannot be sent yet.
        self.window.composer.set_text(prompt)
        self.chat.send(prompt)

    def _choose_notice(self, key: str) -> None:
        if key == COPY_REPORT:
            QApplication.clipboard().setText(self._report)
        self.chat.choose_notice(key)
        if key == SHOW_TRAINING:
            self.window.show_training()

    def _apply_settings(self, settings: Settings) -> None:
        self.theme.set_mode(settings.theme)
        self.window.commands.themes[self.theme.mode].setChecked(True)
        self.window.commands.colouring.setChecked(settings.colouring)
        self.window.legend.set_on(settings.colouring)
        self.window.transcript.set_colouring(settings.colouring)
        self.window.set_font_points(settings.font_points)
        self.models.settings_changed()

    def _apply_theme(self, theme: Theme) -> None:
        self.window.set_theme(theme)


def real_engine(prepared_dir: Path) -> Callable[[], EngineLike]:
    """Return what makes the engine; it is called on the engine's thread and imports torch."""

    def make() -> EngineLike:
        import_engine_libraries()
        prepare_highlighting()
        from core.engine import Engine

        return Engine(prepared_dir=prepared_dir)

    return make


def real_options(device: str) -> OptionsListed:
    """Return what this machine and ``device`` can run; called on the engine's thread."""
    import_engine_libraries()
    from core.models.precision import choose_device, precision_options

    try:
        choose_device(Device.CUDA)
        no_gpu = ""
    except UserError as error:
        no_gpu = error.message
    devices = (
        Choice(Device.AUTO, "Automatic"),
        Choice(Device.CPU, "CPU"),
        Choice(Device.CUDA, "NVIDIA GPU", enabled=not no_gpu, reason=no_gpu),
    )
    # A device that was chosen on another machine must not keep the precisions from being listed.
    known = Device.CPU if no_gpu else device
    precisions = tuple(
        Choice(
            option.precision,
            _PRECISION_TITLES[option.precision],
            enabled=option.available,
            reason=option.reason,
        )
        for option in precision_options(known)
    )
    return OptionsListed(devices, precisions)

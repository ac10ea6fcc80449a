"""What the menus and their shortcuts do."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices

from app.controllers.chat import ChatController
from app.controllers.models import ModelController
from app.controllers.preferences import PreferencesController
from app.controllers.training import TrainingController
from app.storage.conversations import ConversationStore
from app.storage.export import export_json, export_markdown
from app.widgets.dialogs import Dialogs
from app.widgets.main_window import MainWindow
from core.errors import UserError
from paceline import __version__

DISMISS = "dismiss"
_ABOUT = """Paceline {version}

A desktop chat for local language models in which a small drafter runs ahead and the target \
verifies. Every token shows where it came from.

Apache License 2.0. Nothing you write leaves this computer."""
_UNSAFE = '<>:"/\\|?*'


class CommandsController(QObject):
    """Connects the window's commands. Lives on the window thread."""

    def __init__(
        self,
        *,
        window: MainWindow,
        chat: ChatController,
        models: ModelController,
        preferences: PreferencesController,
        store: ConversationStore,
        dialogs: Dialogs,
        training: TrainingController,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window = window
        self._chat = chat
        self._models = models
        self._preferences = preferences
        self._store = store
        self._dialogs = dialogs
        self._training = training
        commands = window.commands
        commands.new_chat.triggered.connect(lambda: chat.open(None))
        commands.stop.triggered.connect(chat.reply.stop)
        commands.regenerate.triggered.connect(lambda: chat.regenerate())
        commands.export_markdown.triggered.connect(self._export_markdown)
        commands.export_json.triggered.connect(self._export_json)
        commands.rename.triggered.connect(self._rename)
        commands.delete.triggered.connect(self._delete)
        commands.load.triggered.connect(models.load)
        commands.cancel_load.triggered.connect(models.cancel_load)
        commands.measure.triggered.connect(models.measure)
        commands.colouring.toggled.connect(preferences.set_colouring)
        commands.larger.triggered.connect(lambda: self._resize_text(1))
        commands.smaller.triggered.connect(lambda: self._resize_text(-1))
        commands.default_size.triggered.connect(lambda: preferences.set_font_points(0))
        commands.shortcuts.triggered.connect(lambda: dialogs.show_keys(commands.listed()))
        commands.about.triggered.connect(
            lambda: dialogs.show_text("About Paceline", _ABOUT.format(version=__version__))
        )
        for mode, action in commands.themes.items():
            action.triggered.connect(lambda _checked, mode=mode: preferences.choose_theme(mode))
        self._wire_training()
        chat.refreshed.connect(self._enable)
        self._enable()
        window.settings.browseClicked.connect(self._browse)
        window.transcript.linkActivated.connect(_open_link)

    def _wire_training(self) -> None:
        window, training = self._window, self._training
        page = window.training
        window.commands.train.triggered.connect(window.show_training)
        window.status.trainingClicked.connect(window.show_training)
        window.trainingShown.connect(training.look)
        page.backClicked.connect(window.show_chat)
        page.form.changed.connect(training.form.changed)
        page.form.startClicked.connect(training.begin)
        page.form.addClicked.connect(
            lambda: training.form.add_files(self._dialogs.ask_prompts("Add files with prompts"))
        )
        page.form.removeClicked.connect(training.form.remove_file)
        page.run.pauseClicked.connect(training.pause)
        page.run.resumeClicked.connect(training.resume)
        page.run.stopClicked.connect(training.stop)
        page.run.bar.actionChosen.connect(training.choose_notice)
        page.run.result.loadClicked.connect(training.load_head)
        page.run.result.showClicked.connect(self._show_head)

    def _show_head(self) -> None:
        if self._training.head is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(self._training.head.path))

    def _enable(self) -> None:
        commands = self._window.commands
        commands.stop.setEnabled(self._chat.reply.running)
        commands.cancel_load.setEnabled(self._models.loading)
        commands.measure.setEnabled(self._models.ready and not self._chat.reply.running)

    def _rename(self) -> None:
        if self._chat.current is None:
            self._say("There is no chat to rename yet.")
            return
        self._window.commands.show_conversations.setChecked(True)
        self._window.conversations.rename_current()

    def _delete(self) -> None:
        if self._chat.current is None:
            self._say("There is no chat to delete yet.")
            return
        self._window.commands.show_conversations.setChecked(True)
        self._window.conversations.ask_delete(self._chat.current)

    def _export_markdown(self) -> None:
        self._export("Export as Markdown", ".md", "Markdown (*.md)", export_markdown)

    def _export_json(self) -> None:
        self._export("Export as JSON", ".json", "JSON (*.json)", export_json)

    def _export(
        self,
        title: str,
        suffix: str,
        kinds: str,
        write: Callable[[ConversationStore, int, Path], None],
    ) -> None:
        current = self._chat.current
        if current is None:
            self._say("There is no chat to export yet.")
            return
        try:
            name = "".join("_" if c in _UNSAFE else c for c in self._store.get(current).title)
            path = self._dialogs.ask_save(title, f"{name}{suffix}", kinds)
            if path is None:
                return
            write(self._store, current, path if path.suffix else path.with_suffix(suffix))
        except UserError as error:
            self._say(str(error), error=True)
            return
        self._window.status.set_state("Exported")

    def _browse(self, which: str) -> None:
        what = "weights of the head" if which == "head" else f"{which} model"
        path = self._dialogs.ask_model(f"Choose the {what}")
        if path is not None and which == "head":
            self._preferences.change_head(str(path))
        elif path is not None and which == "target":
            self._preferences.change_paths(target=str(path))
        elif path is not None:
            self._preferences.change_paths(draft=str(path))

    def _resize_text(self, step: int) -> None:
        now = self._preferences.settings.font_points or self._window.font().pointSize()
        self._preferences.set_font_points(now + step)

    def _say(self, sentence: str, *, error: bool = False) -> None:
        self._window.chat_bar.show_notice(sentence, ((DISMISS, "OK"),), error=error)


def _open_link(address: str) -> None:
    QDesktopServices.openUrl(QUrl(address))

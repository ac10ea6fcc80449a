"""The whole window on a scripted engine and a temporary store, for tests without a display."""

import gc
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.compose import Paceline, Parts
from app.engine.fetch import ModelFetch
from app.engine.training import TrainingProcess
from app.engine.work import EngineLike, OptionsListed
from app.records import Choice, Conversation, Message
from app.settings import Settings, SettingsStore
from app.storage.conversations import ConversationStore
from app.storage.db import Database
from app.widgets.dialogs import Dialogs
from core.hub.library import Library
from tests.helpers.fake_engine import FakeEngine

WAIT_MS = 30_000


class Bench:
    """One program on one folder. ``close`` is idempotent; a second Bench on the folder restarts."""

    def __init__(
        self,
        qtbot: QtBot,
        folder: Path,
        engine: FakeEngine | None = None,
        *,
        settings: Settings | None = None,
        fetch_command: Callable[[str], list[str]] | None = None,
        engine_factory: Callable[[], EngineLike] | None = None,
        train_command: Callable[[Sequence[str]], list[str]] | None = None,
        dialogs: Dialogs | None = None,
        load: bool = True,
    ) -> None:
        # The window of an earlier test must not be collected while the style of all is changed.
        gc.collect()
        self.qtbot = qtbot
        self.engine = engine or FakeEngine()
        self.folder = folder
        model = folder / "model.gguf"
        model.write_bytes(b"GGUF")
        self.database = Database(folder / "conversations.db")
        self.store = ConversationStore(self.database)
        self.saver = SettingsStore(folder / "settings.json")
        if settings is not None:
            self.saver.save(settings)
        elif not self.saver.path.exists():
            self.saver.save(Settings(pair="custom", target_path=str(model)))
        self.store.recover_interrupted()
        instance = QApplication.instance()
        assert isinstance(instance, QApplication)
        fetch = ModelFetch(fetch_command) if fetch_command else ModelFetch()
        self.app = Paceline(
            Parts(
                engine_factory=engine_factory or (lambda: self.engine),
                list_options=lambda device: OptionsListed(
                    (Choice("auto", "Automatic"),), (Choice("auto", "Automatic"),)
                ),
                library=Library(folder / "models"),
                store=self.store,
                settings=self.saver.load(),
                saver=self.saver,
                fetch=fetch,
                training=TrainingProcess(train_command) if train_command else TrainingProcess(),
                home=folder,
                dialogs=dialogs,
            ),
            instance,
        )
        self.window = self.app.window
        qtbot.addWidget(self.window)
        self.window.show()
        self.app.start()
        if load:
            self.until(lambda: self.app.models.ready)

    def until(self, holds: Callable[[], object]) -> None:
        """Run the event loop until ``holds``."""
        self.qtbot.waitUntil(lambda: bool(holds()), timeout=WAIT_MS)

    def send(self, text: str = "Explain hash tables") -> None:
        """Send ``text`` as the composer would."""
        self.window.composer.set_text(text)
        self.window.composer.submitted.emit(text)

    def send_and_wait(self, text: str = "Explain hash tables") -> Message:
        """Send ``text`` and return the finished reply as it is stored."""
        self.until_replied(lambda: self.send(text))
        return self.thread()[-1]

    def until_replied(self, action: Callable[[], object]) -> None:
        """Do what asks for a reply, and run the event loop until that reply is over."""
        ended: list[object] = []
        connection = self.app.chat.reply.ended.connect(ended.append)
        action()
        self.until(lambda: ended)
        self.app.chat.reply.ended.disconnect(connection)

    def thread(self) -> list[Message]:
        """The open conversation as it is stored."""
        current = self.app.chat.current
        return self.store.thread(current) if current is not None else []

    def conversations(self) -> list[Conversation]:
        """Every conversation that is stored."""
        return self.store.list()

    def close(self) -> None:
        """Close the window as the person would."""
        self.window.close()
        self.database.close()


MakeBench = Callable[..., Bench]

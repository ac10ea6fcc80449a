"""Every command of the window with its shortcut, and the menu bar that lists them."""

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenuBar

THEMES = (("system", "As the system"), ("light", "Light"), ("dark", "Dark"))


class WindowActions:
    """The commands as actions of ``window``, so that their shortcuts work everywhere in it."""

    def __init__(self, window: QMainWindow) -> None:
        self._window = window
        self.new_chat = self._action("New chat", "Ctrl+N")
        self.export_markdown = self._action("Export as Markdown…", "Ctrl+E")
        self.export_json = self._action("Export as JSON…", "Ctrl+Shift+E")
        self.quit = self._action("Quit", "Ctrl+Q")
        self.rename = self._action("Rename the chat…", "F2")
        self.delete = self._action("Delete the chat…")
        self.stop = self._action("Stop the reply", "Esc")
        self.regenerate = self._action("Regenerate the last reply", "Ctrl+R")
        self.write = self._action("Write a message", "Ctrl+L")
        self.search = self._action("Search the chats", "Ctrl+F")
        self.show_conversations = self._switch("Chats", "Ctrl+B", on=True)
        self.show_panels = self._switch("Numbers and settings", "Ctrl+J", on=True)
        self.colouring = self._switch("Colour tokens by origin", "Ctrl+Shift+C", on=True)
        self.larger = self._action("Larger text", "Ctrl++", "Ctrl+=")
        self.smaller = self._action("Smaller text", "Ctrl+-")
        self.default_size = self._action("Default text size", "Ctrl+0")
        self.load = self._action("Load the chosen pair", "Ctrl+Shift+L")
        self.cancel_load = self._action("Give up loading")
        self.measure = self._action("Measure plain speed")
        self.train = self._action("Train an MTP head", "Ctrl+T")
        self.settings = self._action("Settings", "Ctrl+,")
        self.shortcuts = self._action("Keyboard shortcuts", "F1")
        self.about = self._action("About Paceline")
        self.themes: dict[str, QAction] = {}
        self._group = QActionGroup(window)
        for mode, title in THEMES:
            action = self._switch(title, on=mode == "system")
            self._group.addAction(action)
            self.themes[mode] = action

    def fill(self, bar: QMenuBar) -> None:
        """Build the menus."""
        chat = bar.addMenu("&Chat")
        chat.addActions([self.new_chat, self.regenerate, self.stop])
        chat.addSeparator()
        chat.addActions([self.rename, self.delete])
        chat.addSeparator()
        chat.addActions([self.write, self.search])
        chat.addSeparator()
        chat.addActions([self.export_markdown, self.export_json])
        chat.addSeparator()
        chat.addAction(self.quit)
        model = bar.addMenu("&Model")
        model.addActions([self.load, self.cancel_load, self.measure])
        model.addSeparator()
        model.addAction(self.train)
        view = bar.addMenu("&View")
        view.addActions([self.show_conversations, self.show_panels, self.settings])
        view.addSeparator()
        view.addAction(self.colouring)
        view.addMenu("Theme").addActions(list(self.themes.values()))
        view.addSeparator()
        view.addActions([self.larger, self.smaller, self.default_size])
        help_menu = bar.addMenu("&Help")
        help_menu.addActions([self.shortcuts, self.about])

    def about_chat(self) -> list[QAction]:
        """Return the commands that are about the chat and what stands beside it."""
        return [
            self.new_chat,
            self.regenerate,
            self.rename,
            self.delete,
            self.write,
            self.search,
            self.show_conversations,
            self.show_panels,
            self.settings,
        ]

    def listed(self) -> list[tuple[str, str]]:
        """Return (what it does, its key) of every command and of the keys of single parts."""
        return [
            *_PARTS,
            *(
                (action.text().rstrip("…"), action.shortcut().toString(_NATIVE))
                for action in self._window.actions()
                if not action.shortcut().isEmpty()
            ),
        ]

    def _action(self, text: str, *keys: str) -> QAction:
        action = QAction(text, self._window)
        action.setShortcuts([QKeySequence(key) for key in keys])
        self._window.addAction(action)
        return action

    def _switch(self, text: str, *keys: str, on: bool) -> QAction:
        action = self._action(text, *keys)
        action.setCheckable(True)
        action.setChecked(on)
        return action


_PARTS = (
    ("Send the message", "Enter"),
    ("Begin a new line in the message", "Shift+Enter"),
    ("Go to the end of the chat, where it has the focus", "Ctrl+End"),
    ("Delete the chat, in the list of chats", "Del"),
)
"""Keys that only mean something where the focus is, so that they are no commands."""
_NATIVE = QKeySequence.SequenceFormat.NativeText

"""The window: chats at the left, the chat in the middle, numbers and settings at the right."""

import logging

from PySide6.QtCore import QByteArray, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QFont, QKeyEvent
from PySide6.QtWidgets import (
    QApplication,
    QMainWindow,
    QPushButton,
    QSplitter,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.theme import Theme
from app.widgets.chat_header import ChatHeader
from app.widgets.composer import Composer
from app.widgets.conversation_list import ConversationList
from app.widgets.menus import WindowActions
from app.widgets.metrics_panel import MetricsPanel
from app.widgets.notice_bar import NoticeBar
from app.widgets.origin_legend import OriginLegend
from app.widgets.settings_panel import SettingsPanel
from app.widgets.status_line import StatusLine
from app.widgets.training_page import TrainingPage
from app.widgets.transcript import TranscriptView

logger = logging.getLogger(__name__)

MINIMUM = QSize(800, 560)
DEFAULT = QSize(1320, 860)
_LEFT_WIDTH = 230
_RIGHT_WIDTH = 340
_SETTINGS_HEIGHT = 320
"""Room for the pair, the drafter, gamma and the rule."""
_STATE_PARTS = 3
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class MainWindow(QMainWindow):
    """Lays the widgets out and folds the side panels; what they do is wired in app.compose.

    ``closing`` is emitted once the person closes the window, before it goes away.
    """

    closing = Signal()
    trainingShown = Signal(bool)
    """The page that trains heads came into sight, or left it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Paceline")
        # Nothing docks here, and an animation would be started at every change of the layout.
        self.setAnimated(False)
        self.setMinimumSize(MINIMUM)
        self.resize(DEFAULT)
        self.commands = WindowActions(self)
        self.commands.fill(self.menuBar())
        self.conversations = ConversationList()
        self.header = ChatHeader(self.commands.show_conversations, self.commands.show_panels)
        self.model_bar = NoticeBar()
        self.transcript = TranscriptView()
        self.legend = OriginLegend()
        self.chat_bar = NoticeBar()
        self.composer = Composer()
        self.metrics = MetricsPanel()
        self.settings = SettingsPanel()
        self.status = StatusLine()
        self.training = TrainingPage()
        self._pages = QStackedWidget()
        self._panels = QSplitter(Qt.Orientation.Vertical)
        self._columns = QSplitter(Qt.Orientation.Horizontal)
        self._lay_out()
        # First of all that they do: they are about the chat, which may be covered.
        for action in self.commands.about_chat():
            action.triggered.connect(self.show_chat)
        self.commands.show_conversations.toggled.connect(self.conversations.setVisible)
        self.commands.show_panels.toggled.connect(self._panels.setVisible)
        self.commands.quit.triggered.connect(self.close)
        self.commands.write.triggered.connect(self.composer.focus)
        self.commands.search.triggered.connect(self._search)
        self.commands.settings.triggered.connect(self._show_settings)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme`` everywhere."""
        for part in (
            self.conversations,
            self.header,
            self.model_bar,
            self.transcript,
            self.legend,
            self.chat_bar,
            self.composer,
            self.metrics,
            self.settings,
            self.status,
            self.training,
        ):
            part.set_theme(theme)

    def set_font_points(self, points: int) -> None:
        """Set the size of the chat's text; 0 follows the system."""
        font = QFont(self.font())
        if points:
            font.setPointSize(points)
        self.transcript.set_font_points(points)
        self.composer.setFont(font)

    def show_training(self) -> None:
        """Show the page that trains heads in place of the chat."""
        self._pages.setCurrentWidget(self.training)
        self.training.focus()

    def show_chat(self) -> None:
        """Show the chat and its panels."""
        if self._pages.currentWidget() is not self._columns:
            self._pages.setCurrentWidget(self._columns)
            self.composer.focus()

    def _tell_page(self) -> None:
        self.trainingShown.emit(self._pages.currentWidget() is self.training)

    def come_to_front(self) -> None:
        """Show the window before all others, where the system lets it."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def layout_state(self) -> str:
        """Return size, place and folds as text for :meth:`restore_layout`."""
        parts = (self.saveGeometry(), self._columns.saveState(), self._panels.saveState())
        encoded = [bytes(part.toBase64().data()).decode("ascii") for part in parts]
        folds = (self.commands.show_conversations, self.commands.show_panels)
        return " ".join([*encoded, *(str(int(action.isChecked())) for action in folds)])

    def restore_layout(self, state: str) -> None:
        """Take on a layout from :meth:`layout_state`; text that is none changes nothing."""
        words = state.split(" ")
        if len(words) != _STATE_PARTS + 2:
            return
        geometry, columns, panels = (
            QByteArray.fromBase64(QByteArray(word.encode("ascii", "ignore")))
            for word in words[:_STATE_PARTS]
        )
        if not self.restoreGeometry(geometry):
            logger.info("the stored window layout could not be read")
            return
        self._columns.restoreState(columns)
        self._panels.restoreState(panels)
        self.commands.show_conversations.setChecked(words[-2] == "1")
        self.commands.show_panels.setChecked(words[-1] == "1")

    def focusNextPrevChild(self, next_: bool) -> bool:
        """Go on with Tab; from what was hidden or disabled, go to the composer.

        Qt would hand the focus to whatever comes next, where typing is lost or switches something.
        """
        focused = QApplication.focusWidget()
        lost = focused is not None and not (focused.isVisible() and focused.isEnabled())
        if lost and self.composer.isVisible():
            self.composer.focus()
            return True
        return super().focusNextPrevChild(next_)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Let Enter press the focused button, as Space does."""
        focused = QApplication.focusWidget()
        if event.key() in _ENTER and isinstance(focused, QPushButton | QToolButton):
            focused.click()
            return
        super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Tell the program before the window goes away."""
        self.closing.emit()
        event.accept()

    def _search(self) -> None:
        self.commands.show_conversations.setChecked(True)
        self.conversations.focus_search()

    def _show_settings(self) -> None:
        self.commands.show_panels.setChecked(True)
        self.settings.setFocus(Qt.FocusReason.ShortcutFocusReason)
        if not self.settings.hasFocus():
            self.settings.focusNextChild()

    def _lay_out(self) -> None:
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.model_bar)
        column.addWidget(self.transcript, 1)
        column.addWidget(self.legend)
        column.addWidget(self.chat_bar)
        column.addWidget(self.composer)
        centre.setMinimumWidth(380)
        self._panels.addWidget(self.metrics)
        self._panels.addWidget(self.settings)
        self._panels.setChildrenCollapsible(False)
        self._panels.setStretchFactor(0, 1)
        self._panels.setSizes([DEFAULT.height() - _SETTINGS_HEIGHT, _SETTINGS_HEIGHT])
        self._columns.addWidget(self.conversations)
        self._columns.addWidget(centre)
        self._columns.addWidget(self._panels)
        self._columns.setChildrenCollapsible(False)
        self._columns.setHandleWidth(1)
        self._panels.setHandleWidth(1)
        self._columns.setStretchFactor(1, 1)
        self._columns.setSizes(
            [_LEFT_WIDTH, DEFAULT.width() - _LEFT_WIDTH - _RIGHT_WIDTH, _RIGHT_WIDTH]
        )
        whole = QWidget()
        rows = QVBoxLayout(whole)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(0)
        self._pages.addWidget(self._columns)
        self._pages.addWidget(self.training)
        rows.addWidget(self._pages, 1)
        self._pages.currentChanged.connect(self._tell_page)
        rows.addWidget(self.status)
        self.setCentralWidget(whole)

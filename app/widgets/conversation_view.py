"""The list view of the conversations."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QPalette
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListView


class ConversationView(QListView):
    """Rows of one height, edited by F2 or a double click."""

    deletePressed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setUniformItemSizes(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setMouseTracking(True)
        self.setBackgroundRole(QPalette.ColorRole.Window)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Window)
        self.setEditTriggers(
            QAbstractItemView.EditTrigger.EditKeyPressed
            | QAbstractItemView.EditTrigger.DoubleClicked
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete asks to delete; the rest moves about."""
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.deletePressed.emit()
            return
        super().keyPressEvent(event)

"""Keeps the mouse wheel from changing a value that the pointer merely passes."""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QWidget


class WheelGuard(QObject):
    """Lets the wheel change a guarded widget only while that widget has the keyboard focus.

    Otherwise the event goes on to the scroll area around it.
    """

    def guard(self, widget: QWidget) -> None:
        """Guard ``widget``; it no longer takes the focus by the wheel."""
        widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Turn away the wheel over a widget without focus."""
        if (
            event.type() == QEvent.Type.Wheel
            and isinstance(watched, QWidget)
            and not watched.hasFocus()
        ):
            event.ignore()
            return True
        return False

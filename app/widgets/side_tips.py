"""Tooltips that open beside a panel, so that none covers the picture that it explains."""

from html import escape

from PySide6.QtCore import QEvent, QObject, QPoint
from PySide6.QtWidgets import QToolTip, QWidget

_TIP_PX = 260
_GAP_PX = 40
"""Between tip and panel, with the frame of the tip and what Qt moves it aside of the pointer."""
_BELOW_PX = 16
"""How far Qt puts a tip below the place that is asked for."""


class SideTips(QObject):
    """Shows the tooltips of everything in ``panel`` at its left. Made once all of it is there."""

    def __init__(self, panel: QWidget) -> None:
        super().__init__(panel)
        self._panel = panel
        for widget in panel.findChildren(QWidget):
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take over the tooltips of the panel."""
        if event.type() != QEvent.Type.ToolTip or not isinstance(watched, QWidget):
            return False
        if not watched.toolTip():
            return False
        left = self._panel.mapToGlobal(QPoint(0, 0)).x() - _TIP_PX - _GAP_PX
        top = watched.mapToGlobal(QPoint(0, 0)).y() - _BELOW_PX
        words = escape(watched.toolTip()).replace("\n", "<br>")
        # A table, because no other rich text keeps a tooltip to a width.
        table = f"<table width={_TIP_PX}><tr><td>{words}</td></tr></table>"
        QToolTip.showText(QPoint(left, top), table, watched)
        return True

"""How one row of the conversation list is painted and edited."""

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPalette, QPen
from PySide6.QtWidgets import (
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.qtmodels.conversations import ID_ROLE
from app.widgets.fonts import derived

_Index = QModelIndex | QPersistentModelIndex
_PADDING_PX = 8
_TITLE_LIMIT = 200


class ConversationDelegate(QStyledItemDelegate):
    """Paints headings small and muted, titles elided, and the current one marked by a bar."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        rect: QRect = option.rect
        palette: QPalette = option.palette
        state = option.state
        font = option.font
        title = str(index.data(Qt.ItemDataRole.DisplayRole))
        inner = rect.adjusted(_PADDING_PX, 0, -_PADDING_PX, 0)
        painter.save()
        if index.data(ID_ROLE) is None:
            painter.setFont(derived(font, 0.85, bold=True))
            muted = palette.color(QPalette.ColorGroup.Active, QPalette.ColorRole.PlaceholderText)
            painter.setPen(muted)
            place = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom
            painter.drawText(inner.adjusted(0, 0, 0, -4), int(place), title)
            painter.restore()
            return
        selected = bool(state & QStyle.StateFlag.State_Selected)
        hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground = rect.adjusted(0, 1, 0, -1)
        if selected or hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(palette.color(QPalette.ColorRole.AlternateBase))
            painter.drawRoundedRect(ground, 6, 6)
        if selected:
            painter.setBrush(palette.color(QPalette.ColorRole.Accent))
            painter.drawRoundedRect(QRect(ground.left(), ground.top() + 5, 3, 16), 1.5, 1.5)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(palette.color(QPalette.ColorRole.Accent), 1))
            painter.drawRoundedRect(ground.adjusted(0, 0, -1, -1), 6, 6)
        painter.setFont(font)
        painter.setPen(palette.color(QPalette.ColorGroup.Active, QPalette.ColorRole.Text))
        text = painter.fontMetrics().elidedText(title, Qt.TextElideMode.ElideRight, inner.width())
        place = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(inner, int(place), text)
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        """Every row has one height, which keeps thousands of them quick."""
        metrics = option.fontMetrics
        return QSize(80, max(28, metrics.height() + 12))

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        """Edit the title in a line of its own."""
        editor = QLineEdit(parent)
        editor.setMaxLength(_TITLE_LIMIT)
        editor.setAccessibleName("Title")
        return editor

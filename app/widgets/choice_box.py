"""A drop-down list whose entries have a second line, and say why they cannot be chosen."""

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QPainter,
    QPalette,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QComboBox,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.records import Choice
from app.widgets.fonts import derived

_VALUE = Qt.ItemDataRole.UserRole
_SECOND_LINE = Qt.ItemDataRole.UserRole + 1
_PADDING = 6
_POPUP_PX = 300
_FRAME_PX = 20
"""The edges of the list, and its scroll bar where it has one."""

_Index = QModelIndex | QPersistentModelIndex


class ChoiceBox(QComboBox):
    """Offers Choice entries. Refused ones are greyed out with their reason as second line.

    A value that is not among the entries is kept and shown as it is, so that nothing is lost
    before the entries are known.
    """

    chosen = Signal(str)
    """The value that the person chose."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._choices: tuple[Choice, ...] = ()
        self._wanted = ""
        self._items = QStandardItemModel(self)
        self.setModel(self._items)
        self.setItemDelegate(_TwoLines(self))
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(6)
        self.activated.connect(self._on_activated)

    def set_choices(self, choices: Sequence[Choice]) -> None:
        """Offer ``choices``; the chosen value stays."""
        self._choices = tuple(choices)
        self._fill()

    def choice(self) -> Choice | None:
        """The chosen entry, None where the value is not among the entries."""
        return next((each for each in self._choices if each.value == self._wanted), None)

    def value(self) -> str:
        """The chosen value."""
        return self._wanted

    def set_value(self, value: str) -> None:
        """Choose ``value`` without a signal."""
        if value != self._wanted:
            self._wanted = value
            self._fill()

    def showPopup(self) -> None:
        """Open the list wide enough for the reasons."""
        self.view().setMinimumWidth(max(self.width(), _POPUP_PX))
        # Rows may have been measured while this box had another width.
        self.view().doItemsLayout()
        super().showPopup()

    def _fill(self) -> None:
        self._items.clear()
        for each in self._choices:
            item = QStandardItem(each.title)
            second = each.detail if each.enabled else each.reason or "Not available."
            item.setData(each.value, _VALUE)
            item.setData(second, _SECOND_LINE)
            item.setToolTip(second)
            item.setEnabled(each.enabled)
            self._items.appendRow(item)
        if self.choice() is None and self._wanted:
            item = QStandardItem(self._wanted)
            item.setData(self._wanted, _VALUE)
            item.setData("Not among the entries at the moment.", _SECOND_LINE)
            self._items.appendRow(item)
        self.setCurrentIndex(self.findData(self._wanted, _VALUE))

    def _on_activated(self, row: int) -> None:
        value = str(self.itemData(row, _VALUE))
        if value != self._wanted:
            self._wanted = value
            self.chosen.emit(value)


class _TwoLines(QStyledItemDelegate):
    """Paints the title over the wrapped second line in small muted text."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        enabled = bool(index.flags() & Qt.ItemFlag.ItemIsEnabled)
        palette = option.palette
        rect: QRect = option.rect
        state = option.state
        painter.save()
        if enabled and state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, palette.color(QPalette.ColorRole.AlternateBase))
        muted: QColor = palette.color(QPalette.ColorRole.PlaceholderText)
        text: QColor = palette.color(QPalette.ColorGroup.Active, QPalette.ColorRole.Text)
        inner = rect.adjusted(_PADDING, _PADDING // 2, -_PADDING, -_PADDING // 2)
        painter.setPen(text if enabled else muted)
        painter.setFont(option.font)
        flags = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        painter.drawText(inner, flags, str(index.data(Qt.ItemDataRole.DisplayRole)))
        second = str(index.data(_SECOND_LINE) or "")
        if second:
            inner.setTop(inner.top() + painter.fontMetrics().height() + 1)
            inner.setWidth(self._text_width())
            painter.setFont(derived(option.font, 0.88))
            painter.setPen(muted)
            painter.drawText(inner, flags | int(Qt.TextFlag.TextWordWrap), second)
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        height = option.fontMetrics.height() + _PADDING
        second = str(index.data(_SECOND_LINE) or "")
        if second:
            flags = int(Qt.TextFlag.TextWordWrap)
            room = QRect(0, 0, self._text_width(), 1000)
            small = QFontMetrics(derived(option.font, 0.88))
            height += small.boundingRect(room, flags, second).height() + 1
        return QSize(_POPUP_PX - _FRAME_PX, height)

    def _text_width(self) -> int:
        """Return the width in which second lines are measured as well as painted."""
        combo = self.parent()
        room = max(combo.width() if isinstance(combo, QWidget) else 0, _POPUP_PX)
        return room - 2 * _PADDING - _FRAME_PX

"""A compact grid of named numbers."""

from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.widgets.elided_label import ElidedLabel
from app.widgets.fonts import derived
from app.widgets.formats import UNKNOWN

_CELL_PX = 112


class _Cell(QWidget):
    def __init__(self, title: str, explanation: str) -> None:
        super().__init__()
        self.title = QLabel(title)
        self.title.setProperty("muted", True)
        self.value = ElidedLabel(UNKNOWN)
        self.setToolTip(explanation)
        self.value.setAccessibleDescription(explanation)
        for label in (self.title, self.value):
            label.setParent(self)

    def sizeHint(self) -> QSize:
        """The title over a number of the same width."""
        title = self.title.sizeHint()
        return QSize(title.width(), title.height() + self.value.sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """As the size hint; a number that is wider is cut."""
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place both; without a layout, so that a new number makes none anew."""
        super().resizeEvent(event)
        self._place()

    def set_fonts(self, title: QFont, value: QFont) -> None:
        """Take on fonts and ask for the room they need."""
        self.title.setFont(title)
        self.value.setFont(value)
        self.updateGeometry()
        self._place()

    def _place(self) -> None:
        width, height = self.width(), self.title.sizeHint().height()
        self.title.setGeometry(0, 0, width, height)
        self.value.setGeometry(0, height, width, self.height() - height)


class StatGrid(QWidget):
    """Numbers with a small title each, in as many columns as fit (two or more)."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cells: dict[str, _Cell] = {}
        self._columns = 2
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(10)
        self._grid.setVerticalSpacing(6)

    def add(self, key: str, title: str, explanation: str) -> None:
        """Add a number named ``key``."""
        self._cells[key] = _Cell(title, explanation)
        self._arrange()
        self._apply_fonts()

    def set_text(self, key: str, text: str) -> None:
        """Show ``text`` under the title of ``key``."""
        cell = self._cells[key]
        if text != cell.value.text():
            cell.value.setText(text)
            cell.value.setAccessibleName(f"{cell.title.text()}: {text}")

    def text(self, key: str) -> str:
        """What ``key`` shows."""
        return self._cells[key].value.text()

    def set_explanation(self, key: str, explanation: str) -> None:
        """Change the tooltip of ``key``."""
        self._cells[key].setToolTip(explanation)
        self._cells[key].value.setAccessibleDescription(explanation)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use the columns that fit."""
        super().resizeEvent(event)
        columns = max(2, min(4, event.size().width() // _CELL_PX))
        if columns != self._columns:
            self._columns = columns
            self._arrange()

    def changeEvent(self, event: QEvent) -> None:
        """Follow a new font size."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._apply_fonts()

    def _arrange(self) -> None:
        for place, cell in enumerate(self._cells.values()):
            self._grid.addWidget(cell, place // self._columns, place % self._columns)
        for column in range(4):
            # Columns of one width, so that a longer number moves nothing.
            self._grid.setColumnStretch(column, 1 if column < self._columns else 0)
            self._grid.setColumnMinimumWidth(column, 0)

    def _apply_fonts(self) -> None:
        for cell in self._cells.values():
            cell.set_fonts(derived(self.font(), 0.88), derived(self.font(), 1.05, bold=True))

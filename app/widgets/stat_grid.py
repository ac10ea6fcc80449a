"""A compact grid of named numbers."""

from PySide6.QtCore import QEvent
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.title)
        layout.addWidget(self.value)


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
            cell.title.setFont(derived(self.font(), 0.88))
            cell.value.setFont(derived(self.font(), 1.05, bold=True))

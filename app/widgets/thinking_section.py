"""A folded section for what a model thought before it spoke."""

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolButton, QWidget

from app.theme import Theme
from app.widgets.icons import icon
from app.widgets.markdown_view import MarkdownView

_INDENT = 18


class ThinkingSection(QWidget):
    """A header that opens and closes, and under it the thought text."""

    toggled = Signal()

    def __init__(self, view: MarkdownView, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._view = view
        self._theme = theme
        view.setParent(self)
        self._header = QToolButton(self)
        self._header.setProperty("flat", True)
        self._header.setAutoRaise(True)
        self._header.setCheckable(True)
        self._header.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._header.setCursor(Qt.CursorShape.PointingHandCursor)
        self._header.toggled.connect(self._toggle)
        self.set_theme(theme)
        self.set_state(thinking=True)

    @property
    def opened(self) -> bool:
        """Whether the thought text is shown."""
        return self._header.isChecked()

    @property
    def header(self) -> QToolButton:
        """What opens and closes it."""
        return self._header

    def set_opened(self, opened: bool) -> None:
        """Open or close."""
        self._header.setChecked(opened)

    def set_state(self, *, thinking: bool) -> None:
        """Say whether the thinking still goes on."""
        words = "Thinking…" if thinking else "Thoughts"
        if self._header.text() != words:
            self._header.setText(words)
            self._header.setAccessibleName(f"{words} Show or hide what the model thought")

    def set_theme(self, theme: Theme) -> None:
        """Change the colours."""
        self._theme = theme
        self._header.setStyleSheet(
            f"QToolButton {{ color: {theme.muted}; background: transparent; padding: 3px 4px 3px 0;"
            " border: 1px solid transparent; }"
            f"QToolButton:hover {{ color: {theme.text}; }}"
            f"QToolButton:focus {{ border: 1px solid {theme.accent}; }}"
        )
        name = "chevron-down" if self.opened else "chevron-right"
        self._header.setIcon(icon(name, theme.muted))
        self.update()

    def lay_out(self, width: int) -> int:
        """Place everything for ``width`` and return the height it takes."""
        size = self._header.sizeHint()
        self._header.setGeometry(0, 0, min(size.width(), width), size.height())
        if not self.opened:
            return size.height()
        height = self._view.height_for(max(width - _INDENT, 80))
        self._view.setGeometry(_INDENT, size.height(), max(width - _INDENT, 80), height)
        self._view.place_buttons()
        return size.height() + height

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint a bar beside the thought text."""
        if self.opened:
            painter = QPainter(self)
            top = self._header.height() + 4.0
            bar = QRectF(7.0, top, 2.0, self.height() - top - 4.0)
            painter.fillRect(bar, QColor(self._theme.border))

    def _toggle(self, opened: bool) -> None:
        self.set_theme(self._theme)
        self._view.setVisible(opened)
        self.toggled.emit()

"""A titled part of a side panel that folds."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.theme import Theme
from app.widgets.fonts import derived
from app.widgets.icons import icon


class Section(QWidget):
    """A header button over ``content``; pressing it folds or unfolds the content."""

    toggled = Signal(bool)

    def __init__(
        self, title: str, content: QWidget, *, expanded: bool = True, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme: Theme | None = None
        self._content = content
        self._header = QToolButton()
        self._header.setText(title)
        self._header.setProperty("flat", True)
        self._header.setCheckable(True)
        self._header.setChecked(expanded)
        self._header.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._header.setIconSize(QSize(12, 12))
        self._header.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._header.setFont(derived(self.font(), 1.0, bold=True))
        self._header.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._header)
        layout.addWidget(content)
        content.setVisible(expanded)
        self._header.toggled.connect(self._on_toggled)
        self._describe()

    def is_expanded(self) -> bool:
        """Whether the content shows."""
        return self._header.isChecked()

    def set_expanded(self, expanded: bool) -> None:
        """Fold or unfold."""
        self._header.setChecked(expanded)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self._theme = theme
        self._describe()

    def _on_toggled(self, expanded: bool) -> None:
        self._content.setVisible(expanded)
        self._describe()
        self.toggled.emit(expanded)

    def _describe(self) -> None:
        expanded = self.is_expanded()
        state = "open" if expanded else "folded"
        self._header.setAccessibleName(f"{self._header.text()}, {state}")
        if self._theme is not None:
            name = "chevron-down" if expanded else "chevron-right"
            self._header.setIcon(icon(name, self._theme.muted))

"""The page that trains heads: what to train at the left, how it goes at the right."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from app.theme import Theme
from app.widgets.elided_label import ElidedLabel
from app.widgets.fonts import derived
from app.widgets.icons import icon
from app.widgets.training_form import TrainingForm
from app.widgets.training_run_view import TrainingRunView

_FORM_PX = 340
_LINE = "A head drafts several tokens at once and never changes what the model says."


class TrainingPage(QWidget):
    """Takes the place of the chat and its panels while it is shown."""

    backClicked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.form = TrainingForm()
        self.run = TrainingRunView()
        self._head = QFrame()
        self._head.setObjectName("trainingHead")
        self._back = QToolButton()
        self._title = QLabel("Train an MTP head")
        self._line = ElidedLabel(_LINE)
        self._edge = QFrame()
        self._build()

    def focus(self) -> None:
        """Take the keys."""
        self._back.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_theme(self, theme: Theme) -> None:
        """Take on the colours of ``theme``."""
        self._title.setFont(derived(self.font(), 1.08, bold=True))
        self._back.setIcon(icon("chevron-left", theme.muted))
        self._head.setStyleSheet(
            f"#trainingHead {{ background: {theme.surface};"
            f" border-bottom: 1px solid {theme.border}; }}"
        )
        self._edge.setStyleSheet(f"background: {theme.border};")
        self.form.set_theme(theme)
        self.run.set_theme(theme)

    def _build(self) -> None:
        self._back.setText("Chat")
        self._back.setProperty("flat", True)
        self._back.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._back.setIconSize(QSize(16, 16))
        self._back.setToolTip("Back to the chat; a training goes on.")
        self._back.setAccessibleName("Back to the chat")
        self._back.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._back.clicked.connect(self.backClicked)
        self._title.setProperty("heading", True)
        self._line.setProperty("muted", True)
        row = QHBoxLayout(self._head)
        row.setContentsMargins(8, 6, 16, 6)
        row.setSpacing(10)
        row.addWidget(self._back)
        row.addWidget(self._title)
        row.addWidget(self._line, 1)
        self.form.setFixedWidth(_FORM_PX)
        self._edge.setFixedWidth(1)
        parts = QHBoxLayout()
        parts.setSpacing(0)
        parts.addWidget(self.form)
        parts.addWidget(self._edge)
        parts.addWidget(self.run, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._head)
        column.addLayout(parts, 1)

"""The draft length: chosen by the engine, or fixed by the person."""

from typing import Any

from PySide6.QtWidgets import QCheckBox, QVBoxLayout

from app.widgets.fields import Field
from app.widgets.number_fields import SlidingField
from core.requests import AUTO_GAMMA, MAX_GAMMA

_FIRST_FIXED = 4


class GammaField(Field):
    """A box for the automatic length, and a slider for a fixed one while the box is empty."""

    def __init__(self) -> None:
        self._auto = QCheckBox("Automatic")
        self._fixed = SlidingField(
            0,
            MAX_GAMMA,
            usual=(0, MAX_GAMMA),
            decimals=0,
            step=1,
            zero_words="0 is plain decoding: nothing is drafted.",
        )
        super().__init__(self._auto, *self._fixed.inputs)
        self._auto.setAccessibleName("Gamma, automatic")
        # As tall as the inputs of other rows, so that the label beside it stands level.
        self._auto.setMinimumHeight(self._fixed.inputs[1].sizeHint().height())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        layout.addWidget(self._auto)
        layout.addWidget(self._fixed)
        self._fixed.set_value(_FIRST_FIXED)
        self._auto.clicked.connect(self._on_auto)
        self._fixed.edited.connect(self.edited)
        self._show_kind()

    def value(self) -> Any:
        """The fixed length in tokens, or "auto"."""
        return AUTO_GAMMA if self._auto.isChecked() else self._fixed.value()

    def set_value(self, value: Any) -> None:
        """Show ``value``; the fixed length that was there is kept behind an automatic one."""
        self._auto.setChecked(value == AUTO_GAMMA)
        if value != AUTO_GAMMA:
            self._fixed.set_value(value)
        self._show_kind()

    def _on_auto(self) -> None:
        self._show_kind()
        self.edited.emit()

    def _show_kind(self) -> None:
        self._fixed.setVisible(not self._auto.isChecked())

"""Numbers of the settings panel: a spin box, alone or with a slider for the usual range."""

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QDoubleSpinBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QSlider,
    QSpinBox,
)

from app.widgets.fields import Field
from app.widgets.fonts import derived

_SPIN_PX = 60


class WholeField(Field):
    """A whole number in a spin box.

    The lowest place of the box shows the word ``special`` and stands for ``special_value``.
    """

    def __init__(
        self, low: int, high: int, *, step: int = 1, special: str = "", special_value: int = 0
    ) -> None:
        self._spin = QSpinBox()
        super().__init__(self._spin)
        self._special_value = special_value if special else low
        self._spin.setRange(low, high)
        self._spin.setSingleStep(step)
        self._spin.setSpecialValueText(special)
        self._spin.setFont(derived(self.font(), 1.0))
        self._spin.setMinimumWidth(_SPIN_PX)
        _indent(self._spin)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._spin, 1)
        self._spin.valueChanged.connect(self.edited)

    def value(self) -> int:
        """The number."""
        value = self._spin.value()
        return self._special_value if value == self._spin.minimum() else value

    def set_value(self, value: Any) -> None:
        """Show ``value``, brought into the range."""
        blocked = self._spin.blockSignals(True)
        lowest = self._spin.minimum()
        self._spin.setValue(lowest if value == self._special_value else int(value))
        self._spin.blockSignals(blocked)


class SlidingField(Field):
    """A number with a slider over its usual range and a spin box over all that is allowed.

    ``decimals`` 0 holds whole numbers; ``zero_words`` say below what 0 means while it is chosen.
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        usual: tuple[float, float],
        decimals: int = 2,
        step: float = 0.05,
        zero_words: str = "",
    ) -> None:
        self._slider = QSlider(Qt.Orientation.Horizontal)
        self._spin = QDoubleSpinBox()
        super().__init__(self._slider, self._spin)
        self._whole = decimals == 0
        self._step = step
        self._spin.setDecimals(decimals)
        self._spin.setRange(low, high)
        self._spin.setSingleStep(step)
        self._spin.setFont(derived(self.font(), 1.0))
        self._spin.setFixedWidth(_SPIN_PX)
        # Not NoButtons: under a style sheet Qt leaves no room for the text then.
        self._spin.setProperty("compact", True)
        self._spin.setAlignment(Qt.AlignmentFlag.AlignRight)
        _indent(self._spin)
        self._slider.setRange(round(usual[0] / step), round(usual[1] / step))
        self._slider.setPageStep(max(1, self._slider.maximum() // 8))
        self._slider.setMinimumWidth(50)
        self._slider.setProperty("signed", usual[0] < 0)
        self._zero = QLabel(zero_words)
        self._zero.setProperty("muted", True)
        self._zero.setWordWrap(True)
        self._zero.setFont(derived(self.font(), 0.88))
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setHorizontalSpacing(8)
        layout.setVerticalSpacing(3)
        layout.addWidget(self._slider, 0, 0)
        layout.addWidget(self._spin, 0, 1)
        layout.addWidget(self._zero, 1, 0, 1, 2)
        self._keep(low)
        self._slider.valueChanged.connect(self._on_slider)
        self._spin.valueChanged.connect(self._on_spin)

    def value(self) -> float:
        """The number, with all its digits until the person changes it."""
        return int(self._value) if self._whole else self._value

    def set_value(self, value: Any) -> None:
        """Show ``value``, rounded to the digits of the box."""
        self._keep(float(value))
        self._show(self._spin, float(value))
        self._show(self._slider, round(float(value) / self._step))

    def _on_slider(self, place: int) -> None:
        self._show(self._spin, place * self._step)
        self._keep(self._spin.value())
        self.edited.emit()

    def _on_spin(self, value: float) -> None:
        self._show(self._slider, round(value / self._step))
        self._keep(value)
        self.edited.emit()

    def _keep(self, value: float) -> None:
        self._value = value
        self._zero.setVisible(value == 0 and bool(self._zero.text()))

    @staticmethod
    def _show(widget: QSlider | QDoubleSpinBox, value: float) -> None:
        blocked = widget.blockSignals(True)
        widget.setValue(value)  # type: ignore[arg-type]
        widget.blockSignals(blocked)


def _indent(spin: QAbstractSpinBox) -> None:
    """Give the text the same distance from the edge as in other fields."""
    spin.lineEdit().setTextMargins(5, 0, 5, 0)

"""The style sheet that Fusion wears on top of the palette: spacing, corners, focus rings."""

from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.theme import Theme

_ICONS = Path(__file__).resolve().parent.parent / "resources" / "icons"

_SHEET = Template("""
QToolTip {
    background: $raised; color: $text; border: 1px solid $outline; padding: 4px 6px;
}
QPushButton, QToolButton {
    background: $raised; color: $text; border: 1px solid $border; border-radius: 6px;
    padding: 4px 10px; min-height: 18px;
}
QToolButton { padding: 3px; }
QPushButton:hover, QToolButton:hover { background: $hover; }
QPushButton:pressed, QToolButton:pressed { background: $border; }
QPushButton:focus, QToolButton:focus { border: 1px solid $accent; }
QPushButton:disabled, QToolButton:disabled { color: $muted; background: $window; }
QPushButton[primary="true"] {
    background: $accent; color: $accent_text; border: 1px solid $accent;
}
QPushButton[primary="true"]:focus { border: 1px solid $text; }
QPushButton[primary="true"]:disabled {
    background: $window; color: $muted; border: 1px solid $border;
}
QPushButton[danger="true"] { color: $error; }
QToolButton[flat="true"], QPushButton[flat="true"] {
    background: transparent; border: 1px solid transparent;
}
QToolButton[flat="true"]:hover, QPushButton[flat="true"]:hover { background: $hover; }
QToolButton[flat="true"]:focus, QPushButton[flat="true"]:focus { border: 1px solid $accent; }
QLineEdit, QPlainTextEdit, QAbstractSpinBox, QComboBox {
    background: $surface; color: $text; border: 1px solid $outline; border-radius: 5px;
    padding: 2px 6px; min-height: 20px;
    selection-background-color: $accent; selection-color: $accent_text;
    placeholder-text-color: $muted;
}
QLineEdit > QToolButton { background: transparent; border: none; padding: 0; min-height: 0; }
QPlainTextEdit { padding: 3px; }
QLineEdit:focus, QPlainTextEdit:focus, QAbstractSpinBox:focus, QComboBox:focus {
    border: 2px solid $accent; padding: 1px 5px;
}
QLineEdit:disabled, QPlainTextEdit:disabled, QAbstractSpinBox:disabled, QComboBox:disabled {
    background: $window; color: $muted; border-color: $border;
}
QComboBox { combobox-popup: 0; }
QComboBox::drop-down { border: none; width: 22px; }
QComboBox::down-arrow { image: url("$icons/chevron-down-$name.svg"); width: 12px; height: 12px; }
QComboBox QAbstractItemView {
    background: $surface; color: $text; border: 1px solid $outline; outline: none; padding: 3px;
    placeholder-text-color: $muted;
    selection-background-color: $hover; selection-color: $text;
}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {
    border: none; width: 16px; background: transparent; subcontrol-origin: border;
}
QAbstractSpinBox::up-button { subcontrol-position: top right; margin: 2px 2px 0 0; }
QAbstractSpinBox::down-button { subcontrol-position: bottom right; margin: 0 2px 2px 0; }
QAbstractSpinBox::up-arrow { image: url("$icons/chevron-up-$name.svg"); width: 9px; height: 9px; }
QAbstractSpinBox::down-arrow {
    image: url("$icons/chevron-down-$name.svg"); width: 9px; height: 9px;
}
QAbstractSpinBox[compact="true"]::up-button, QAbstractSpinBox[compact="true"]::down-button {
    width: 0; margin: 0;
}
QAbstractSpinBox[compact="true"]::up-arrow, QAbstractSpinBox[compact="true"]::down-arrow {
    image: none; width: 0; height: 0;
}
QCheckBox { spacing: 7px; }
QCheckBox::indicator {
    width: 14px; height: 14px; border: 1px solid $outline; border-radius: 4px;
    background: $surface;
}
QCheckBox::indicator:checked {
    background: $accent; border-color: $accent; image: url("$icons/check-$name.svg");
}
QCheckBox:focus { color: $accent; }
QCheckBox::indicator:focus { border: 2px solid $accent; }
QSlider { min-height: 20px; }
QSlider::groove:horizontal { height: 4px; border-radius: 2px; background: $border; }
QSlider::sub-page:horizontal { height: 4px; border-radius: 2px; background: $accent; }
QSlider::handle:horizontal {
    width: 12px; height: 12px; margin: -5px 0; border-radius: 7px;
    background: $surface; border: 1px solid $outline;
}
QSlider::handle:horizontal:hover { background: $hover; }
QSlider::handle:horizontal:focus { border: 2px solid $accent; width: 10px; height: 10px; }
QSlider[signed="true"]::sub-page:horizontal { background: $border; }
QSlider::sub-page:horizontal:disabled { background: $outline; }
QProgressBar { background: $border; border: none; border-radius: 2px; color: $text; }
QProgressBar::chunk { background: $accent; border-radius: 2px; }
QScrollBar { background: transparent; border: none; margin: 0; }
QScrollBar:vertical { width: 10px; }
QScrollBar:horizontal { height: 10px; }
QScrollBar::handle { background: $outline; border-radius: 3px; margin: 2px; }
QScrollBar::handle:vertical { min-height: 28px; }
QScrollBar::handle:horizontal { min-width: 28px; }
QScrollBar::handle:hover { background: $muted; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; border: none; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QMenu { background: $surface; color: $text; border: 1px solid $outline; padding: 4px; }
QMenu::item { padding: 5px 22px 5px 12px; border-radius: 4px; }
QMenu::item:selected { background: $hover; }
QMenu::item:disabled { color: $muted; }
QMenu::separator { height: 1px; background: $border; margin: 4px 6px; }
QSplitter::handle { background: $border; }
QLabel[heading="true"] { font-weight: bold; }
QLabel[muted="true"] { color: $muted; }
QLabel[warning="true"] { color: $warning; }
QLabel[error="true"] { color: $error; }
""")


def stylesheet(theme: "Theme") -> str:
    """Return the style sheet of ``theme``.

    Any button takes the properties ``primary``, ``danger`` or ``flat``; any label ``heading``,
    ``muted``, ``warning`` or ``error``.
    """
    return _SHEET.substitute(
        name=theme.name,
        icons=_ICONS.as_posix(),
        window=theme.window,
        surface=theme.surface,
        raised=theme.raised,
        hover=theme.hover,
        border=theme.border,
        outline=theme.outline,
        text=theme.text,
        muted=theme.muted,
        accent=theme.accent,
        accent_text=theme.accent_text,
        error=theme.error,
        warning=theme.warning,
    )

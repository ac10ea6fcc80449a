"""Colours of the window, light and dark, and the cue that stands beside each colour.

Every text colour reaches 4.5:1 on every background it is used on, and every line, outline
and fill that carries meaning 3:1 on its surface; tests measure both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QPalette, QTextCharFormat
from PySide6.QtWidgets import QApplication

from app.stylesheet import stylesheet


@dataclass(frozen=True, slots=True)
class OriginStyle:
    """How the tokens of one origin are painted: a soft tint and an underline as second cue.

    ``underline_colour`` also fills the marks of this origin in plots and legends.
    """

    background: str
    underline_colour: str
    underline: QTextCharFormat.UnderlineStyle


@dataclass(frozen=True, slots=True)
class Theme:
    """One palette; colours are #rrggbb strings.

    ``border`` only separates; ``outline`` marks where a control is (3:1). ``plot_line`` is the
    faint line of single rounds, ``plot_limit`` the step line of the most a round can bring.
    """

    name: str
    window: str
    surface: str
    raised: str
    hover: str
    border: str
    outline: str
    text: str
    muted: str
    accent: str
    accent_text: str
    error: str
    warning: str
    code_background: str
    user_background: str
    plot_line: str
    plot_smooth: str
    plot_baseline: str
    plot_limit: str
    plot_grid: str
    origins: Mapping[str, OriginStyle]


_NONE = QTextCharFormat.UnderlineStyle.NoUnderline
_DASH = QTextCharFormat.UnderlineStyle.DashUnderline
_SOLID = QTextCharFormat.UnderlineStyle.SingleUnderline
_DOT = QTextCharFormat.UnderlineStyle.DotLine

LIGHT = Theme(
    name="light",
    window="#f6f7f9",
    surface="#ffffff",
    raised="#eceff3",
    hover="#e3e8ee",
    border="#d5dae1",
    outline="#7c8692",
    text="#1c2128",
    muted="#57606a",
    accent="#0b65c2",
    accent_text="#ffffff",
    error="#b3261e",
    warning="#8a5300",
    code_background="#f3f4f6",
    user_background="#e9f0fa",
    plot_line="#7291bd",
    plot_smooth="#0b65c2",
    plot_baseline="#8a5300",
    plot_limit="#57606a",
    plot_grid="#e6e9ee",
    origins=MappingProxyType(
        {
            "accepted": OriginStyle("#d0f0d8", "#1a7f37", _NONE),
            "resampled": OriginStyle("#ffe3cc", "#b35900", _DASH),
            "bonus": OriginStyle("#dbe8ff", "#0b65c2", _SOLID),
            "plain": OriginStyle("", "#57606a", _DOT),
        }
    ),
)

DARK = Theme(
    name="dark",
    window="#16191d",
    surface="#1d2126",
    raised="#282d34",
    hover="#323842",
    border="#3a414b",
    outline="#7b8694",
    text="#e6e9ed",
    muted="#a3acb8",
    accent="#6cb2ff",
    accent_text="#0b1623",
    error="#ff9b93",
    warning="#f0b866",
    code_background="#252a30",
    user_background="#243244",
    plot_line="#5b7ca6",
    plot_smooth="#6cb2ff",
    plot_baseline="#f0b866",
    plot_limit="#a3acb8",
    plot_grid="#2b3138",
    origins=MappingProxyType(
        {
            "accepted": OriginStyle("#1d4729", "#6fdd8b", _NONE),
            "resampled": OriginStyle("#563715", "#ffb570", _DASH),
            "bonus": OriginStyle("#203d65", "#86bdff", _SOLID),
            "plain": OriginStyle("", "#a3acb8", _DOT),
        }
    ),
)

MODES = ("system", "light", "dark")


def palette(theme: Theme) -> QPalette:
    """Return ``theme`` as the palette that standard widgets read."""
    role = QPalette.ColorRole
    colours = {
        role.Window: theme.window,
        role.WindowText: theme.text,
        role.Base: theme.surface,
        role.AlternateBase: theme.raised,
        role.Text: theme.text,
        role.Button: theme.raised,
        role.ButtonText: theme.text,
        role.BrightText: theme.error,
        role.Highlight: theme.accent,
        role.HighlightedText: theme.accent_text,
        role.Accent: theme.accent,
        role.Link: theme.accent,
        role.LinkVisited: theme.accent,
        role.ToolTipBase: theme.raised,
        role.ToolTipText: theme.text,
        role.PlaceholderText: theme.muted,
        role.Light: theme.raised,
        role.Midlight: theme.border,
        role.Mid: theme.border,
        role.Dark: theme.outline,
        role.Shadow: theme.border,
    }
    result = QPalette()
    for each, colour in colours.items():
        result.setColor(each, QColor(colour))
    for each in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, each, QColor(theme.muted))
    return result


def tabular(font: QFont) -> QFont:
    """Return a copy of ``font`` whose digits all have the same width."""
    result = QFont(font)
    result.setFeature(QFont.Tag("tnum"), 1)
    return result


class ThemeController(QObject):
    """Applies light, dark or the system's choice to the application, and follows the system live.

    Lives in the window thread. ``system_scheme`` is asked for what the system wants; by default
    it is the style hints' colour scheme or, where the platform names none, whether the palette
    the platform came with is dark.
    """

    changed = Signal(object)
    """The :class:`Theme` now in force, after the application has taken it on."""

    def __init__(
        self,
        app: QApplication,
        *,
        system_scheme: Callable[[], Qt.ColorScheme] | None = None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._app = app
        self._mode = "system"
        self._native_is_dark = app.palette().color(QPalette.ColorRole.Window).lightness() < 128
        self._system_scheme = system_scheme or app.styleHints().colorScheme
        self._theme: Theme | None = None
        app.setStyle("Fusion")
        app.styleHints().colorSchemeChanged.connect(self.refresh)
        self.refresh()

    @property
    def theme(self) -> Theme:
        """The theme in force."""
        return self._theme or LIGHT

    @property
    def mode(self) -> str:
        """What was asked for: "system", "light" or "dark"."""
        return self._mode

    def set_mode(self, mode: str) -> None:
        """Choose "system", "light" or "dark"; an unknown word means the system's choice."""
        self._mode = mode if mode in MODES else "system"
        scheme = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}.get(self._mode)
        # The platform draws the title bar and native dialogs; it should agree with the rest.
        if scheme is None:
            self._app.styleHints().unsetColorScheme()
        else:
            self._app.styleHints().setColorScheme(scheme)
        self.refresh()

    def refresh(self) -> None:
        """Read the system again and apply the theme that follows, if it is another one."""
        theme = DARK if self._wants_dark() else LIGHT
        if theme is self._theme:
            return
        self._theme = theme
        self._app.setPalette(palette(theme))
        self._app.setStyleSheet(stylesheet(theme))
        self.changed.emit(theme)

    def _wants_dark(self) -> bool:
        if self._mode != "system":
            return self._mode == "dark"
        scheme = self._system_scheme()
        if scheme == Qt.ColorScheme.Unknown:
            return self._native_is_dark
        return scheme == Qt.ColorScheme.Dark

"""Colours of the window, light and dark, and the cue that stands beside each colour.

Every text colour reaches 4.5:1 on every background it is used on; tests measure it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from PySide6.QtGui import QTextCharFormat


@dataclass(frozen=True, slots=True)
class OriginStyle:
    """How the tokens of one origin are painted: a soft tint and an underline as second cue."""

    background: str
    underline_colour: str
    underline: QTextCharFormat.UnderlineStyle


@dataclass(frozen=True, slots=True)
class Theme:
    """One palette; colours are #rrggbb strings."""

    name: str
    window: str
    surface: str
    raised: str
    border: str
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
    origins: Mapping[str, OriginStyle]


_NONE = QTextCharFormat.UnderlineStyle.NoUnderline
_DASH = QTextCharFormat.UnderlineStyle.DashUnderline
_SOLID = QTextCharFormat.UnderlineStyle.SingleUnderline

LIGHT = Theme(
    name="light",
    window="#f6f7f9",
    surface="#ffffff",
    raised="#eceff3",
    border="#d5dae1",
    text="#1c2128",
    muted="#57606a",
    accent="#0b65c2",
    accent_text="#ffffff",
    error="#b3261e",
    warning="#8a5300",
    code_background="#f3f4f6",
    user_background="#e9f0fa",
    plot_line="#9db8d9",
    plot_smooth="#0b65c2",
    plot_baseline="#8a5300",
    origins=MappingProxyType(
        {
            "accepted": OriginStyle("#d6f2dc", "#1a7f37", _NONE),
            "resampled": OriginStyle("#ffe3cc", "#b35900", _DASH),
            "bonus": OriginStyle("#dbe8ff", "#0b65c2", _SOLID),
            "plain": OriginStyle("", "#57606a", _NONE),
        }
    ),
)

DARK = Theme(
    name="dark",
    window="#16191d",
    surface="#1d2126",
    raised="#282d34",
    border="#3a414b",
    text="#e6e9ed",
    muted="#a3acb8",
    accent="#6cb2ff",
    accent_text="#0b1623",
    error="#ff9b93",
    warning="#f0b866",
    code_background="#252a30",
    user_background="#243244",
    plot_line="#47658a",
    plot_smooth="#6cb2ff",
    plot_baseline="#f0b866",
    origins=MappingProxyType(
        {
            "accepted": OriginStyle("#1f4a2c", "#6fdd8b", _NONE),
            "resampled": OriginStyle("#5a3a17", "#ffb570", _DASH),
            "bonus": OriginStyle("#203f68", "#86bdff", _SOLID),
            "plain": OriginStyle("", "#a3acb8", _NONE),
        }
    ),
)

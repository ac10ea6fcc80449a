"""The palettes hold what they promise: contrast, and a cue beside every colour."""

from dataclasses import fields
from itertools import combinations
from pathlib import Path

import pytest

from app.stylesheet import stylesheet
from app.theme import DARK, LIGHT, Theme, palette
from core.events import Origin

# Rejected drafts are never part of the reply.
SHOWN = [origin for origin in Origin if origin is not Origin.REJECTED]
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)


def luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour as WCAG 2 defines it."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours, 1 to 21."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def grounds(theme: Theme) -> list[str]:
    """Every background that text stands on."""
    return [
        theme.window,
        theme.surface,
        theme.raised,
        theme.hover,
        theme.code_background,
        theme.user_background,
    ]


def test_the_contrast_of_black_and_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)


@THEMES
@pytest.mark.parametrize("role", ["text", "muted", "error", "warning"])
def test_text_reaches_4_5_on_every_ground(theme: Theme, role: str) -> None:
    assert min(contrast(getattr(theme, role), ground) for ground in grounds(theme)) >= 4.5


@THEMES
@pytest.mark.parametrize("origin", SHOWN)
def test_text_and_muted_text_reach_4_5_on_the_tint_of_every_origin(
    theme: Theme, origin: Origin
) -> None:
    tint = theme.origins[origin].background or theme.surface
    assert contrast(theme.text, tint) >= 4.5
    assert contrast(theme.muted, tint) >= 4.5
    assert contrast(theme.accent, tint) >= 4.5


@THEMES
def test_text_on_the_accent_reaches_4_5(theme: Theme) -> None:
    assert contrast(theme.accent_text, theme.accent) >= 4.5


@THEMES
@pytest.mark.parametrize("role", ["outline", "accent", "plot_smooth", "plot_baseline"])
def test_outlines_and_focus_rings_reach_3_on_window_and_surface(theme: Theme, role: str) -> None:
    assert contrast(getattr(theme, role), theme.window) >= 3.0
    assert contrast(getattr(theme, role), theme.surface) >= 3.0


@THEMES
@pytest.mark.parametrize("role", ["plot_line", "plot_smooth", "plot_baseline", "plot_limit"])
def test_plot_lines_reach_3_on_the_surface(theme: Theme, role: str) -> None:
    assert contrast(getattr(theme, role), theme.surface) >= 3.0


@THEMES
@pytest.mark.parametrize("origin", SHOWN)
def test_the_underline_of_every_origin_reaches_3_on_its_tint(theme: Theme, origin: Origin) -> None:
    style = theme.origins[origin]
    assert contrast(style.underline_colour, style.background or theme.surface) >= 3.0
    assert contrast(style.underline_colour, theme.surface) >= 3.0


@THEMES
def test_origins_differ_by_underline_as_well_as_by_colour(theme: Theme) -> None:
    assert set(theme.origins) == {str(origin) for origin in SHOWN}
    for first, second in combinations(theme.origins.values(), 2):
        assert first.underline != second.underline
        assert first.background != second.background


@THEMES
def test_every_colour_is_written_as_rrggbb(theme: Theme) -> None:
    for field in fields(theme):
        value = getattr(theme, field.name)
        if field.name not in ("name", "origins"):
            assert value.startswith("#")
            assert len(value) == 7


@THEMES
def test_the_style_sheet_names_only_pictures_that_exist(theme: Theme) -> None:
    sheet = stylesheet(theme)
    pictures = [part.split('"')[0] for part in sheet.split('url("')[1:]]
    assert pictures
    assert all(Path(picture).is_file() for picture in pictures)
    assert "$" not in sheet


@THEMES
def test_the_pictures_of_the_style_sheet_have_the_colours_of_the_theme(theme: Theme) -> None:
    sheet = stylesheet(theme)
    for part in sheet.split('url("')[1:]:
        picture = Path(part.split('"')[0])
        expected = theme.accent_text if picture.name.startswith("check") else theme.muted
        assert expected in picture.read_text(encoding="utf-8")


@THEMES
def test_the_palette_carries_the_theme(theme: Theme) -> None:
    colours = palette(theme)
    assert colours.window().color().name() == theme.window
    assert colours.base().color().name() == theme.surface
    assert colours.text().color().name() == theme.text
    assert colours.highlight().color().name() == theme.accent

"""The application follows the system's light and dark, or the person's choice, while it runs."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.theme import DARK, LIGHT, ThemeController, tabular


class System:
    """A system whose colour scheme can be switched."""

    def __init__(self) -> None:
        self.scheme = Qt.ColorScheme.Light

    def __call__(self) -> Qt.ColorScheme:
        return self.scheme


@pytest.fixture
def system() -> System:
    return System()


@pytest.fixture
def controller(qapp: QApplication, system: System) -> Iterator[ThemeController]:
    palette, sheet = qapp.palette(), qapp.styleSheet()
    yield ThemeController(qapp, system_scheme=system)
    qapp.setStyleSheet(sheet)
    qapp.setPalette(palette)


def test_the_system_is_followed_while_the_program_runs(
    controller: ThemeController, system: System, qapp: QApplication
) -> None:
    told = []
    controller.changed.connect(told.append)
    assert controller.theme is LIGHT
    system.scheme = Qt.ColorScheme.Dark
    qapp.styleHints().colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert told == [DARK]
    assert qapp.palette().window().color().name() == DARK.window
    assert DARK.accent in qapp.styleSheet()


def test_a_chosen_theme_does_not_follow_the_system(
    controller: ThemeController, system: System
) -> None:
    controller.set_mode("light")
    system.scheme = Qt.ColorScheme.Dark
    controller.refresh()
    assert controller.theme is LIGHT
    controller.set_mode("system")
    assert controller.theme is DARK


def test_choosing_the_same_theme_again_tells_nothing(controller: ThemeController) -> None:
    controller.set_mode("dark")
    told = []
    controller.changed.connect(told.append)
    controller.set_mode("dark")
    assert told == []


def test_an_unknown_choice_means_the_system(controller: ThemeController) -> None:
    controller.set_mode("sepia")
    assert controller.mode == "system"


def test_a_system_without_a_colour_scheme_is_judged_by_its_palette(
    qapp: QApplication, controller: ThemeController
) -> None:
    controller.set_mode("dark")
    second = ThemeController(qapp, system_scheme=lambda: Qt.ColorScheme.Unknown)
    assert second.theme is DARK


def test_tabular_fonts_give_every_digit_one_width(qapp: QApplication) -> None:
    from PySide6.QtGui import QFontMetricsF

    metrics = QFontMetricsF(tabular(qapp.font()))
    assert len({metrics.horizontalAdvance(digit) for digit in "0123456789"}) == 1

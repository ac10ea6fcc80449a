"""The window where room is short: nothing overlaps, nothing is cut, one column for all."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtWidgets import QCheckBox, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.widgets.notice_bar import NoticeBar
from app.widgets.origin_legend import OriginLegend
from tests.helpers.window import Bench

FAULT = (
    "SmolLM2 could not be fetched from the Python package index. Check the network connection "
    "and start the download again; 2 of 5 parts are kept."
)
ACTIONS = (("fetch", "Try again"), ("not-now", "Not now"))


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(qtbot, tmp_path)
    yield bench
    bench.close()


def place(widget: QWidget, within: QWidget) -> QRect:
    return QRect(widget.mapTo(within, QPoint(0, 0)), widget.size())


def resize(bench: Bench, width: int, height: int) -> None:
    size = QSize(width, height).expandedTo(bench.window.minimumSize())
    bench.window.resize(width, height)
    bench.until(lambda: bench.window.size() == size)
    bench.qtbot.wait(1)


@pytest.mark.parametrize("size", [(400, 300), (900, 600), (1320, 860)])
def test_the_chat_stays_in_its_column_while_an_error_is_shown(
    bench: Bench, size: tuple[int, int]
) -> None:
    window = bench.window
    for bar in (window.model_bar, window.chat_bar):
        bar.show_notice(FAULT, ACTIONS, error=True)
    resize(bench, *size)
    panels = place(window.metrics, window).left()
    for widget in (window.header, window.model_bar, window.legend, window.composer):
        assert place(widget, window).right() < panels, widget
        assert widget.width() >= widget.minimumSizeHint().width(), widget
    assert place(window.metrics, window).right() < window.width()
    assert window.composer.visibleRegion().boundingRect().size() == window.composer.size()


def test_a_notice_puts_its_buttons_under_the_text_where_it_is_narrow(bench: Bench) -> None:
    resize(bench, 900, 600)
    bar = bench.window.model_bar
    bar.show_notice(FAULT, ACTIONS, error=True)
    button = bar.findChild(QPushButton, "fetch")
    bench.until(lambda: place(button, bar).top() >= place(bar._label, bar).bottom())
    assert bar._label.height() <= 5 * bar._label.fontMetrics().lineSpacing()
    resize(bench, 1600, 860)
    bench.until(lambda: place(button, bar).left() >= place(bar._label, bar).right())


def test_the_welcome_stays_in_sight_beside_an_error_at_900_by_600(bench: Bench) -> None:
    resize(bench, 900, 600)
    bench.window.model_bar.show_notice(FAULT, ACTIONS, error=True)
    title = bench.window.transcript.empty_state.findChildren(QLabel)[0]
    bench.until(lambda: not title.visibleRegion().isEmpty())
    assert title.visibleRegion().boundingRect().height() == title.height()


@pytest.mark.parametrize("width", [300, 332, 380, 500, 900])
def test_the_legend_shows_its_switch_and_every_origin_whole(qtbot: QtBot, width: int) -> None:
    around = QWidget()
    qtbot.addWidget(around)
    legend = OriginLegend(around)
    around.show()
    legend.resize(width, 60)
    qtbot.wait(1)
    switch = legend.findChild(QCheckBox)
    shown = [switch, *legend._swatches]
    assert legend.height() >= legend.sizeHint().height()
    for widget in shown:
        inside = place(widget, legend)
        assert inside.width() >= widget.sizeHint().width(), widget
        assert inside.right() < width, widget
    boxes = [place(widget, legend) for widget in shown]
    assert not any(a.intersects(b) for a in boxes for b in boxes if a is not b)


def test_the_numbers_under_a_reply_are_whole_at_900_by_600(bench: Bench) -> None:
    resize(bench, 900, 600)
    reply = bench.send_and_wait()
    footer = bench.window.transcript.message_widget(reply.id).footer
    label = footer._numbers
    bench.until(lambda: label.height() >= label.heightForWidth(label.width()) > 0)
    assert footer.geometry().bottom() <= footer.parentWidget().height()
    assert "…" not in label.text()
    longest = max(label.text().split(" "), key=label.fontMetrics().horizontalAdvance)
    assert label.fontMetrics().horizontalAdvance(longest) <= label.width()


def test_legend_notice_and_composer_keep_to_the_column_of_the_chat(bench: Bench) -> None:
    window = bench.window
    window.commands.show_conversations.trigger()
    window.commands.show_panels.trigger()
    resize(bench, 1320, 860)
    reply = bench.send_and_wait()
    window.chat_bar.show_notice(FAULT, ACTIONS)
    column = window.transcript.message_widget(reply.id)
    left = place(column, window).left()
    bench.until(lambda: place(window.composer._box, window).left() == left)
    assert abs(place(window.legend._switch, window).left() - left) <= 4
    bench.until(lambda: place(window.chat_bar._box, window).left() == left)
    assert place(window.chat_bar._box, window).width() == column.width()


def test_a_wide_notice_keeps_its_buttons_beside_its_text(qtbot: QtBot) -> None:
    bar = NoticeBar()
    qtbot.addWidget(bar)
    bar.resize(800, 60)
    bar.show_notice("Saved.", (("ok", "OK"),))
    button = bar.findChild(QPushButton, "ok")
    qtbot.waitUntil(lambda: place(button, bar).left() >= place(bar._label, bar).right())


def test_pair_drafter_gamma_and_rule_are_in_sight_at_1280_by_800(bench: Bench) -> None:
    resize(bench, 1280, 800)
    settings = bench.window.settings
    settings.set_settings(replace(settings.settings(), pair="smollm2-135m"))
    settings.set_reload_needed(False)
    for name in ("pair", "drafter", "gamma", "rule"):
        field = settings._fields[name]
        bench.until(
            lambda field=field: field.height() == field.visibleRegion().boundingRect().height() > 0
        )

"""The line at the bottom of the window."""

import pytest
from pytestqt.qtbot import QtBot

from app.widgets.status_line import StatusLine


@pytest.fixture
def line(qtbot: QtBot) -> StatusLine:
    widget = StatusLine()
    qtbot.addWidget(widget)
    widget.resize(900, 24)
    widget.show()
    return widget


def test_progress_stands_in_for_the_state_and_gives_way_to_it(line: StatusLine) -> None:
    line.set_progress(0.4, "Loading weights")
    assert line._state.text() == "Loading weights 40 %"
    assert line._progress.isVisible()
    line.set_state("Ready")
    assert line._state.text() == "Loading weights 40 %"
    line.clear_progress()
    assert line._state.text() == "Ready"
    assert not line._progress.isVisible()


def test_unknown_progress_runs_to_and_fro_and_stops(line: StatusLine) -> None:
    line.set_progress(None, "Reading the prompt")
    assert line._progress.maximum() == 0
    line.clear_progress()
    assert line._progress.maximum() > 0


@pytest.mark.parametrize(("fraction", "words"), [(-1.0, "Loading 0 %"), (7.0, "Loading 100 %")])
def test_progress_outside_its_range_is_brought_into_it(
    line: StatusLine, fraction: float, words: str
) -> None:
    line.set_progress(fraction, "Loading")
    assert line._state.text() == words


def test_context_and_memory_have_their_units(line: StatusLine) -> None:
    line.set_context(412, 8192)
    line.set_memory(612_000_000)
    assert line._context.text() == "context 412 / 8,192"
    assert line._memory.text() == "memory 612 MB"
    line.set_context(0, 0)
    line.set_memory(0)
    assert line._context.text() == line._memory.text() == ""


def test_a_nearly_full_context_is_marked(line: StatusLine) -> None:
    line.set_context(7_900, 8_192)
    assert line._context.property("warning")
    line.set_context(100, 8_192)
    assert not line._context.property("warning")


def test_a_long_reason_is_cut_and_whole_in_the_tooltip(line: StatusLine, qtbot: QtBot) -> None:
    reason = "speculation is off because the draft model has another vocabulary " * 4
    line.set_speculation(reason, False)
    line.set_context(7_900, 8_192)
    assert line._speculation.property("warning")
    qtbot.waitUntil(lambda: line._speculation.toolTip() == reason.strip())
    assert line.width() == 900

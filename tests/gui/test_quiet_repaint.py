"""While a reply streams the window does little: the processor that paints is the one that decodes.

What is counted here is what Qt is asked to do, never how long it takes.
"""

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.records import Message, MessageState
from app.theme import LIGHT
from app.widgets.main_window import MainWindow
from app.widgets.metrics_panel import MetricsPanel
from app.widgets.plot_card import LEAST_ROUNDS, next_length
from app.widgets.pulse import Pulse
from app.widgets.stat_grid import StatGrid
from app.widgets.status_line import StatusLine
from app.widgets.steady_label import SteadyLabel
from app.widgets.transcript import TranscriptView
from core.events import Token
from core.metrics import summarise
from tests.helpers.rounds import make_round, many_rounds


class Counter(QObject):
    """Counts events of one kind that a widget gets."""

    def __init__(self, widget: QWidget, kind: QEvent.Type) -> None:
        super().__init__(widget)
        self._kind = kind
        self.events: list[QEvent] = []
        self.heights: list[int] = []
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == self._kind:
            self.events.append(event)
            if isinstance(event, QPaintEvent):
                self.heights.append(event.rect().height())
        return False


def in_row(qtbot: QtBot, *widgets: QWidget) -> QWidget:
    window = QWidget()
    row = QHBoxLayout(window)
    for widget in widgets:
        row.addWidget(widget)
    qtbot.addWidget(window)
    window.resize(600, 60)
    window.show()
    settle()
    return window


def settle() -> None:
    """Let layouts and what they ask for come to rest."""
    for _ in range(3):
        QApplication.processEvents()


def test_another_number_of_as_many_digits_lays_nothing_out(qtbot: QtBot) -> None:
    label = SteadyLabel()
    label.setText("context 1,234 / 8,192")
    window = in_row(qtbot, label)
    asked = Counter(window, QEvent.Type.LayoutRequest)
    place = label.geometry()
    label.setText("context 1,111 / 8,192")
    QApplication.processEvents()
    assert label.geometry() == place
    assert not asked.events
    label.setText("context 11,234 / 18,192")
    QApplication.processEvents()
    assert label.width() > place.width()


@pytest.mark.parametrize("text", ["60 tok/s", "888 of 8"])
def test_a_steady_label_has_room_for_its_text_in_any_font(qtbot: QtBot, text: str) -> None:
    steady, plain = SteadyLabel(), QLabel()
    window = in_row(qtbot, steady, plain)
    assert window.isVisible()
    for size in (9, 18, 11):
        font = steady.font()
        font.setPointSize(size)
        for label in (steady, plain):
            label.setFont(font)
            label.setText(text)
        assert plain.sizeHint().width() <= steady.width() <= plain.sizeHint().width() + 12
        assert steady.height() >= plain.sizeHint().height()


def test_a_label_gives_its_room_back(qtbot: QtBot) -> None:
    label = SteadyLabel()
    window = in_row(qtbot, label)
    assert window.isVisible()
    label.setText("12,345 / 18,192 tokens: 4,153 too many")
    broad = label.width()
    label.setText("0 / 18,192 tokens")
    assert label.width() < broad


def test_a_new_number_in_the_grid_lays_nothing_out(qtbot: QtBot) -> None:
    grid = StatGrid()
    grid.add("tokens", "Tokens", "How many.")
    window = in_row(qtbot, grid)
    asked = Counter(window, QEvent.Type.LayoutRequest)
    for number in (1, 12, 123, 1234):
        grid.set_text("tokens", str(number))
        QApplication.processEvents()
    assert not asked.events


def test_the_status_line_is_not_laid_out_for_what_it_says_already(qtbot: QtBot) -> None:
    line = StatusLine()
    window = in_row(qtbot, line)
    line.set_state("Writing")
    line.set_context(1_200, 8_192)
    settle()
    asked = Counter(window, QEvent.Type.LayoutRequest)
    for tokens in range(1_201, 1_230):
        line.set_state("Writing")
        line.set_context(tokens, 8_192)
        QApplication.processEvents()
    assert not asked.events


def test_a_layout_of_the_window_starts_no_animation(qtbot: QtBot) -> None:
    window = MainWindow()
    qtbot.addWidget(window)
    assert not window.isAnimated()


def test_the_horizontal_axis_stays_while_there_is_room(qtbot: QtBot) -> None:
    panel = MetricsPanel()
    panel.set_theme(LIGHT)
    qtbot.addWidget(panel)
    panel.resize(300, 900)
    panel.show()
    rounds = many_rounds(120)
    panel.start_reply()
    view = panel.speed.plot.getPlotItem().getViewBox()
    ends = []
    for each in rounds:
        panel.add_round(each)
        panel._repaint_if_needed()
        ends.append(view.viewRange()[0][1])
        assert ends[-1] >= each.index + 1
    assert len(set(ends)) <= 10
    panel.finish_reply(summarise(rounds))
    assert view.viewRange()[0] == [1.0, 120.0]


@pytest.mark.parametrize("rounds", [LEAST_ROUNDS, 21, 99, 100, 101, 640, 999, 4096])
def test_the_room_for_the_next_rounds_is_at_most_a_quarter(rounds: int) -> None:
    assert rounds <= next_length(rounds) <= 1.3 * rounds


@pytest.fixture
def view(qtbot: QtBot) -> TranscriptView:
    widget = TranscriptView()
    qtbot.addWidget(widget)
    widget.resize(700, 900)
    widget.show()
    widget.set_messages([Message(1, 1, None, "user", "Go on.", 0.0)])
    widget.add_message(Message(2, 1, 1, "assistant", "", 0.0, state=MessageState.STREAMING))
    QApplication.processEvents()
    return widget


def token(text: str) -> Token:
    return Token(id=1, text=text, origin="plain", target_prob=0.5)


def test_a_growing_text_is_painted_only_where_it_grows(view: TranscriptView) -> None:
    view.append_tokens(2, [token("A line of words.\n\n" * 8)])
    view.flush()
    QApplication.processEvents()
    widget = view.message_widget(2)
    assert widget is not None
    painted = Counter(widget.body.views[0].viewport(), QEvent.Type.Paint)
    view.append_tokens(2, [token("One more.\n\nAnd another.")])
    view.flush()
    QApplication.processEvents()
    assert painted.heights
    assert max(painted.heights) < widget.body.height() / 2


def test_tokens_that_come_after_a_frame_is_due_are_shown_at_once(view: TranscriptView) -> None:
    view._shown_s = 0.0
    view.append_tokens(2, [token("Now")])
    widget = view.message_widget(2)
    assert widget is not None
    assert widget.body.views[0].toPlainText() == "Now"
    view.append_tokens(2, [token(" and later")])
    assert widget.body.views[0].toPlainText() == "Now"


def test_the_caret_steps_with_the_text_while_it_comes(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    pulse = Pulse(parent)
    steps: list[float] = []
    pulse.changed.connect(steps.append)
    pulse.step()
    assert not steps
    assert not pulse.running
    pulse.start()
    between = pulse._timer.interval()
    pulse.step()
    assert len(steps) == 1
    assert pulse._timer.interval() > between
    qtbot.waitUntil(lambda: pulse._timer.interval() == between)
    assert len(steps) == 2


def test_a_round_that_is_painted_later_loses_nothing(qtbot: QtBot) -> None:
    panel = MetricsPanel()
    panel.set_theme(LIGHT)
    qtbot.addWidget(panel)
    panel.show()
    panel.start_reply()
    panel.add_round(make_round(0, accepted=2))
    panel._repaint_if_needed()
    assert panel.speed._each.points()[0].tolist() == [1.0]

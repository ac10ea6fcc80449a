"""The live plots and numbers beside the chat."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from app.records import InForce
from app.theme import DARK, LIGHT
from app.widgets.metrics_panel import MetricsPanel
from app.widgets.plot_card import POINT_LIMIT, SMOOTH_LIMIT
from core.events import GammaBelief
from core.metrics import summarise
from tests.helpers.rounds import make_round, many_rounds, rounds_of


@pytest.fixture
def panel(qtbot: QtBot) -> MetricsPanel:
    widget = MetricsPanel()
    widget.set_theme(LIGHT)
    qtbot.addWidget(widget)
    widget.resize(300, 900)
    widget.show()
    return widget


def stream(panel: MetricsPanel, accepted: list[int]) -> None:
    rounds = rounds_of(accepted)
    panel.start_reply()
    for each in rounds:
        panel.add_round(each)
    panel.finish_reply(summarise(rounds))


def test_the_worked_example_shows_the_numbers_of_the_definitions(panel: MetricsPanel) -> None:
    stream(panel, [4, 0, 2, 4])
    assert panel.acceptance.value() == "3.5 of max 5"
    assert panel.numbers.grid.text("rate") == "62 %"
    assert [bar.value for bar in panel.numbers.positions.bars()] == ["75", "75", "50", "50"]
    histogram = {bar.label: bar.value for bar in panel.numbers.histogram.bars()}
    assert histogram == {"0": "1", "1": "0", "2": "1", "3": "0", "4": "2"}


def test_speed_leaves_the_reading_of_the_prompt_out(panel: MetricsPanel) -> None:
    stream(panel, [4] * 10)
    assert panel.speed.value() == "50 tok/s"
    assert panel.numbers.grid.text("first") == "1.10 s"
    assert panel.numbers.grid.text("tokens") == "50"


def test_rounds_are_painted_without_being_asked(panel: MetricsPanel, qtbot: QtBot) -> None:
    panel.start_reply()
    panel.add_round(make_round(0, accepted=2))
    qtbot.waitUntil(lambda: panel.acceptance.value() == "3.0 of max 5", timeout=30_000)


def test_the_timer_runs_only_while_a_reply_streams(panel: MetricsPanel) -> None:
    assert not panel.is_painting()
    panel.start_reply()
    assert panel.is_painting()
    panel.finish_reply(summarise([]))
    assert not panel.is_painting()
    panel.start_reply()
    panel.clear()
    assert not panel.is_painting()


def test_a_hidden_panel_catches_up_when_it_is_shown(panel: MetricsPanel) -> None:
    panel.hide()
    stream(panel, [4, 4])
    assert panel.acceptance.value() == "–"
    panel.show()
    assert panel.acceptance.value() == "5.0 of max 5"


def test_a_round_outside_a_reply_begins_one(panel: MetricsPanel) -> None:
    stream(panel, [4] * 10)
    panel.add_round(make_round(0, accepted=1))
    panel.finish_reply(summarise([make_round(0, accepted=1)]))
    assert panel.numbers.grid.text("rounds") == "1"


def test_an_empty_panel_says_what_will_be_here(panel: MetricsPanel) -> None:
    assert panel._empty.isVisible()
    assert not panel.speed.isVisible()
    stream(panel, [1])
    assert not panel._empty.isVisible()
    assert panel.speed.isVisible()
    panel.clear()
    assert panel._empty.isVisible()
    assert panel.speed.value() == "–"


def test_a_reply_without_rounds_shows_dashes(panel: MetricsPanel) -> None:
    stream(panel, [])
    assert panel.acceptance.value() == "–"
    assert panel.numbers.grid.text("rate") == "–"


def test_plain_decoding_divides_by_nothing(panel: MetricsPanel) -> None:
    rounds = [make_round(place, gamma=0, draft_ms=0.0) for place in range(3)]
    panel.start_reply()
    for each in rounds:
        panel.add_round(each)
    panel.finish_reply(summarise(rounds))
    assert panel.acceptance.value() == "1.0 of max 1"
    assert panel.numbers.grid.text("rate") == "–"
    assert panel.numbers.positions.bars() == ()


def test_the_speed_up_needs_a_measured_baseline(panel: MetricsPanel) -> None:
    stream(panel, [4] * 10)
    assert panel.numbers.grid.text("speed_up") == "–"
    panel.set_baseline(25.0)
    assert panel.numbers.grid.text("speed_up") == "2.00×"
    panel.set_baseline(100.0)
    assert panel.numbers.grid.text("speed_up") == "0.50× (slower)"
    panel.set_baseline(None)
    assert panel.numbers.grid.text("speed_up") == "–"


def test_the_gamma_shown_is_the_gamma_used(panel: MetricsPanel) -> None:
    panel.start_reply()
    panel.add_round(make_round(0, gamma=3, accepted=3))
    panel.add_round(make_round(1, gamma=7, accepted=7))
    panel.finish_reply(summarise([]))
    edges, limit = panel.acceptance._limit.points()
    assert limit.tolist() == [4.0, 8.0]
    assert edges.tolist() == [0.5, 1.5, 2.5]


def test_a_changing_gamma_is_counted_by_its_mean(panel: MetricsPanel) -> None:
    rounds = [make_round(0, gamma=6, accepted=4), make_round(1, gamma=0), make_round(2, gamma=1)]
    panel.start_reply()
    for each in rounds:
        panel.add_round(each)
    panel.finish_reply(summarise(rounds))
    assert panel.acceptance.value() == "2.3 of max 3.3"


def test_the_strip_keeps_its_scale_when_gamma_falls(panel: MetricsPanel) -> None:
    def height(gammas: list[int]) -> int:
        panel.start_reply()
        for place, gamma in enumerate(gammas):
            panel.add_round(make_round(place, gamma=gamma, accepted=gamma))
        panel.finish_reply(summarise([]))
        image = panel.strip.grab().toImage()
        newest = 1 + 7 * (min(len(gammas), panel.strip.columns()) - 1) + 2
        green = QColor(LIGHT.origins["accepted"].underline_colour)
        return sum(image.pixelColor(newest, y) == green for y in range(image.height()))

    fits = panel.strip.columns()
    assert height([8] + [4] * 3) == height([8] + [4] * 2 * fits) == height([4] * 3) // 2


def test_one_curve_is_reused_for_every_repaint(panel: MetricsPanel) -> None:
    before = list(panel.speed.plot.getPlotItem().items)
    for _ in range(5):
        stream(panel, [1, 2, 3])
    assert list(panel.speed.plot.getPlotItem().items) == before


def test_a_very_long_reply_hands_few_points_to_the_plots(panel: MetricsPanel) -> None:
    rounds = many_rounds(5_000)
    panel.start_reply()
    for each in rounds:
        panel.add_round(each)
    panel.finish_reply(summarise(rounds))
    for curve in (panel.speed._each, panel.speed._smooth, panel.acceptance._limit):
        assert len(curve.points()[0]) < 600
    assert panel.numbers.grid.text("rounds") == "5,000"


def test_what_is_in_force_is_said_with_the_reason_when_nothing_drafts(
    panel: MetricsPanel,
) -> None:
    panel.set_in_force(
        InForce(pair="SmolLM2", drafter="ngram", gamma="5", device="CPU", precision="int8")
    )
    assert panel._in_force.text() == "SmolLM2 · n-gram · gamma 5 · exact rule · CPU int8"
    assert not panel._off.isVisible()
    panel.set_in_force(
        InForce(drafter="off", device="CPU", off_reason="the pair has no draft model")
    )
    assert panel._off.isVisible()
    assert panel._off.text() == "Speculation is off because the pair has no draft model."


def test_a_lossy_rule_is_called_so_where_it_is_in_force(panel: MetricsPanel) -> None:
    panel.set_in_force(
        InForce(drafter="hybrid", gamma="automatic", rule="typical", lossy=True, device="cpu")
    )
    assert panel._in_force.text() == "hybrid · gamma automatic · lossy (typical) · CPU"


BELIEF = GammaBelief(
    source="ngram-3",
    acceptance=(0.9, 0.75),
    verify_ms=(20.0, 22.0, 30.0),
    draft_ms=0.031,
    reason="Drafts of 2 make the most tokens per second.",
)


def test_what_automatic_gamma_believes_is_painted_with_the_tick(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    panel.start_reply()
    panel.add_round(replace(make_round(0, accepted=2), belief=BELIEF))
    assert not panel.belief.isVisible()
    qtbot.waitUntil(panel.belief.isVisible, timeout=30_000)
    assert panel.belief.reason.text() == BELIEF.reason
    assert [bar.value for bar in panel.belief.acceptance.bars()] == ["90", "75"]
    assert [bar.value for bar in panel.belief.verify.bars()] == ["1.0", "1.1", "1.5"]
    assert panel.belief.grid.text("draft") == "0.03 ms"
    assert panel.belief.grid.text("source") == "n-gram of 3"


def test_the_belief_folds_and_waits_for_the_next_reply_to_have_one(panel: MetricsPanel) -> None:
    believed = [replace(make_round(0, accepted=2), belief=BELIEF)]
    panel.add_round(believed[0])
    panel.finish_reply(summarise(believed))
    assert panel.belief.isVisible()
    panel._belief_section.set_expanded(False)
    assert not panel.belief.isVisible()
    panel._belief_section.set_expanded(True)
    panel.start_reply()
    panel._repaint_if_needed()
    assert panel.belief.isVisible()
    panel.add_round(make_round(0, accepted=2))
    panel.finish_reply(summarise([make_round(0, accepted=2)]))
    assert not panel._belief_section.isVisible()


def test_a_belief_without_a_measured_row_shows_no_times(panel: MetricsPanel) -> None:
    panel.belief.show_belief(replace(BELIEF, verify_ms=(0.0, 0.0)))
    assert panel.belief.verify.bars() == ()
    panel.belief.show_belief(replace(BELIEF, verify_ms=()))
    assert panel.belief.verify.bars() == ()


def test_a_note_stays_with_its_reply(panel: MetricsPanel) -> None:
    stream(panel, [1])
    panel.set_note("Speculation is costing speed.")
    assert panel._note.isVisible()
    panel.start_reply()
    assert not panel._note.isVisible()
    panel.set_note("Again.")
    panel.clear()
    assert not panel._note.isVisible()


def test_the_plots_let_neither_mouse_nor_menu_change_their_range(panel: MetricsPanel) -> None:
    stream(panel, [1, 2, 3])
    for plot in (panel.speed.plot, panel.acceptance.plot):
        view = plot.getPlotItem().getViewBox()
        assert view.state["mouseEnabled"] == [False, False]
        assert view.menu is None


def test_the_wheel_over_a_plot_is_left_to_the_panel(
    panel: MetricsPanel, qapp: QApplication
) -> None:
    stream(panel, [1, 2, 3])
    before = panel.speed.plot.getPlotItem().getViewBox().viewRange()
    target = panel.speed.plot.viewport()
    event = QWheelEvent(
        QPointF(20, 20),
        QPointF(target.mapToGlobal(QPoint(20, 20))),
        QPoint(0, 0),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    qapp.sendEvent(target, event)
    # Not accepted: Qt hands a real one on to the scroll area.
    assert not event.isAccepted()
    assert panel.speed.plot.getPlotItem().getViewBox().viewRange() == before


def test_axes_carry_their_units(panel: MetricsPanel) -> None:
    speed, acceptance = (plot.getPlotItem() for plot in (panel.speed.plot, panel.acceptance.plot))
    assert speed.getAxis("left").labelText == "tokens/s"
    assert acceptance.getAxis("left").labelText == "tokens/round"
    assert speed.getAxis("bottom").labelText == acceptance.getAxis("bottom").labelText == "round"


@pytest.mark.parametrize("width", [260, 340, 700])
def test_nothing_is_wider_than_the_panel(panel: MetricsPanel, width: int) -> None:
    stream(panel, [4, 0, 2, 4] * 20)
    panel.resize(width, 500)
    QApplication.processEvents()
    assert panel.widget().width() <= panel.viewport().width()
    assert panel.horizontalScrollBar().maximum() == 0


def test_numbers_keep_their_width_while_they_grow(panel: MetricsPanel) -> None:
    stream(panel, [4])
    QApplication.processEvents()
    before = panel.speed._value.geometry()
    panel.speed.set_value("8,888 tok/s")
    QApplication.processEvents()
    assert panel.speed._value.geometry() == before


def test_the_palette_switches_while_the_panel_is_shown(
    panel: MetricsPanel, qapp: QApplication
) -> None:
    stream(panel, [4, 0, 2, 4])
    panel.set_theme(DARK)
    qapp.processEvents()
    ground = panel.speed.plot.grab().toImage().pixelColor(1, 1)
    assert ground.name() == DARK.surface


def test_the_strip_tells_about_the_round_under_the_pointer(panel: MetricsPanel) -> None:
    stream(panel, [4, 0, 2, 4])
    words = panel.strip._words_at(1 + 7 * 2)
    assert words.startswith("Round 3: gamma 4, 4 drafted, 2 accepted")
    assert "Round" not in panel.strip._words_at(-5).split(".")[0]


def test_a_repaint_of_a_full_buffer_draws_no_more_points_than_can_be_seen(
    panel: MetricsPanel, qapp: QApplication
) -> None:
    rounds = many_rounds(4_200)
    panel.start_reply()
    for each in rounds:
        panel.add_round(each)
    lines = [panel.speed._each, panel.acceptance._each, panel.acceptance._limit]
    smoothed = [panel.speed._smooth, panel.acceptance._smooth]
    for curve in lines + smoothed:  # rounds are only stored until the timer comes
        assert len(curve.points()[0]) == 0
    panel._repaint_if_needed()
    qapp.processEvents()
    panel.finish_reply(summarise([]))
    for curve in lines:
        assert 0 < len(curve.points()[0]) <= POINT_LIMIT + 2 * len(rounds) / POINT_LIMIT
    for curve in smoothed:
        assert 0 < len(curve.points()[0]) <= SMOOTH_LIMIT + 1
    assert panel.strip.columns() < 100


def test_the_number_of_tokens_a_round_says_what_it_counts_and_its_most(
    panel: MetricsPanel,
) -> None:
    stream(panel, [4, 0, 2, 4])
    assert panel.acceptance._title.text() == "Tokens a round"
    assert panel.acceptance._value.accessibleName() == "Tokens a round: 3.5 of max 5"


def show_tip(widget: QWidget) -> QWidget:
    middle = widget.rect().center()
    event = QHelpEvent(QEvent.Type.ToolTip, middle, widget.mapToGlobal(middle))
    QApplication.sendEvent(widget, event)
    return next(each for each in QApplication.topLevelWidgets() if each.inherits("QTipLabel"))


def test_tooltips_open_beside_the_plots_that_they_explain(
    panel: MetricsPanel, qtbot: QtBot
) -> None:
    panel.setGeometry(420, 0, 300, 700)
    stream(panel, [4, 0, 2, 4])
    cell = panel.numbers.grid._cells["rate"]
    for widget in (panel.speed.plot, panel.acceptance._title, panel.strip, cell):
        QToolTip.hideText()
        tip = show_tip(widget)
        assert widget.toolTip().split("\n")[0][:20] in tip.text()
        assert tip.geometry().right() < panel.mapToGlobal(QPoint(0, 0)).x()
    QToolTip.hideText()
    qtbot.waitUntil(lambda: not QToolTip.isVisible())

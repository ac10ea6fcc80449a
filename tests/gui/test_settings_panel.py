"""The settings beside the chat."""

from collections.abc import Iterator
from dataclasses import fields

import pytest
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QFontMetrics, QWheelEvent
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QLabel,
    QSlider,
    QStyleOptionViewItem,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.records import Choice
from app.settings import Settings
from app.theme import DARK, LIGHT
from app.widgets.fonts import derived
from app.widgets.settings_choices import DRAFTERS, RULES
from app.widgets.settings_panel import SettingsPanel
from core.requests import Rule

PAIRS = [
    Choice("smollm2-135m", "SmolLM2-135M", "ready"),
    Choice("qwen2.5-coder", "Qwen2.5-Coder", enabled=False, reason="Not downloaded yet: 1.9 GB."),
]


@pytest.fixture
def panel(qtbot: QtBot) -> Iterator[SettingsPanel]:
    widget = SettingsPanel()
    widget.set_theme(LIGHT)
    widget.set_pairs(PAIRS)
    qtbot.addWidget(widget)
    widget.resize(300, 700)
    widget.show()
    yield widget
    widget._timer.stop()


def type_into(qtbot: QtBot, widget: QWidget, text: str) -> None:
    widget.setFocus()
    qtbot.keyClicks(widget, text)


def gamma_slider(panel: SettingsPanel) -> QSlider:
    slider = panel._fields["gamma"].inputs[1]
    assert isinstance(slider, QSlider)
    return slider


def shown_notes(field: QWidget) -> list[str]:
    return [label.text() for label in field.findChildren(QLabel) if label.isVisible()]


def test_every_setting_has_a_control(panel: SettingsPanel) -> None:
    assert set(panel._fields) == {field.name for field in fields(Settings)}


def test_settings_come_back_as_they_were_set(panel: SettingsPanel) -> None:
    settings = Settings(
        pair="custom",
        target_path="/models/größe x.gguf",
        draft_path="/models/draft",
        head_path="/models/heads/größe",
        device="cpu",
        precision="int8",
        drafter="ngram",
        gamma=0,
        rule="ensemble",
        ensemble_weight=0.25,
        typical_epsilon=0.2,
        typical_delta=0.6,
        temperature=0.123456,
        top_k=40,
        top_p=0.9,
        min_p=0.05,
        repetition_penalty=1.3,
        presence_penalty=-0.5,
        frequency_penalty=3.0,
        seed=2**63 - 1,
        max_new_tokens=100_000,
        stop=("\n\n", "END", "a\\nb"),
        system_prompt="Be brief.\nBe kind.",
        theme="dark",
        colouring=False,
        font_points=14,
    )
    panel.set_settings(settings)
    assert panel.settings() == settings


def test_setting_settings_tells_nothing(panel: SettingsPanel, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(panel.changed, wait=400):
        panel.set_settings(Settings(gamma=3, system_prompt="x", seed=4, stop=("a",)))


def test_quick_changes_are_told_once(panel: SettingsPanel, qtbot: QtBot) -> None:
    told: list[Settings] = []
    panel.changed.connect(told.append)
    panel.set_settings(Settings(gamma=9))
    for value in (1, 2, 3):
        gamma_slider(panel).setValue(value)
    qtbot.waitUntil(lambda: bool(told))
    assert [settings.gamma for settings in told] == [3]


def test_a_change_that_is_taken_back_is_not_told(panel: SettingsPanel, qtbot: QtBot) -> None:
    panel.set_settings(Settings(gamma=5))
    slider = gamma_slider(panel)
    with qtbot.assertNotEmitted(panel.changed, wait=400):
        slider.setValue(9)
        slider.setValue(5)


def test_load_tells_the_last_change_first(panel: SettingsPanel, qtbot: QtBot) -> None:
    order: list[str] = []
    panel.changed.connect(lambda settings: order.append(f"gamma {settings.gamma}"))
    panel.loadClicked.connect(lambda: order.append("load"))
    panel.set_reload_needed(True)
    panel.set_settings(Settings(gamma=9))
    gamma_slider(panel).setValue(7)
    qtbot.mouseClick(panel._load, Qt.MouseButton.LeftButton)
    assert order == ["gamma 7", "load"]


def test_the_load_button_shows_only_when_it_is_needed(panel: SettingsPanel) -> None:
    assert not panel._banner.isVisible()
    panel.set_reload_needed(True)
    assert panel._banner.isVisible()
    assert panel._banner_text.text() == "The new pair is loaded when you press Load."
    panel.set_busy_loading(True)
    assert not panel._load.isEnabled()
    assert not panel._fields["pair"].isEnabled()
    panel.set_reload_needed(False)
    assert panel._banner.isVisible()
    panel.set_busy_loading(False)
    assert not panel._banner.isVisible()
    assert panel._fields["pair"].isEnabled()


def test_the_load_button_can_say_that_it_fetches_first(panel: SettingsPanel) -> None:
    panel.set_reload_needed(True, "1.6 GB to fetch.", "Fetch and load…")
    assert (panel._banner_text.text(), panel._load.text()) == (
        "1.6 GB to fetch.",
        "Fetch and load…",
    )
    panel.set_busy_loading(True)
    assert panel._load.text() == "Loading…"
    panel.set_busy_loading(False)
    panel.set_reload_needed(True)
    assert panel._load.text() == "Load"


def test_the_entries_of_a_list_are_as_high_as_their_lines(panel: SettingsPanel) -> None:
    box = panel._fields["drafter"].box
    delegate = box.itemDelegate()
    option = QStyleOptionViewItem()
    option.font = box.font()
    option.fontMetrics = box.fontMetrics()
    small = QFontMetrics(derived(box.font(), 0.88))
    for row, choice in enumerate(DRAFTERS):
        index = box.model().index(row, 0)
        room = QRect(0, 0, delegate._text_width(), 1000)
        text = small.boundingRect(room, Qt.TextFlag.TextWordWrap, choice.detail)
        spare = delegate.sizeHint(option, index).height() - box.fontMetrics().height()
        assert text.height() < spare < text.height() + small.height(), choice.detail


def test_a_refused_pair_is_greyed_out_with_its_reason(panel: SettingsPanel) -> None:
    box = panel._fields["pair"].box
    refused = box.model().item(1)
    assert not refused.isEnabled()
    assert refused.toolTip() == "Not downloaded yet: 1.9 GB."
    assert box.model().item(0).isEnabled()


def test_a_chosen_entry_that_is_refused_says_why(panel: SettingsPanel) -> None:
    panel.set_settings(Settings(drafter="model"))
    panel.set_drafters(
        [
            Choice("off", "Off"),
            Choice("model", "Draft model", enabled=False, reason="This pair has no draft."),
        ]
    )
    label = panel._fields["drafter"].findChild(QLabel)
    assert isinstance(label, QLabel)
    assert label.isVisible()
    assert label.text() == "This pair has no draft."


def test_a_precision_without_a_gpu_is_greyed_out_with_its_reason(panel: SettingsPanel) -> None:
    panel.set_precisions(
        [Choice("auto", "Automatic"), Choice("nf4", "nf4", enabled=False, reason="Needs a GPU.")]
    )
    box = panel._fields["precision"].box
    assert not box.model().item(1).isEnabled()
    assert box.model().item(1).toolTip() == "Needs a GPU."


def test_a_value_that_is_not_offered_is_kept_and_shown(panel: SettingsPanel) -> None:
    panel.set_settings(Settings(pair="gone"))
    panel.set_pairs(PAIRS)
    assert panel.settings().pair == "gone"
    assert panel._fields["pair"].box.currentText() == "gone"


@pytest.mark.parametrize(
    ("drafter", "shown"),
    [("hybrid", True), ("mtp", True), ("model", False), ("ngram", False), ("off", False)],
)
def test_a_head_can_be_chosen_where_one_can_draft(
    panel: SettingsPanel, drafter: str, shown: bool
) -> None:
    panel.set_settings(Settings(drafter=drafter))
    assert panel._fields["head_path"].isVisible() == shown


def test_emptying_the_head_leaves_its_row_under_the_hybrid(panel: SettingsPanel) -> None:
    panel.set_settings(Settings(drafter="hybrid", head_path="/models/heads/mine"))
    field = panel._fields["head_path"]
    clear = field.control.findChild(QToolButton)
    clear.click()
    assert panel.settings().head_path == ""
    assert field.isVisible()


def test_a_head_of_another_drafter_stays_in_sight_while_it_is_chosen(panel: SettingsPanel) -> None:
    panel.set_settings(Settings(drafter="ngram", head_path="/models/heads/mine"))
    assert panel._fields["head_path"].isVisible()
    assert panel.settings().head_path == "/models/heads/mine"


def test_an_empty_head_says_what_drafts_in_its_place(panel: SettingsPanel) -> None:
    edit = panel._fields["head_path"].control
    assert edit.placeholderText() == "looked for when the models are loaded"
    panel.set_head("mine-sequential")
    assert edit.placeholderText() == "mine-sequential"
    panel.set_head("")
    assert edit.placeholderText() == "looked for when the models are loaded"


def test_own_files_can_be_chosen_and_browsed(panel: SettingsPanel, qtbot: QtBot) -> None:
    assert not panel._fields["target_path"].isVisible()
    box: QComboBox = panel._fields["pair"].box
    row = box.findText("Own files")
    box.setCurrentIndex(row)
    box.activated.emit(row)
    assert panel._fields["target_path"].isVisible()
    asked: list[str] = []
    panel.browseClicked.connect(asked.append)
    for name in ("target_path", "draft_path"):
        button = panel._fields[name].inputs[1]
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert asked == ["target", "draft"]


def test_a_pasted_path_loses_blanks_and_quotes_around_it(panel: SettingsPanel) -> None:
    field = panel._fields["target_path"]
    field.control.setText('  "/my models/a b.gguf" ')
    assert field.value() == "/my models/a b.gguf"


def test_gamma_zero_says_that_it_is_plain_decoding(panel: SettingsPanel) -> None:
    panel.set_settings(Settings(gamma=3))
    assert shown_notes(panel._fields["gamma"]) == []
    gamma_slider(panel).setValue(0)
    [note] = shown_notes(panel._fields["gamma"])
    assert "plain decoding" in note


def test_an_automatic_gamma_hides_the_slider_and_keeps_its_place(
    panel: SettingsPanel, qtbot: QtBot
) -> None:
    panel.set_settings(Settings(gamma=7))
    box = panel._fields["gamma"].control
    assert gamma_slider(panel).isVisible()
    with qtbot.waitSignal(panel.changed) as automatic:
        qtbot.keyClick(box, Qt.Key.Key_Space)
    assert automatic.args[0].gamma == "auto"
    assert not gamma_slider(panel).isVisible()
    assert "most tokens per second" in box.toolTip()
    with qtbot.waitSignal(panel.changed) as fixed:
        qtbot.keyClick(box, Qt.Key.Key_Space)
    assert fixed.args[0].gamma == 7


def test_new_settings_begin_with_the_automatic_gamma(panel: SettingsPanel) -> None:
    assert panel._fields["gamma"].control.isChecked()
    assert panel.settings().gamma == "auto"


def test_every_rule_is_offered_with_a_line_and_the_lossy_ones_say_so(panel: SettingsPanel) -> None:
    field = panel._fields["rule"]
    assert {choice.value for choice in RULES} == set(Rule)
    for choice in RULES:
        assert ("lossy" in choice.title) == Rule(choice.value).lossy
        field.set_value(choice.value)
        assert shown_notes(field) == [choice.detail]


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        ("exact", set()),
        ("ensemble", {"ensemble_weight"}),
        ("typical", {"typical_epsilon", "typical_delta"}),
    ],
)
def test_a_rule_shows_its_own_numbers_only(
    panel: SettingsPanel, rule: str, shown: set[str]
) -> None:
    panel.set_settings(Settings(rule=rule))
    names = ("ensemble_weight", "typical_epsilon", "typical_delta")
    assert {name for name in names if panel._fields[name].isVisible()} == shown


def test_choosing_a_rule_brings_its_numbers(panel: SettingsPanel) -> None:
    box = panel._fields["rule"].box
    box.activated.emit(box.findText("Ensemble (lossy)"))
    assert panel._fields["ensemble_weight"].isVisible()
    assert panel.settings().rule == "ensemble"


def test_a_seed_takes_digits_only_and_stays_in_its_range(
    panel: SettingsPanel, qtbot: QtBot
) -> None:
    edit = panel._fields["seed"].control
    type_into(qtbot, edit, "12x-3")
    assert panel.settings().seed == 123
    edit.clear()
    assert panel.settings().seed is None
    type_into(qtbot, edit, "9" * 19)
    assert panel.settings().seed == 2**63 - 1


def test_the_dice_draw_a_seed_that_stays(panel: SettingsPanel, qtbot: QtBot) -> None:
    with qtbot.waitSignal(panel.changed):
        qtbot.mouseClick(panel._fields["seed"].inputs[1], Qt.MouseButton.LeftButton)
    assert panel.settings().seed is not None


def test_typing_a_system_prompt_is_told_and_keeps_the_cursor(
    panel: SettingsPanel, qtbot: QtBot
) -> None:
    edit = panel._fields["system_prompt"].control
    with qtbot.waitSignal(panel.changed) as blocker:
        type_into(qtbot, edit, "Be kind.")
    assert blocker.args[0].system_prompt == "Be kind."
    place = edit.textCursor().position()
    panel.set_settings(blocker.args[0])
    assert edit.textCursor().position() == place


def test_reset_keeps_the_models_and_can_be_taken_back(panel: SettingsPanel, qtbot: QtBot) -> None:
    mine = Settings(pair="custom", target_path="/a", gamma=9, system_prompt="Long work.", seed=5)
    panel.set_settings(mine)
    qtbot.mouseClick(panel._reset, Qt.MouseButton.LeftButton)
    assert panel.settings() == Settings(pair="custom", target_path="/a")
    qtbot.mouseClick(panel._reset, Qt.MouseButton.LeftButton)
    assert panel.settings() == mine


def wheel(widget: QWidget) -> QWheelEvent:
    event = QWheelEvent(
        QPointF(5, 5),
        QPointF(widget.mapToGlobal(QPoint(5, 5))),
        QPoint(0, 0),
        QPoint(0, -120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)
    return event


def test_the_wheel_over_a_control_without_focus_changes_nothing(panel: SettingsPanel) -> None:
    QApplication.processEvents()
    focus = panel.focusWidget()
    if focus is not None:
        focus.clearFocus()
    before = panel.settings()
    for field in panel._fields.values():
        for widget in field.inputs:
            event = wheel(widget)
            assert not event.isAccepted()
    assert panel.settings() == before


def test_every_control_can_be_reached_by_the_keyboard_and_has_a_name(
    panel: SettingsPanel,
) -> None:
    for name, field in panel._fields.items():
        for widget in field.inputs:
            assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus, name
            named = widget.accessibleName() or getattr(widget, "text", str)()
            assert named, name
            assert widget.toolTip(), name


def test_every_label_belongs_to_a_control(panel: SettingsPanel) -> None:
    labelled = {label.buddy() for label in panel.findChildren(QLabel) if label.buddy() is not None}
    for name, field in panel._fields.items():
        assert field.control in labelled or name in ("pair", "colouring")


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_nothing_is_wider_than_a_panel_of_260_pixels(panel: SettingsPanel, theme: object) -> None:
    panel.set_theme(theme)
    panel.set_settings(Settings(pair="custom", gamma=4, rule="typical"))
    panel.resize(260, 500)
    QApplication.processEvents()
    for slider in filter(QWidget.isVisible, panel.findChildren(QSlider)):
        right = slider.mapTo(panel, QPoint(slider.width(), 0)).x()
        assert right <= panel.width()
    content = panel._sections[0].parentWidget()
    assert content is not None
    assert content.minimumSizeHint().width() <= 260


def test_sections_fold(panel: SettingsPanel) -> None:
    section = panel._sections[2]
    assert panel._fields["temperature"].isVisible()
    section.set_expanded(False)
    assert not panel._fields["temperature"].isVisible()
    assert panel.settings() == Settings()

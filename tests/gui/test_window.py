"""The window itself: commands, folds, layout, look, and what is kept between starts."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QSize
from PySide6.QtWidgets import QLineEdit, QPushButton

from app.crash import CrashReport
from app.settings import Settings
from tests.helpers.fake_engine import FakeEngine, Gate
from tests.helpers.window import MakeBench


class Answers:
    """Answers for the person, and remembers what was shown."""

    def __init__(self) -> None:
        self.save_to: Path | None = None
        self.model: Path | None = None
        self.proposed = ""
        self.shown: list[str] = []

    def ask_save(self, title: str, name: str, kinds: str) -> Path | None:
        self.proposed = name
        return self.save_to

    def ask_model(self, title: str) -> Path | None:
        return self.model

    def ask_prompts(self, title: str) -> list[Path]:
        return []

    def show_keys(self, keys: Sequence[tuple[str, str]]) -> None:
        self.shown = [f"{text}: {key}" for text, key in keys]

    def show_text(self, title: str, text: str) -> None:
        self.shown = [title, text]


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def make_bench(make_bench: MakeBench, answers: Answers) -> MakeBench:
    return partial(make_bench, dialogs=answers)


def test_the_side_panels_fold_and_the_folds_are_kept(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.window.commands.show_conversations.trigger()
    bench.window.commands.show_panels.trigger()
    assert not bench.window.conversations.isVisible()
    assert not bench.window.metrics.isVisible()
    state = bench.window.layout_state()
    bench.close()
    again = make_bench()
    again.window.restore_layout(state)
    assert not again.window.conversations.isVisible()
    assert not again.window.metrics.isVisible()


@pytest.mark.parametrize("state", ["", "1 2 3", "a b c 1 1", "é é é 1 0"])
def test_a_layout_that_is_none_changes_nothing(make_bench: MakeBench, state: str) -> None:
    bench = make_bench()
    before = bench.window.size()
    bench.window.restore_layout(state)
    assert bench.window.size() == before
    assert bench.window.conversations.isVisible()


def test_the_window_holds_everything_at_900_by_600(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.window.resize(900, 600)
    bench.until(lambda: bench.window.size() == QSize(900, 600))
    assert bench.window.transcript.width() >= 300
    assert bench.window.conversations.width() > 0
    assert bench.window.metrics.width() > 0


def test_searching_unfolds_the_list_and_takes_the_keys(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.window.commands.show_conversations.trigger()
    bench.window.commands.search.trigger()
    assert bench.window.conversations.isVisible()


def test_a_theme_reaches_the_application_and_is_kept(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.window.commands.themes["dark"].trigger()
    assert bench.app.theme.theme.name == "dark"
    bench.close()
    again = make_bench()
    assert again.app.theme.theme.name == "dark"
    again.window.commands.themes["light"].trigger()
    assert again.app.theme.theme.name == "light"


def test_the_legend_the_menu_and_the_settings_agree_about_the_colours(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    bench.window.commands.colouring.trigger()
    assert not bench.window.legend.is_on()
    assert not bench.app.preferences.settings.colouring
    bench.window.legend.set_on(True)
    assert bench.window.commands.colouring.isChecked()
    assert bench.window.settings.settings().colouring


def test_the_size_of_the_text_changes_in_steps_and_returns(make_bench: MakeBench) -> None:
    bench = make_bench()
    start = bench.window.font().pointSize()
    bench.window.commands.larger.trigger()
    bench.window.commands.larger.trigger()
    assert bench.app.preferences.settings.font_points == start + 2
    for _ in range(60):
        bench.window.commands.smaller.trigger()
    assert bench.app.preferences.settings.font_points >= 1
    bench.window.commands.default_size.trigger()
    assert bench.app.preferences.settings.font_points == 0


def test_a_change_in_the_settings_is_kept_and_used_by_the_next_reply(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    settings = bench.window.settings.settings()
    changed = Settings(
        **{**_fields(settings), "temperature": 0.0, "gamma": 3, "system_prompt": "Be brief."}
    )
    bench.window.settings.set_settings(changed)
    bench.window.settings.changed.emit(changed)
    bench.send_and_wait()
    request = bench.engine.requests[-1]
    assert request.sampling.temperature == 0.0
    assert request.speculation.gamma == 3
    assert request.messages[0] == ("system", "Be brief.")
    bench.close()
    assert make_bench().app.preferences.settings == changed


def test_a_chat_is_exported_as_markdown_and_json(
    make_bench: MakeBench, answers: Answers, tmp_path: Path
) -> None:
    bench = make_bench()
    bench.send_and_wait("What is a/b: a hash table?")
    answers.save_to = tmp_path / "chat.md"
    bench.window.commands.export_markdown.trigger()
    assert "What is a/b" in answers.save_to.read_text(encoding="utf-8")
    assert "/" not in answers.proposed
    assert ":" not in answers.proposed
    answers.save_to = tmp_path / "chat"
    bench.window.commands.export_json.trigger()
    assert (tmp_path / "chat.json").exists()


def test_an_export_that_cannot_be_written_is_said_in_words(
    make_bench: MakeBench, answers: Answers, tmp_path: Path
) -> None:
    bench = make_bench()
    bench.window.commands.export_markdown.trigger()
    assert bench.window.chat_bar.text() == "There is no chat to export yet."
    bench.send_and_wait()
    answers.save_to = tmp_path / "model.gguf" / "chat.md"  # a file where a folder would have to be
    bench.window.commands.export_markdown.trigger()
    assert "model.gguf" in bench.window.chat_bar.text()


def test_a_model_file_that_is_chosen_becomes_the_pair(
    make_bench: MakeBench, answers: Answers, tmp_path: Path
) -> None:
    bench = make_bench()
    answers.model = tmp_path / "other.gguf"
    bench.window.settings.browseClicked.emit("target")
    settings = bench.app.preferences.settings
    assert (settings.pair, settings.target_path) == ("custom", str(answers.model))
    answers.model = None
    bench.window.settings.browseClicked.emit("draft")
    assert bench.app.preferences.settings == settings


def test_the_keys_are_listed_and_none_is_given_twice(
    make_bench: MakeBench, answers: Answers
) -> None:
    bench = make_bench()
    bench.window.commands.shortcuts.trigger()
    assert any(line.startswith("Stop the reply: ") for line in answers.shown)
    for key in ("Enter", "Shift+Enter", "Ctrl+End", "F2", "Del"):
        assert any(line.endswith(f": {key}") for line in answers.shown), key
    keys = [
        key.toString() for action in bench.window.actions() for key in action.shortcuts() if key
    ]
    assert len(keys) == len(set(keys))
    bench.window.commands.about.trigger()
    assert "Apache" in answers.shown[1]


def test_escape_stops_the_reply(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.engine.round_gate = Gate(open_=False)
    bench.send()
    bench.until(lambda: bench.app.chat.reply.message and bench.app.chat.reply.message.text)
    bench.window.commands.stop.trigger()
    bench.until(lambda: not bench.app.chat.reply.running)
    assert bench.thread()[-1].state == "stopped"


def test_a_prompt_of_the_empty_chat_is_sent_or_kept(make_bench: MakeBench) -> None:
    engine = FakeEngine(load_gate=Gate(open_=False))
    bench = make_bench(engine, load=False)
    bench.window.transcript.promptChosen.emit("Repeat this paragraph three times.")
    assert bench.window.composer.text() == "Repeat this paragraph three times."
    engine.load_gate.open()
    bench.until(lambda: bench.app.models.ready)
    bench.until_replied(lambda: bench.window.transcript.promptChosen.emit("Write some code."))
    assert bench.thread()[0].text == "Write some code."


def test_the_plots_of_a_stored_reply_return_with_its_chat(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.send_and_wait()
    first = bench.app.chat.current
    bench.window.conversations.newClicked.emit()
    bench.window.conversations.selected.emit(first)
    assert bench.app.chat.messages[-1].metrics["rounds"] == 3


def test_measuring_the_plain_speed_gives_a_baseline_and_leaves_the_chat_alone(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    bench.engine.rounds = bench.engine.rounds * 3
    bench.send_and_wait()
    bench.engine.rounds = tuple(
        type(round_)(**{**_fields(round_), "proposed": 0, "accepted": 0})
        for round_ in bench.engine.rounds
    )
    bench.window.commands.measure.trigger()
    bench.until(lambda: bench.app.models.baseline is not None)
    assert bench.engine.requests[-1].speculation.drafter == "off"
    assert len(bench.thread()) == 2
    assert bench.app.models.ready


def test_a_crash_is_said_and_its_report_can_be_copied(make_bench: MakeBench, qapp: object) -> None:
    bench = make_bench()
    bench.app.show_crash(CrashReport(sentence="Something went wrong.", text="Traceback: …"))
    assert bench.window.chat_bar.text() == "Something went wrong."
    bench.window.chat_bar.press("copy-report")
    assert qapp.clipboard().text() == "Traceback: …"
    assert bench.window.chat_bar.text() == ""


def test_every_button_of_the_header_has_a_name(make_bench: MakeBench) -> None:
    bench = make_bench()
    for button in bench.window.findChildren(QPushButton):
        assert button.text() or button.accessibleName() or button.toolTip()


def test_f2_renames_the_open_chat_wherever_the_focus_is(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.window.commands.rename.trigger()
    assert bench.window.chat_bar.text() == "There is no chat to rename yet."
    bench.send_and_wait("About trees")
    bench.window.commands.show_conversations.setChecked(False)
    bench.app.conversations.search("no such words")
    bench.window.composer.focus()
    bench.window.commands.rename.trigger()
    assert bench.window.conversations.isVisible()
    editor = bench.window.conversations.view.findChild(QLineEdit)
    assert editor.text() == "About trees"


def test_the_menu_asks_before_it_deletes_the_open_chat(make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.window.commands.delete.trigger()
    assert bench.window.chat_bar.text() == "There is no chat to delete yet."
    bench.send_and_wait()
    bench.window.commands.delete.trigger()
    assert len(bench.conversations()) == 1
    bench.window.conversations._delete.click()
    assert bench.conversations() == []


def test_commands_that_end_something_are_off_while_nothing_runs(make_bench: MakeBench) -> None:
    engine = FakeEngine(load_gate=Gate(open_=False), round_gate=Gate(open_=False))
    bench = make_bench(engine, load=False)
    commands = bench.window.commands
    assert commands.cancel_load.isEnabled()
    engine.load_gate.open()
    bench.until(lambda: bench.app.models.ready)
    assert not commands.cancel_load.isEnabled()
    assert not commands.stop.isEnabled()
    bench.send()
    bench.until(commands.stop.isEnabled)
    engine.round_gate.open()
    bench.until(lambda: not commands.stop.isEnabled())


def test_while_the_model_loads_nothing_warns_that_speculation_is_off(
    make_bench: MakeBench,
) -> None:
    engine = FakeEngine(load_gate=Gate(open_=False))
    bench = make_bench(engine, load=False)
    words = bench.window.status._speculation
    assert "off" not in words.text()
    assert not words.property("warning")
    engine.load_gate.open()
    bench.until(lambda: bench.app.models.ready)


def test_a_prompt_that_is_too_long_turns_send_off_and_enter_shows_the_way_out(
    make_bench: MakeBench,
) -> None:
    bench = make_bench()
    composer = bench.window.composer
    composer.set_text("word " * 5000)
    bench.until(lambda: not composer.button.isEnabled())
    assert composer.hint.startswith("Longer than the model can read")
    composer.edit.entered.emit()
    bench.until(lambda: bench.window.chat_bar.actions_shown() == ["keep-editing"])
    composer.set_text("word")
    bench.until(composer.button.isEnabled)


def test_the_load_line_moves_no_setting(make_bench: MakeBench) -> None:
    bench = make_bench()
    panel = bench.window.settings
    place = panel._fields["pair"].mapTo(panel, QPoint(0, 0))
    panel.set_reload_needed(True)
    bench.until(panel._banner.isVisible)
    bench.qtbot.wait(1)
    assert panel._fields["pair"].mapTo(panel, QPoint(0, 0)) == place


def _fields(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in type(value).__dataclass_fields__}

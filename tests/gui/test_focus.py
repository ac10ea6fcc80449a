"""Where the keyboard is: in the composer after every action, and heard by what asks."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from tests.helpers.fake_engine import Gate, make_round
from tests.helpers.window import Bench


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(qtbot, tmp_path)
    bench.window.activateWindow()
    bench.until(bench.window.isActiveWindow)
    yield bench
    bench.close()


def focused() -> QWidget | None:
    return QApplication.focusWidget()


def type_into_the_window(text: str) -> None:
    QTest.keyClicks(focused(), text)


def press(key: Qt.Key) -> None:
    QTest.keyClick(focused(), key)


def button(bench: Bench, words: str) -> QPushButton:
    within = bench.window.conversations.findChildren(QPushButton)
    return next(each for each in within if each.text() == words)


def ask_to_delete(bench: Bench) -> None:
    bench.window.conversations.ask_delete(bench.app.chat.current)
    assert focused() is button(bench, "Keep")


def after_an_example_prompt(bench: Bench) -> None:
    example = bench.window.transcript.empty_state.buttons[2]
    example.setFocus()
    bench.until_replied(example.click)


def after_a_version_arrow(bench: Bench) -> None:
    first = bench.send_and_wait()
    bench.engine.rounds = (make_round(0, ["Another", " answer", "."]),)
    bench.until_replied(lambda: bench.app.chat.regenerate(first.id))
    footer = bench.window.transcript.message_widget(bench.thread()[-1].id).footer
    arrow = footer.focus_chain()[0]
    arrow.setFocus()
    arrow.click()


def after_a_rename(bench: Bench) -> None:
    bench.send_and_wait()
    view = bench.window.conversations.view
    view.setFocus()
    view.edit(view.currentIndex())
    editor = view.findChild(QLineEdit)
    editor.setText("Other")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    bench.until(lambda: bench.conversations()[0].title == "Other")


def after_a_notice(bench: Bench) -> None:
    bench.window.model_bar.show_notice("Not here.", (("not-now", "Not now"),))
    answer = bench.window.model_bar.findChild(QPushButton, "not-now")
    answer.setFocus()
    answer.click()


def after_another_notice(bench: Bench) -> None:
    bench.window.model_bar.show_notice("Not here.", (("fetch", "Fetch"),))
    bench.window.model_bar.findChild(QPushButton, "fetch").setFocus()
    bench.window.model_bar.show_notice("Fetching.", (("stop", "Stop"),))


def after_folding_the_list(bench: Bench) -> None:
    bench.window.conversations.focus_search()
    bench.window.commands.show_conversations.trigger()


def after_the_widget_is_disabled(bench: Bench) -> None:
    bench.window.settings._load.show()
    bench.window.settings.set_reload_needed(True)
    bench.window.settings._load.setFocus()
    bench.window.settings.set_busy_loading(True)


@pytest.mark.parametrize(
    "act",
    [
        after_an_example_prompt,
        after_a_version_arrow,
        after_a_rename,
        after_a_notice,
        after_another_notice,
        after_folding_the_list,
        after_the_widget_is_disabled,
    ],
)
def test_what_is_typed_next_goes_into_the_composer(
    bench: Bench, act: Callable[[Bench], None]
) -> None:
    act(bench)
    bench.until(lambda: focused() is bench.window.composer.edit)
    type_into_the_window("next words")
    assert bench.window.composer.text() == "next words"
    assert bench.window.legend.is_on()


def test_tab_still_goes_from_widget_to_widget(bench: Bench) -> None:
    bench.window.composer.focus()
    press(Qt.Key.Key_Tab)
    assert focused() is not bench.window.composer.edit


def test_enter_presses_the_focused_button(bench: Bench) -> None:
    bench.send_and_wait()
    bench.window.conversations._new.setFocus()
    press(Qt.Key.Key_Return)
    assert bench.app.chat.current is None


def test_enter_on_keep_keeps_the_chat_and_on_delete_deletes_it(bench: Bench) -> None:
    bench.send_and_wait()
    ask_to_delete(bench)
    press(Qt.Key.Key_Return)
    assert not button(bench, "Keep").isVisible()
    assert len(bench.conversations()) == 1
    ask_to_delete(bench)
    button(bench, "Delete").setFocus()
    press(Qt.Key.Key_Enter)
    assert bench.conversations() == []


@pytest.mark.parametrize("streaming", [False, True])
def test_escape_keeps_the_chat_that_was_to_be_deleted(bench: Bench, streaming: bool) -> None:
    bench.engine.round_gate = Gate(open_=not streaming)
    if streaming:
        bench.send()
        bench.until(lambda: bench.app.chat.reply.message and bench.app.chat.reply.message.text)
    else:
        bench.send_and_wait()
    ask_to_delete(bench)
    press(Qt.Key.Key_Escape)
    assert not button(bench, "Keep").isVisible()
    assert len(bench.conversations()) == 1
    assert bench.app.chat.reply.running is streaming
    bench.engine.round_gate.open()
    bench.until(lambda: not bench.app.chat.reply.running)


def begin_a_chat(bench: Bench) -> None:
    bench.window.commands.new_chat.trigger()


def begin_a_chat_with_the_button(bench: Bench) -> None:
    bench.window.conversations._new.click()


def choose_another_chat(bench: Bench) -> None:
    view = bench.window.conversations.view
    rows = [bench.window.conversations.model.index_of(each.id) for each in bench.conversations()]
    view.setCurrentIndex(next(row for row in rows if row != view.currentIndex()))


@pytest.mark.parametrize("act", [begin_a_chat, begin_a_chat_with_the_button, choose_another_chat])
def test_another_chat_takes_the_question_about_deleting_back(
    bench: Bench, act: Callable[[Bench], None]
) -> None:
    bench.send_and_wait("One")
    bench.app.chat.open(None)
    bench.send_and_wait("Two")
    ask_to_delete(bench)
    act(bench)
    assert not button(bench, "Keep").isVisible()
    assert len(bench.conversations()) == 2


def test_a_new_chat_on_a_new_chat_takes_the_question_back(bench: Bench) -> None:
    bench.send_and_wait()
    chat = bench.app.chat.current
    bench.app.chat.open(None)
    bench.window.conversations.ask_delete(chat)
    begin_a_chat(bench)
    assert not button(bench, "Keep").isVisible()

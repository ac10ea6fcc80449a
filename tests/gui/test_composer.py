"""Writing a message: Enter, new lines, input methods, long pastes, the counter."""

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.theme import DARK
from app.widgets.composer import Composer
from app.widgets.message_edit import MAX_LINES


@pytest.fixture
def composer(qtbot: QtBot) -> Composer:
    result = Composer()
    qtbot.addWidget(result)
    result.resize(700, 200)
    result.show()
    result.focus()
    return result


@pytest.fixture
def sent(composer: Composer) -> list[str]:
    texts: list[str] = []
    composer.submitted.connect(texts.append)
    return texts


def test_enter_sends_and_the_text_stays_until_cleared(
    composer: Composer, sent: list[str], qtbot: QtBot
) -> None:
    qtbot.keyClicks(composer.edit, "Hello")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == ["Hello"]
    assert composer.text() == "Hello"
    composer.clear()
    assert composer.text() == ""


def test_shift_enter_is_a_new_line(composer: Composer, sent: list[str], qtbot: QtBot) -> None:
    qtbot.keyClicks(composer.edit, "a")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(composer.edit, "b")
    assert composer.text() == "a\nb"
    assert sent == []


def test_enter_that_confirms_a_composition_does_not_send(
    composer: Composer, sent: list[str], qtbot: QtBot
) -> None:
    QApplication.sendEvent(composer.edit, QInputMethodEvent("にほん", []))
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == []
    commit = QInputMethodEvent()
    commit.setCommitString("日本")
    QApplication.sendEvent(composer.edit, commit)
    assert composer.text() == "日本"
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == ["日本"]


@pytest.mark.parametrize("text", ["", "   ", "\n\n"])
def test_an_empty_text_is_not_sent(
    composer: Composer, sent: list[str], qtbot: QtBot, text: str
) -> None:
    composer.set_text(text)
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    composer.button.click()
    assert sent == []
    assert not composer.button.isEnabled()


def test_a_refused_message_is_kept_and_the_reason_is_said(
    composer: Composer, sent: list[str], qtbot: QtBot
) -> None:
    composer.set_text("Hello")
    composer.set_enabled_to_send(False, "No model is loaded yet.")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == []
    assert composer.text() == "Hello"
    assert composer.hint == "No model is loaded yet."
    composer.set_enabled_to_send(True, "")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == ["Hello"]


def test_send_becomes_stop_and_escape_stops(
    composer: Composer, sent: list[str], qtbot: QtBot
) -> None:
    stops: list[bool] = []
    composer.stopClicked.connect(lambda: stops.append(True))
    qtbot.keyClick(composer.edit, Qt.Key.Key_Escape)
    assert stops == []
    composer.set_busy(True)
    assert composer.button.text() == "Stop"
    qtbot.keyClick(composer.edit, Qt.Key.Key_Escape)
    composer.button.click()
    assert len(stops) == 2
    composer.set_text("next")
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    assert sent == []
    assert composer.text() == "next"
    composer.set_busy(False)
    assert composer.button.text() == "Send"


def test_a_paste_of_5000_words_is_one_change_and_whole(composer: Composer) -> None:
    text = " ".join(f"word{n}" for n in range(5000)) + "\n<b>end</b>"
    data = QMimeData()
    data.setHtml("<b>rich</b>")
    data.setText(text)
    changes: list[bool] = []
    composer.textEdited.connect(lambda _: changes.append(True))
    composer.edit.insertFromMimeData(data)
    QApplication.processEvents()
    assert composer.text() == text
    assert len(changes) == 1
    composer.edit.undo()
    assert composer.text() == ""


def test_the_field_grows_to_eight_lines(composer: Composer) -> None:
    one = composer.edit.height()
    composer.set_text("\n".join("abc"))
    three = composer.edit.height()
    composer.set_text("\n".join("x" * 30))
    line = composer.edit.fontMetrics().lineSpacing()
    assert three - one == 2 * line
    assert composer.edit.height() - one == (MAX_LINES - 1) * line
    composer.clear()
    assert composer.edit.height() == one


def test_the_counter_warns_in_words(composer: Composer) -> None:
    composer.set_token_count(412, 8192)
    assert composer.count == "412 / 8,192 tokens"
    composer.set_token_count(8000, 8192)
    assert "nearly full" in composer.count
    composer.set_token_count(9000, 8192)
    assert "808 too many" in composer.count
    composer.set_token_count(0, 0)
    assert composer.count == ""


def test_a_change_of_theme_keeps_text_and_counter(composer: Composer) -> None:
    composer.set_text("Hello")
    composer.set_token_count(9000, 8192)
    composer.set_theme(DARK)
    assert composer.text() == "Hello"
    assert "too many" in composer.count


def test_what_is_written_is_told(composer: Composer, qtbot: QtBot) -> None:
    with qtbot.waitSignal(composer.textEdited) as edited:
        qtbot.keyClicks(composer.edit, "a")
    assert edited.args == ["a"]

"""The chat as it is read: opening, following, scrolling, wearing another theme."""

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.records import Message, MessageState
from app.rendering.document import DocumentWriter
from app.rendering.stream import StreamRenderer
from app.theme import DARK
from app.widgets.empty_state import PROMPTS
from app.widgets.markdown_view import MarkdownView
from app.widgets.transcript import TranscriptView
from tests.helpers.rendering import spans_of, tokens_of
from tests.helpers.transcript import reply, streaming, text_of, user, widget_of

LONG = "\n\n".join(f"Paragraph {n} with some words to fill a line of text." for n in range(60))


@pytest.fixture
def view(qtbot: QtBot) -> TranscriptView:
    result = TranscriptView()
    qtbot.addWidget(result)
    result.resize(700, 500)
    result.show()
    return result


def test_the_empty_state_offers_prompts_and_goes_with_the_first_message(
    view: TranscriptView, qtbot: QtBot
) -> None:
    empty = view.empty_state
    assert empty.isVisible()
    with qtbot.waitSignal(view.promptChosen) as chosen:
        empty.buttons[0].click()
    assert chosen.args == [PROMPTS[0][2]]
    assert PROMPTS[0][2].startswith("Repeat this paragraph three times:")
    view.add_message(user())
    assert not empty.isVisible()
    view.clear()
    assert empty.isVisible()


def test_streamed_text_follows_the_end(view: TranscriptView) -> None:
    view.set_messages([user()])
    view.add_message(streaming())
    for token in tokens_of([f"line {n}\n\n" for n in range(80)], ["accepted"] * 80):
        view.append_tokens(2, [token])
    view.flush()
    bar = view.verticalScrollBar()
    assert bar.maximum() > 0
    assert bar.value() == bar.maximum()


def test_a_reader_who_scrolled_up_is_left_alone_and_can_jump_back(
    view: TranscriptView, qtbot: QtBot
) -> None:
    view.set_messages([user(), reply(LONG), user("More", 3)])
    view.add_message(streaming(4))
    qtbot.waitUntil(lambda: not view.working)
    view.verticalScrollBar().setValue(100)
    assert not view.following
    assert view.jump_button.isVisible()
    view.append_tokens(4, tokens_of(["word\n\n"] * 40, ["plain"] * 40))
    view.flush()
    assert view.verticalScrollBar().value() == 100
    qtbot.mouseClick(view.jump_button, Qt.MouseButton.LeftButton)
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    assert view.following
    assert not view.jump_button.isVisible()


def test_a_resize_keeps_what_is_read_in_sight(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_messages([message for n in range(6) for message in _turn(n)])
    qtbot.waitUntil(lambda: not view.working)
    third = widget_of(view, 5)
    view.verticalScrollBar().setValue(third.y() + 5)
    view.resize(500, 500)
    qtbot.waitUntil(lambda: not view.working)
    assert third.y() <= view.verticalScrollBar().value() <= third.y() + third.height()


def _turn(number: int) -> tuple[Message, Message]:
    text = f"# Turn {number}\n\n{LONG[:1500]}"
    return user("Go on", 2 * number + 1), reply(text, 2 * number + 2)


def test_tab_goes_through_the_messages_in_reading_order(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_messages([message for n in range(8) for message in _turn(n)])
    qtbot.waitUntil(lambda: not view.working)
    expected = [w for n in range(1, 17) for w in widget_of(view, n).focus_chain()]
    found = []
    widget = view.nextInFocusChain()
    while widget is not view and len(found) < len(expected):
        if widget in expected:
            found.append(widget)
        widget = widget.nextInFocusChain()
    assert found == expected


def test_a_long_conversation_opens_with_only_its_end_rendered(
    view: TranscriptView, qtbot: QtBot
) -> None:
    messages = [message for n in range(30) for message in _turn(n)]
    view.set_messages(messages)
    assert sum(widget_of(view, n).rendered for n in range(1, 61)) <= 12
    assert widget_of(view, 60).rendered
    assert not widget_of(view, 2).rendered
    qtbot.waitUntil(lambda: not view.working, timeout=20_000)
    assert widget_of(view, 2).rendered
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


def test_an_error_at_the_end_goes_with_the_next_message(view: TranscriptView) -> None:
    view.set_messages([user()])
    view.set_error("No model is loaded.", "Load one.")
    assert view.error_box.isVisible()
    assert view.error_box.words == "No model is loaded. Load one."
    view.add_message(user("Again", 3))
    assert not view.error_box.isVisible()


def test_theme_and_font_change_live(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_messages([user(), reply("Some text\n\n```\ncode\n```\n\n| a |\n|---|\n| b |\n")])
    height = widget_of(view).height()
    text = text_of(view)
    view.set_theme(DARK)
    assert widget_of(view).height() == height
    view.set_font_points(24)
    qtbot.waitUntil(lambda: not view.working)
    assert widget_of(view).height() > height
    assert text_of(view) == text


def test_the_colouring_switch_writes_no_text_of_a_long_reply_again(
    view: TranscriptView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"word{n} " + ("\n\n" if n % 40 == 0 else "") for n in range(4000)]
    origins = [("accepted", "accepted", "bonus", "resampled")[n % 4] for n in range(4000)]
    tokens = tokens_of(texts, origins)
    view.set_messages([reply("".join(texts), spans=spans_of(tokens))])
    qtbot.waitUntil(lambda: not view.working)
    written: list[str] = []
    for owner, name in (
        (DocumentWriter, "show"),
        (DocumentWriter, "rewrite"),
        (DocumentWriter, "_append"),
        (StreamRenderer, "update"),
    ):
        monkeypatch.setattr(owner, name, lambda *_, name=name, **__: written.append(name))
    [shown] = widget_of(view).body.views
    layouts: list[tuple[int, int, int]] = []
    shown.document().contentsChange.connect(lambda *change: layouts.append(change))
    view.set_colouring(False)
    assert not shown.writer.colouring
    assert written == []
    # All tokens in one step, so that the document is laid out no more than once.
    assert len(layouts) <= 1


def test_a_long_reply_is_opened_in_parts_and_shown_whole(
    view: TranscriptView, qtbot: QtBot
) -> None:
    text = "\n\n".join(f"Paragraph {n} of **many**, to fill the chat." for n in range(1200))
    view.set_messages([user(), reply(text)])
    assert 0 < len(text_of(view)) < len(text) / 4
    qtbot.waitUntil(lambda: not view.working, timeout=20_000)
    assert text_of(view) == text.replace("**", "").replace("\n\n", "\n")
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


def test_tokens_of_a_message_that_is_not_shown_are_ignored(view: TranscriptView) -> None:
    view.append_tokens(99, tokens_of(["x"], ["plain"]))
    view.finish_message(reply("x", message_id=99))
    assert view.message_widget(99) is None


def test_the_wheel_over_a_text_scrolls_the_chat(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_messages([reply(LONG)])
    (text_view,) = widget_of(view).body.views
    assert isinstance(text_view, MarkdownView)
    before = view.verticalScrollBar().value()
    qtbot.keyClick(text_view, Qt.Key.Key_PageUp)
    assert view.verticalScrollBar().value() < before


def test_home_and_end_go_to_the_ends(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_messages([reply(LONG)])
    (text_view,) = widget_of(view).body.views
    qtbot.keyClick(text_view, Qt.Key.Key_Home)
    assert view.verticalScrollBar().value() == 0
    qtbot.keyClick(text_view, Qt.Key.Key_End)
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    assert view.following


def test_a_reply_that_goes_on_is_shown_from_what_was_stored(view: TranscriptView) -> None:
    tokens = tokens_of(["Some", " text"], ["plain"] * 2)
    stored = reply("Some text", spans=spans_of(tokens), state=MessageState.STREAMING)
    view.set_messages([user(), stored])
    view.append_tokens(2, tokens_of([" goes on"], ["accepted"]))
    view.flush()
    assert text_of(view) == "Some text goes on"

"""The chat as it is read: following, scrolling, folding, copying, errors."""

import time

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QEnterEvent, QTextCursor
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from app.records import Message, MessageState
from app.theme import DARK
from app.widgets.empty_state import PROMPTS
from app.widgets.markdown_view import MarkdownView
from app.widgets.message import MessageWidget
from app.widgets.quiet_button import QuietButton
from app.widgets.thinking_section import ThinkingSection
from app.widgets.transcript import TranscriptView
from tests.helpers.rendering import spans_of, tokens_of

METRICS: dict[str, object] = {
    "tokens_per_second": 38.2,
    "proposed": 100,
    "mean_acceptance_length": 2.7,
    "acceptance_rate": 0.71,
    "time_to_first_token_ms": 1210.0,
}
LONG = "\n\n".join(f"Paragraph {n} with some words to fill a line of text." for n in range(60))


@pytest.fixture
def view(qtbot: QtBot) -> TranscriptView:
    result = TranscriptView()
    qtbot.addWidget(result)
    result.resize(700, 500)
    result.show()
    return result


def user(text: str = "Hello", message_id: int = 1) -> Message:
    return Message(message_id, 1, None, "user", text, 0.0)


def reply(text: str = "", message_id: int = 2, **values: object) -> Message:
    return Message(message_id, 1, 1, "assistant", text, 0.0, **values)


def streaming(message_id: int = 2) -> Message:
    return reply(message_id=message_id, state=MessageState.STREAMING)


def widget_of(view: TranscriptView, message_id: int = 2) -> MessageWidget:
    widget = view.message_widget(message_id)
    assert widget is not None
    return widget


def text_of(view: TranscriptView, message_id: int = 2) -> str:
    views = widget_of(view, message_id).body.views
    return "\n".join(each.toPlainText() for each in views if not each.isHidden())


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


def test_a_long_conversation_opens_with_only_its_end_rendered(
    view: TranscriptView, qtbot: QtBot
) -> None:
    messages = [message for n in range(30) for message in _turn(n)]
    begun = time.thread_time()
    view.set_messages(messages)
    assert time.thread_time() - begun < 1.0
    assert widget_of(view, 60).rendered
    assert not widget_of(view, 2).rendered
    qtbot.waitUntil(lambda: not view.working, timeout=20_000)
    assert widget_of(view, 2).rendered
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


def test_user_text_is_shown_as_typed(view: TranscriptView) -> None:
    view.set_messages([user("*not bold*\n  <b>indented</b>")])
    assert text_of(view, 1) == "*not bold*\n  <b>indented</b>"


def test_thinking_is_folded_and_opens(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_messages([user(), reply("<think>secret **plan**</think>\n\nanswer")])
    assert text_of(view) == "answer"
    (section,) = widget_of(view).findChildren(ThinkingSection)
    height = widget_of(view).height()
    section.set_opened(True)
    assert text_of(view) == "secret plan\nanswer"
    assert widget_of(view).height() > height


def test_streamed_thinking_never_shows_a_tag(view: TranscriptView) -> None:
    view.add_message(streaming())
    text = "<think>a thought</think>said"
    for char in text:
        view.append_tokens(2, tokens_of([char], ["plain"]))
        view.flush()
        for each in widget_of(view).body.views:
            assert "<" not in each.toPlainText()
            assert ">" not in each.toPlainText()
    assert text_of(view) == "said"


def test_prefill_is_told_where_the_reply_will_be_and_goes_with_the_first_token(
    view: TranscriptView,
) -> None:
    view.set_messages([user()])
    view.add_message(streaming())
    view.set_prefill(512, 2048)
    line = widget_of(view).prefill_line
    assert line.isVisible()
    assert "512 / 2,048" in line.words
    view.append_tokens(2, tokens_of(["Hi"], ["plain"]))
    view.flush()
    assert not line.isVisible()


def test_a_finished_reply_says_its_numbers(view: TranscriptView) -> None:
    view.set_messages([user(), reply("Hi", metrics=METRICS)])
    words = "38 tok/s · 2.7 a round · 71 % accepted · 1.21 s to first token"
    assert widget_of(view).footer.words == words


@pytest.mark.parametrize(
    ("state", "word"),
    [(MessageState.STOPPED, "Stopped"), (MessageState.INTERRUPTED, "Interrupted")],
)
def test_an_early_end_is_said(view: TranscriptView, state: MessageState, word: str) -> None:
    view.set_messages([user(), reply("Hi", state=state)])
    assert widget_of(view).footer.words.startswith(word)


def test_a_failed_reply_keeps_its_text_and_says_why(view: TranscriptView) -> None:
    view.add_message(streaming())
    tokens = tokens_of(["Half", " a"], ["plain"] * 2)
    view.append_tokens(2, tokens)
    failed = reply("Half a", state=MessageState.FAILED, error="Memory ran out.")
    view.finish_message(failed)
    assert text_of(view) == "Half a"
    assert widget_of(view).error_box.isVisible()
    assert widget_of(view).error_box.words == "Memory ran out."


def test_an_error_at_the_end_goes_with_the_next_message(view: TranscriptView) -> None:
    view.set_messages([user()])
    view.set_error("No model is loaded.", "Load one.")
    assert view.error_box.isVisible()
    assert view.error_box.words == "No model is loaded. Load one."
    view.add_message(user("Again", 3))
    assert not view.error_box.isVisible()


def test_buttons_say_which_message_is_meant(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_messages([user(), reply("Hi", version=2, versions=3)])
    buttons = {b.accessibleName(): b for b in widget_of(view).findChildren(QuietButton)}
    with qtbot.waitSignal(view.versionClicked) as version:
        buttons["Previous version"].click()
    assert version.args == [2, -1]
    with qtbot.waitSignal(view.regenerateClicked) as again:
        buttons["Write another version"].click()
    assert again.args == [2]
    with qtbot.waitSignal(view.copyClicked) as copied:
        buttons["Copy as Markdown"].click()
    assert copied.args == [2]


def test_a_selection_copies_the_markdown_it_came_from(view: TranscriptView) -> None:
    source = "# Head\n\nSome **bold** word\n\n- one\n- two\n"
    view.set_messages([reply(source)])
    (text_view,) = widget_of(view).body.views
    text_view.selectAll()
    assert text_view.selected_source() == source.rstrip("\n")
    cursor = text_view.textCursor()
    start = text_view.toPlainText().index("bold")
    cursor.setPosition(start)
    cursor.setPosition(start + 4, QTextCursor.MoveMode.KeepAnchor)
    text_view.setTextCursor(cursor)
    assert text_view.selected_source() == "bold"


def test_a_code_block_copies_its_code(view: TranscriptView, qtbot: QtBot, qapp) -> None:
    view.set_messages([reply("Text\n\n```python\na = 1\n\nb = 2\n```\n")])
    (button,) = [
        b
        for b in widget_of(view).findChildren(QToolButton)
        if b.accessibleName() == "Copy this code"
    ]
    button.click()
    assert qapp.clipboard().text() == "a = 1\n\nb = 2"


@pytest.mark.parametrize(
    ("url", "opens"),
    [("https://a.example", True), ("mailto:a@b.example", True), ("file:///x", False)],
)
def test_only_web_and_mail_links_are_passed_on(
    view: TranscriptView, qtbot: QtBot, url: str, opens: bool
) -> None:
    view.set_messages([reply(f"[x]({url})")])
    heard: list[str] = []
    view.linkActivated.connect(heard.append)
    (text_view,) = widget_of(view).body.views
    text_view.anchorClicked.emit(QUrl(url))
    assert heard == ([url] if opens else [])


def test_a_token_tells_where_it_came_from(view: TranscriptView) -> None:
    tokens = tokens_of(["Some", " **bo", "ld**"], ["accepted", "bonus", "accepted"])
    view.set_messages([reply("Some **bold**", spans=spans_of(tokens))])
    (text_view,) = widget_of(view).body.views
    cursor = QTextCursor(text_view.document())
    cursor.setPosition(6)
    point = text_view.cursorRect(cursor).center() + QPoint(2, 0)
    tip = text_view.tip_at(point)
    assert "␣**bo" in tip
    assert "extra token" in tip
    assert "Chance of acceptance 50.0 %" in tip
    assert text_view.tip_at(QPoint(text_view.width() - 2, 2)) == ""


def test_html_in_a_tip_is_text(view: TranscriptView) -> None:
    tokens = tokens_of(["<b>x</b>"], ["plain"])
    view.set_messages([reply("<b>x</b>", spans=spans_of(tokens))])
    (text_view,) = widget_of(view).body.views
    cursor = QTextCursor(text_view.document())
    cursor.setPosition(3)
    assert "&lt;b&gt;x" in text_view.tip_at(text_view.cursorRect(cursor).center())


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


def test_the_colouring_switch_is_quick_for_a_long_reply(view: TranscriptView) -> None:
    texts = [f"word{n} " + ("\n\n" if n % 40 == 0 else "") for n in range(4000)]
    origins = [("accepted", "accepted", "bonus", "resampled")[n % 4] for n in range(4000)]
    tokens = tokens_of(texts, origins)
    view.set_messages([reply("".join(texts), spans=spans_of(tokens))])
    begun = time.thread_time()
    view.set_colouring(False)
    assert time.thread_time() - begun < 0.05


def test_a_reply_that_is_not_what_was_streamed_is_shown_as_stored(view: TranscriptView) -> None:
    view.add_message(streaming())
    view.append_tokens(2, tokens_of(["Hello", " STOP"], ["plain"] * 2))
    view.flush()
    view.finish_message(reply("Hello"))
    assert text_of(view) == "Hello"


def test_a_link_defined_after_its_use_works_when_the_reply_is_complete(
    view: TranscriptView,
) -> None:
    view.add_message(streaming())
    source = "See [it][1].\n\nMore.\n\nEven more.\n\n[1]: https://a.example\n"
    for char in source:
        view.append_tokens(2, tokens_of([char], ["plain"]))
        view.flush()
    view.finish_message(reply(source))
    assert text_of(view).startswith("See it.")


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


def test_nothing_of_a_message_is_fetched(view: TranscriptView) -> None:
    view.set_messages([reply("![cat](http://a.example/cat.png)")])
    (text_view,) = widget_of(view).body.views
    assert text_view.toPlainText() == "cat"
    assert text_view.loadResource(2, QUrl("http://a.example/cat.png")) is None


def test_hovering_reveals_what_can_be_done(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_messages([reply("Hi")])
    widget = widget_of(view)
    (button,) = [b for b in widget.findChildren(QuietButton) if "Copy" in b.accessibleName()]
    widget.leaveEvent(QEvent(QEvent.Type.Leave))
    assert not button.revealed
    middle = QPointF(widget.rect().center())
    widget.enterEvent(QEnterEvent(middle, middle, middle))
    assert button.revealed
    widget.leaveEvent(QEvent(QEvent.Type.Leave))
    assert not button.revealed
    button.setFocus()
    assert button.isVisible()

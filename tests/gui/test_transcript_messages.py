"""One message: its text, its end, its errors, what can be done with it."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QUrl
from PySide6.QtGui import QEnterEvent, QTextCursor
from PySide6.QtWidgets import QLabel, QToolButton
from pytestqt.qtbot import QtBot

from app.records import Message, MessageState
from app.widgets.quiet_button import QuietButton
from app.widgets.thinking_section import ThinkingSection
from app.widgets.transcript import TranscriptView
from tests.helpers.rendering import spans_of, tokens_of
from tests.helpers.transcript import reply, streaming, text_of, user, widget_of

METRICS: dict[str, object] = {
    "tokens_per_second": 38.2,
    "proposed": 100,
    "mean_acceptance_length": 2.7,
    "acceptance_rate": 0.71,
    "time_to_first_token_ms": 1210.0,
}


@pytest.fixture
def view(qtbot: QtBot) -> TranscriptView:
    result = TranscriptView()
    qtbot.addWidget(result)
    result.resize(700, 500)
    result.show()
    return result


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


def drafted(rule: str, temperature: float, **metrics: object) -> Message:
    settings: dict[str, object] = {
        "speculation": {"rule": rule, "gamma": "auto"},
        "sampling": {"temperature": temperature},
    }
    return reply("Hi", metrics={"proposed": 64, "rounds": 20, **metrics}, settings=settings)


def test_a_reply_of_a_lossy_rule_says_so_before_its_numbers(view: TranscriptView) -> None:
    view.set_messages([user(), drafted("typical", 0.7, tokens_per_second=38.2)])
    words = "lossy (typical) · 38 tok/s · gamma automatic (3.2 on average)"
    assert widget_of(view).footer.words == words


@pytest.mark.parametrize(
    "message",
    [
        drafted("exact", 0.7),
        drafted("block", 0.7),
        drafted("typical", 0.0),
        drafted("typical", 0.7, proposed=0),
    ],
    ids=["exact", "block", "greedy", "not drafted"],
)
def test_a_reply_that_no_lossy_rule_shaped_is_not_called_lossy(
    view: TranscriptView, message: Message
) -> None:
    view.set_messages([user(), message])
    assert "lossy" not in widget_of(view).footer.words


@pytest.mark.parametrize(
    "settings", [{}, {"speculation": 3}, {"speculation": {"rule": ["x"]}, "sampling": None}]
)
def test_an_imported_reply_with_odd_settings_is_shown(
    view: TranscriptView, settings: dict[str, object]
) -> None:
    view.set_messages([user(), reply("Hi", metrics=METRICS, settings=settings)])
    assert widget_of(view).footer.words.startswith("38 tok/s")


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


def test_a_message_is_as_high_as_its_text_before_it_is_seen(view: TranscriptView) -> None:
    view.resize(1000, 500)
    view.set_messages([user("One line that needs some room but no second line, at this width.")])
    (text_view,) = widget_of(view, 1).body.views
    first = text_view.document().firstBlock().layout()
    assert first.lineCount() == 1
    assert text_view.height() < 3 * first.boundingRect().height()


def test_the_number_of_the_version_stands_level_with_its_arrows(
    view: TranscriptView, qtbot: QtBot
) -> None:
    view.set_messages([user("Hi"), replace(reply("Hello"), version=2, versions=2)])
    view.show()
    qtbot.waitUntil(lambda: not view.working)
    label = next(part for part in view.findChildren(QLabel) if part.text() == "2/2")
    arrow = next(
        button
        for button in label.parentWidget().findChildren(QuietButton)
        if button.toolTip() == "Previous version"
    )
    assert abs(label.geometry().center().y() - arrow.geometry().center().y()) <= 1

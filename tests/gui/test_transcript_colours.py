"""Origins are painted in the window: after Markdown, after reload, on every tint readable."""

import pytest
from PySide6.QtGui import QTextCharFormat
from pytestqt.qtbot import QtBot

from app.records import Message, MessageState
from app.rendering.look import SYNTAX
from app.theme import DARK, LIGHT, Theme
from app.widgets.transcript import TranscriptView
from tests.helpers.rendering import ORIGINS, painted, spans_of, tokens_of

TEXTS = {
    "plain text": ["The", " quick", " brown", " fox", " jumps", " over", " the", " lazy",
                   " dog", " and", " runs", " far", " away", "."],
    "a list": ["- The", " quick", " brown", " fox", "\n- jumps", " over", " the", " lazy",
               "\n- dog", " and", " runs", " far", " away", "."],
    "code": ["```text\nx", " =", " 1", "\ny", " =", " 2", "\nif", " x", ":\n", "    print",
             "(x)", "\n#", " end", "!\n```"],
    "a table": ["| a", " | b", " |\n|---|---|\n| c", " | d", " |\n| e", " f", " | g", " h",
                " |\n| i", " j", " | k", " |\n| l", " m", " | n |"],
    "an emoji of three tokens": ["a", " b", " c", " d", " e", "", "", "👍", " f", " g", " h",
                                 " i", " j", "."],
}  # fmt: skip


def shown_view(qtbot: QtBot) -> TranscriptView:
    view = TranscriptView()
    qtbot.addWidget(view)
    view.resize(800, 600)
    view.show()
    return view


def reply(text: str, **values: object) -> Message:
    return Message(2, 1, 1, "assistant", text, 0.0, **values)


def characters_by_background(view: TranscriptView) -> dict[str, str]:
    result: dict[str, str] = {}
    widget = view.message_widget(2)
    assert widget is not None
    for text_view in widget.body.views:
        for text, background, _ in painted(text_view.document()):
            result[background] = result.get(background, "") + text
    return result


def expected_characters(texts: list[str], origin: str) -> str:
    return "".join(t for t, o in zip(texts, ORIGINS, strict=True) if o == origin)


def letters(text: str) -> list[str]:
    return sorted(char for char in text if char.isalnum() or char == "👍")


@pytest.mark.parametrize("place", TEXTS)
@pytest.mark.parametrize("reloaded", [False, True], ids=["streamed", "reloaded"])
def test_each_origin_is_painted_where_its_tokens_are(
    qtbot: QtBot, place: str, reloaded: bool
) -> None:
    texts = TEXTS[place]
    tokens = tokens_of(texts)
    text = "".join(texts)
    view = shown_view(qtbot)
    if reloaded:
        view.set_messages([reply(text, spans=spans_of(tokens))])
    else:
        view.add_message(reply("", state=MessageState.STREAMING))
        for token in tokens:
            view.append_tokens(2, [token])
            view.flush()
        view.finish_message(reply(text, spans=spans_of(tokens)))
    found = characters_by_background(view)
    for origin in ("accepted", "resampled", "bonus"):
        background = LIGHT.origins[origin].background
        wanted = letters(expected_characters(texts, origin))
        if place == "code" and origin == "accepted":
            continue  # its first token holds the language, which the header shows in its colour
        assert letters(found[background]) == wanted
    accepted = found[LIGHT.origins["accepted"].background]
    assert set(letters(accepted)) == set(letters(expected_characters(texts, "accepted")))


def test_a_cue_that_is_not_colour_stands_beside_each_tint(qtbot: QtBot) -> None:
    tokens = tokens_of(["aaa", "bbb", "ccc"], ["accepted", "resampled", "bonus"])
    view = shown_view(qtbot)
    view.set_messages([reply("aaabbbccc", spans=spans_of(tokens))])
    widget = view.message_widget(2)
    assert widget is not None
    formats = widget.body.views[0].document().firstBlock().layout().formats()
    styles = {each.start: each.format.underlineStyle() for each in formats}
    underline = QTextCharFormat.UnderlineStyle
    assert styles == {
        0: underline.NoUnderline,
        3: underline.DashUnderline,
        6: underline.SingleUnderline,
    }


def test_the_switch_takes_the_tints_away_and_brings_them_back(qtbot: QtBot) -> None:
    tokens = tokens_of(TEXTS["a table"])
    text = "".join(TEXTS["a table"])
    view = shown_view(qtbot)
    view.set_messages([reply(text, spans=spans_of(tokens))])
    before = characters_by_background(view)
    view.set_colouring(False)
    assert set(characters_by_background(view)) <= {""}
    view.set_colouring(True)
    assert characters_by_background(view) == before


def test_a_change_of_theme_changes_the_tints(qtbot: QtBot) -> None:
    tokens = tokens_of(["aaa"], ["accepted"])
    view = shown_view(qtbot)
    view.set_messages([reply("aaa", spans=spans_of(tokens))])
    view.set_theme(DARK)
    assert characters_by_background(view) == {DARK.origins["accepted"].background: "aaa"}


def luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_code_and_links_are_readable_on_every_background(theme: Theme) -> None:
    backgrounds = [theme.surface, theme.code_background]
    backgrounds += [style.background for style in theme.origins.values() if style.background]
    for colour in (*SYNTAX[theme.name].values(), theme.text, theme.muted):
        for background in backgrounds:
            low, high = sorted((luminance(colour), luminance(background)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (colour, background)

"""Every character shown has the colour of its token, whatever Markdown makes of the text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.rendering.model import Run
from app.rendering.stream import render
from app.rendering.tokens import TokenInfo, TokenMap, origin_ranges
from tests.helpers.rendering import map_of, shown_tokens, tokens_of

PLACES = {
    "plain text": ["The", " quick", " brown", " fox", " jumps", " over", " the", " lazy",
                   " dog", " and", " runs", " far", " away", "."],
    "a list": ["-", " The", " quick", "\n- brown", " fox", "\n  1. jumps", " over", " it",
               "\n- dog", " **and", "** runs", " far", " away", "."],
    "code": ["```python\nx", " =", " 1", "\ny", " =", " 2", "\nif", " x", ":\n", "    print",
             "(x)", "\n#", " end", "!\n```"],
    "a table": ["| a", " | b", " |\n|---|---|\n| c", " | d", " |\n| e", " f", " | g", " h",
                " |\n| i", " j", " | `k", "` |\n| l", " m", " | n |"],
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_rounds_of_4_0_2_4_show_ten_accepted_and_four_of_the_target(place: str) -> None:
    tokens = tokens_of(PLACES[place])
    text = "".join(token.text for token in tokens)
    shown = shown_tokens(render(text, 0, len(text)), map_of(tokens))
    origins = [shown[index] for index in sorted(shown)]
    assert origins.count("accepted") == 10
    assert origins.count("bonus") + origins.count("resampled") == 4
    assert origins == [token.origin for token in tokens]


def test_an_emoji_of_three_tokens_has_the_colour_of_the_token_that_completes_it() -> None:
    texts = ["a", " b", " c", " d", " e", "", "", "👍", " f", " g", " h", " i", " j", "."]
    tokens = tokens_of(texts)
    text = "".join(texts)
    token_map = map_of(tokens)
    index = token_map.index_at(text.index("👍"))
    assert index == 7
    assert [t.origin for t in tokens[5:8]] == ["resampled", "accepted", "accepted"]
    assert token_map.token(index).origin == "accepted"
    assert token_map.span(index) == (text.index("👍"), text.index("👍") + 1)


def test_neighbours_of_one_origin_make_one_range() -> None:
    tokens = map_of(tokens_of(["ab", "cd", "e"], ["accepted", "accepted", "bonus"]))
    assert origin_ranges([Run("abcde", 0)], tokens) == [(0, 4, "accepted"), (4, 1, "bonus")]


def test_text_without_tokens_has_no_origin() -> None:
    assert origin_ranges([Run("abc", 0)], TokenMap()) == [(0, 3, "")]


LENGTHS = st.lists(st.integers(0, 4), max_size=30)


@settings(max_examples=200)
@given(LENGTHS, st.text(alphabet="ab* `\n#-|👍", max_size=80))
def test_ranges_are_total_and_agree_with_each_character(lengths: list[int], text: str) -> None:
    tokens = TokenMap()
    for number, length in enumerate(lengths):
        tokens.append(length, TokenInfo(("accepted", "bonus", "plain")[number % 3]))
    for para in render(text, 0, len(text)):
        runs = para.all_runs()
        expected = []
        for run in runs:
            for index in range(len(run.text)):
                token = tokens.index_at(run.source_of(index))
                expected.append("" if token is None else tokens.token(token).origin)
        flat = [origin for _, length, origin in origin_ranges(runs, tokens) for _ in range(length)]
        assert flat == expected

"""The title of a conversation, from its first message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.storage.titles import MAX_DERIVED, NEW_CHAT, title_from


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello", "Hello"),
        ("", NEW_CHAT),
        (" \n\t ", NEW_CHAT),
        ("\n\n  # A heading\nand text", "A heading"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("- [ ] do it\n- more", "[ ] do it"),
        ("???", "???"),
        ("a  b\tc\x00d", "a b c d"),
        (
            "Write a Python function that checks whether a string is a palindrome",
            "Write a Python function that checks whether a…",
        ),
        ("x" * 100, "x" * 47 + "…"),
        ("日" * 100, "日" * 47 + "…"),
        ("a" * 46 + "e\u0301" + "b" * 20, "a" * 46 + "…"),
        ("a" * 44 + "👩‍👩‍👧" + "b" * 20, "a" * 44 + "…"),
    ],
)
def test_a_title_is_the_first_line_cut_at_a_word(text: str, title: str) -> None:
    assert title_from(text) == title


@given(st.text(max_size=200))
def test_a_title_is_one_short_line_whatever_the_text(text: str) -> None:
    title = title_from(text)
    assert 1 <= len(title) <= MAX_DERIVED
    assert len(title.splitlines()) == 1
    title.encode()

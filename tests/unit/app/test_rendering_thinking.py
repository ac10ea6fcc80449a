"""What a model thought is told from what it said, and no tag is shown."""

import pytest

from app.rendering.thinking import ThinkingScanner


def parts(
    text: str, *, step: int = 1, final: bool = True, opened: bool = False
) -> list[tuple[str, str]]:
    scanner = ThinkingScanner(opened_by_prompt=opened)
    for position in range(0, len(text), step):
        scanner.feed(text[:position])
    return [
        ("thought" if segment.thinking else "said", text[segment.start : segment.end].strip())
        for segment in scanner.feed(text, final=final)
        if text[segment.start : segment.end].strip()
    ]


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a\nb</think>c", [("thought", "a\nb"), ("said", "c")]),
        ("\n <think>\na\n</think>\n\nc", [("thought", "a"), ("said", "c")]),
        ("a\n</think>\nb", [("thought", "a"), ("said", "b")]),
        ("<think>never closed", [("thought", "never closed")]),
        ("no tags at all <", [("said", "no tags at all <")]),
        ("about `<think>` and `</think>`", [("said", "about `<think>` and `</think>`")]),
        ("```\n<think>\n</think>\n```\n", [("said", "```\n<think>\n</think>\n```")]),
        (
            "<think>the tag `</think>` ends it\n```\n</think>\n```\n</think>yes",
            [("thought", "the tag `</think>` ends it\n```\n</think>\n```"), ("said", "yes")],
        ),
        (
            "<think>\n```\nunclosed code\n</think>\nanswer",
            [("thought", "```\nunclosed code"), ("said", "answer")],
        ),
        (
            "<think>a</think>b\n<think>c</think>d",
            [("thought", "a"), ("said", "b"), ("thought", "c"), ("said", "d")],
        ),
    ],
)
def test_thinking_is_found_however_the_text_is_cut(
    text: str, expected: list[tuple[str, str]], step: int
) -> None:
    assert parts(text, step=step) == expected


def test_thinking_opened_in_the_prompt_is_known_from_the_start() -> None:
    assert parts("a", opened=True, final=False) == [("thought", "a")]
    assert parts("a</think>b", opened=True) == [("thought", "a"), ("said", "b")]


@pytest.mark.parametrize("cut", range(1, len("<think>")))
def test_a_tag_that_has_arrived_in_part_is_held_back(cut: int) -> None:
    assert parts("<think>"[:cut], final=False) == []
    assert parts("<think>a" + "</think>"[:cut], final=False) == [("thought", "a")]


def test_a_tag_cut_off_by_stop_is_not_shown() -> None:
    assert parts("<think>a</thin") == [("thought", "a")]

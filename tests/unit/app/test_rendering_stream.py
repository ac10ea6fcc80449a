"""A text rendered while it grows ends as the text rendered at once."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.rendering.model import Para, Run
from app.rendering.stream import SOFT_LIMIT, StreamRenderer, render, render_plain
from tests.helpers.rendering import flat, streamed

SAMPLE = """# Head *x*

para **bold *it*** `code` [link](http://a.example) &amp; \\* <b>x</b> $a_1$
next
setext
---

- a
- b **c**
  1. one

     more

  ```python
  x = 1
  ```
- z

> quote
> > deep

intro
| a | b |
|---|:-:|
| 1 | `x` |

```python
def f(x):
    '''doc
    more'''
    return 1

g()
```
~~~
tilde ``` inside
~~~

***

    indented

last
"""


@pytest.mark.parametrize("seed", range(25))
def test_a_streamed_text_ends_as_one_rendered_at_once(seed: int) -> None:
    steps = [random.Random(seed).randint(1, 12) for _ in range(50)]
    assert flat(streamed(SAMPLE, steps)) == flat(render(SAMPLE, 0, len(SAMPLE)))


@settings(max_examples=150)
@given(
    st.text(alphabet=st.sampled_from("ab *_`#-1.>|\n\n~"), max_size=100),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
)
def test_any_streamed_text_ends_as_one_rendered_at_once(text: str, steps: list[int]) -> None:
    assert flat(streamed(text, steps)) == flat(render(text, 0, len(text)))


def test_what_is_frozen_never_changes() -> None:
    renderer = StreamRenderer(clock=lambda: 0.0)
    before: list[Para] = []
    for position in range(1, len(SAMPLE) + 1):
        renderer.update(SAMPLE, position)
        assert renderer.frozen[: len(before)] == before
        before = list(renderer.frozen)


@pytest.mark.parametrize(
    "text",
    [
        "```python\n" + "x = f(1)\n" * 800,
        "- item one two three\n" * 400,
        "word and another word. " * 400,
        "1. item\n\n   more of it\n\n" * 200,
    ],
    ids=["code", "list", "paragraph", "loose list"],
)
def test_a_long_open_block_is_rendered_in_bounded_parts(text: str) -> None:
    renderer = StreamRenderer(clock=lambda: 0.0)
    largest = 0
    for position in range(0, len(text), 40):
        renderer.update(text, position)
        largest = max(largest, sum(len(para.text) for para in renderer.open))
    assert largest < 2 * SOFT_LIMIT


def test_a_long_list_keeps_its_numbers_and_depth() -> None:
    text = "".join(f"{n}. item {n}\n{' ' * len(f'{n}. ')}- inner {n}\n" for n in range(1, 200))
    paras = streamed(text, [37])
    markers = [para.marker.text for para in paras if para.marker and para.indent == 1]
    assert markers == [f"{n}." for n in range(1, 200)]
    assert sum(para.indent == 2 for para in paras) == 199


def test_a_long_table_goes_on_with_the_same_rows() -> None:
    rows = "".join(f"| name {n} | `{n}` | a note on it |\n" for n in range(400))
    text = f"| a | b | c |\n|---|--:|---|\n{rows}\nafter\n"
    paras = streamed(text, [29])
    assert paras[-1].text == "after"
    tables = paras[:-1]
    assert len(tables) > 2
    assert [table.continues for table in tables] == [False] + [True] * (len(tables) - 1)
    shown = [row[1][0].text for table in tables for row in table.rows]
    assert shown == ["b", *(str(n) for n in range(400))]
    for table in tables:
        for row in table.rows:
            assert all(text[run.source] == run.text[0] for cell in row for run in cell)


@pytest.mark.parametrize(
    "char", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\x1d", "\x1e", "\r"], ids=ascii
)
def test_a_long_table_shows_every_row_once_whatever_its_cells_hold(char: str) -> None:
    text = "|a|b|\n|-|-|\n" + f"|1{char}x|2|\n" * 600
    assert rows_of(streamed(text, [100])) == rows_of(render(text, 0, len(text)))


def rows_of(paras: list[Para]) -> list[tuple[tuple[Run, ...], ...]]:
    return [row for para in paras for row in para.rows]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=ascii)
def test_lines_end_as_markdown_says_in_code_and_in_what_was_typed(end: str) -> None:
    text = end.join(["```", "one", "", "two", "```", "after"])
    for paras in (streamed(text, [1]), render(text, 0, len(text))):
        assert [para.text for para in paras][1:] == ["one", "", "two", "after"]
    typed = render_plain(text, 0, len(text))
    assert [para.text for para in typed] == ["```", "one", "", "two", "```", "after"]
    assert [text[para.start : para.start + 3] for para in typed][-1] == "aft"
    assert typed[-1].end == len(text) + 1


def test_code_with_a_null_character_is_the_same_in_the_end() -> None:
    text = "```py\n  - \0\n```\n"
    assert flat(streamed(text, [1])) == flat(render(text, 0, len(text)))


def test_a_long_paragraph_loses_nothing() -> None:
    text = " ".join(f"word{n} **b{n}** and" for n in range(1000))
    shown = "".join(para.text for para in streamed(text, [31]))
    assert shown == text.replace("**", "")


def test_a_dear_block_rests_and_its_text_still_shows() -> None:
    times = iter([0.0, 1.0, 1.1, 1.2, 99.0, 99.1])
    renderer = StreamRenderer(clock=lambda: next(times))
    renderer.update("**a** b", 7)
    assert renderer.update("**a** b\nc **d** ", 16) is False
    assert renderer.open[-1].text == "a b\u2028c **d** "
    assert renderer.update("**a** b\nc **d** e", 17) is False
    assert renderer.update("**a** b\nc **d** ef", 18) is True
    assert renderer.open[-1].text == "a b c d ef"


def test_a_closing_fence_in_the_making_is_not_shown() -> None:
    text = "```\ncode\n``"
    renderer = StreamRenderer(clock=lambda: 0.0)
    for position in range(1, len(text) + 1):
        renderer.update(text, position)
    assert [para.text for para in (*renderer.frozen, *renderer.open)][1:] == ["code"]

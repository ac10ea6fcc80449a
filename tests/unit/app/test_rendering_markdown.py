"""Markdown becomes paragraphs whose every character knows its source."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.rendering.markdown import make_parser, parse
from app.rendering.model import Para, ParaKind, Style
from app.rendering.stream import render
from tests.helpers.rendering import flat, streamed

PARSER = make_parser()


def paras_of(text: str) -> tuple[Para, ...]:
    return parse(PARSER, text).paras


def shown(text: str) -> list[str]:
    return [para.text for para in paras_of(text)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("**bold** and *thin*", "bold and thin"),
        ("a \\* b &amp; c", "a * b & c"),
        ("[words](http://a.example/b_(c) 'title (x)') after", "words after"),
        ("<b>x</b> <script>y</script>", "<b>x</b> <script>y</script>"),
        ("![a *cat*](http://a.example/cat.png) here", "a cat here"),
        ("![](http://a.example/cat.png)", "image"),
        ("`` a ` b ``", "a ` b"),
        ("<https://a.example>", "https://a.example"),
        ("~~gone~~", "gone"),
        ("costs $5 and $6", "costs $5 and $6"),
        ("so $a_1 + b_1$ holds", "so a_1 + b_1 holds"),
        ("so \\(x^2\\) and \\[y_{*}*z*\\]", "so x^2 and y_{*}*z*"),
        ("one\ntwo", "one two"),
        ("one  \ntwo", "one\u2028two"),
    ],
)
def test_inline_markup_is_not_shown(source: str, expected: str) -> None:
    assert shown(source) == [expected]


def test_every_plain_character_points_at_itself() -> None:
    source = "# Head\n\nSome **bold** [link](http://a.example), `code`.\n\n- one\n  1. two\n\n> q\n"
    for para in paras_of(source):
        for run in para.runs:
            for index, char in enumerate(run.text):
                assert source[run.source_of(index)] == char


def test_an_escape_belongs_to_the_character_that_completes_it() -> None:
    (para,) = paras_of("x &amp; \\*")
    sources = {run.text: run.source_of(0) for run in para.runs if run.single}
    assert sources == {"&": 6, "*": 9}


def test_a_text_after_a_link_is_not_looked_for_in_its_address() -> None:
    source = "[a](http://x.example/b) b"
    (para,) = paras_of(source)
    assert para.runs[-1].text == " b"
    assert para.runs[-1].source == len(source) - 2


def test_a_code_span_over_a_line_end_leaves_the_rest_in_its_place() -> None:
    source = "Use `ls\n-l` here, or `ls -l`.\n\n1. one two\n2. three\n"
    first, second, third = paras_of(source)
    assert first.text == "Use ls -l here, or ls -l."
    sources = [run.source_of(i) for run in first.runs for i in range(len(run.text))]
    assert [source[at] for at in sources] == list("Use ls\n-l here, or ls -l.")
    assert [para.marker and para.marker.text for para in (second, third)] == ["1.", "2."]
    for para in (second, third):
        for run in para.all_runs():
            assert source[run.source : run.source + len(run.text)] == run.text


def test_code_behind_a_tab_points_at_its_source() -> None:
    source = "- a\n\n\t\tx = 1\n\n      \ty = 2\n\nend\n"
    for para in paras_of(source):
        for run in para.runs:
            for index, char in enumerate(run.text):
                if para.kind is ParaKind.CODE and not char.isspace():
                    assert source[run.source_of(index)] == char


def test_code_keeps_its_text_and_gets_colours() -> None:
    source = "```python\ndef f():\n    return '*x*'\n```\n"
    header, first, second = paras_of(source)
    assert (header.kind, header.text) == (ParaKind.CODE_HEADER, "python")
    assert (first.text, second.text) == ("def f():", "    return '*x*'")
    assert first.runs[0].syntax == "keyword"
    assert any(run.syntax == "string" for run in second.runs)
    for para in (first, second):
        for run in para.runs:
            assert source[run.source : run.source + len(run.text)] == run.text


def test_code_in_a_list_in_a_quote_points_at_its_source() -> None:
    source = "> 1. item\n>\n>    ```\n>    a = 1\n>      b\n>    ```\n"
    code = [para for para in paras_of(source) if para.kind is ParaKind.CODE]
    assert [para.text for para in code] == ["a = 1", "  b"]
    for para in code:
        assert (para.quote, para.indent) == (1, 1)
        for run in para.runs:
            assert source[run.source : run.source + len(run.text)] == run.text


def test_lists_nest_and_keep_their_numbers() -> None:
    paras = paras_of("7. a\n8. b\n   - c\n\n     d\n")
    markers = [para.marker.text if para.marker else "" for para in paras]
    assert markers == ["7.", "8.", "•", ""]
    assert [para.indent for para in paras] == [1, 1, 2, 2]


def test_tables_keep_cells_and_alignment() -> None:
    source = "| a | b |\n|---|--:|\n| 1 \\| 2 | `x` |\n"
    (table,) = paras_of(source)
    assert table.aligns == ("", "right")
    rows = [["".join(run.text for run in cell) for cell in row] for row in table.rows]
    assert rows == [["a", "b"], ["1 | 2", "x"]]
    assert Style.CODE in table.rows[1][1][0].style


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x"])
def test_dangerous_addresses_are_no_links(url: str) -> None:
    (para,) = paras_of(f"[x]({url})")
    assert not any(run.href for run in para.runs)


MARKUP = st.text(alphabet=st.sampled_from("ab *_`~[]()<>#-1.>|\\&;$\n\t!\"'éあ👍"), max_size=120)


@settings(max_examples=300)
@given(MARKUP)
def test_any_text_is_rendered_in_order_and_inside_its_source(text: str) -> None:
    last = -1
    for para in render(text, 0, len(text)):
        assert 0 <= para.start <= para.end <= len(text)
        for run in para.all_runs():
            for index in range(len(run.text)):
                source = run.source_of(index)
                assert last <= source < max(len(text), 1)
                assert para.start <= source < max(para.end, para.start + 1)
                last = source


PIECES = st.sampled_from(
    [
        *("a", "b c", "ls", " ", "  ", "\n", "\n\n", "\n", "\t", "-l", "x|y", "1", "."),
        *(
            "`",
            "`ls\n-l`",
            "``a ` b``",
            "`a  b`",
            "` a\n`",
            "$",
            "$x y$",
            "$$a\nb c$$",
            "\\(a\n b\\)",
        ),
        *("*", "**", "~~", "\\*", "&amp;", "&#0;", "\x00", "\ufffd", "[a](b c)", "[a\nb](c 'd e')"),
        *(
            "![a\nb](c)",
            "![](c)",
            "<http://a.example>",
            "\n- ",
            "\n1. ",
            "\n10) a b\n",
            "\n  - ",
            "\n> ",
        ),
        *(
            "\n>> ",
            "\n```py\n",
            "\n~~~\n",
            "\n    ",
            "\n\t\tx y",
            "\n# ",
            "\n---\n",
            "\n|a|b|\n|-|-|\n",
        ),
        *(
            "\n|`a \\| b`|c|",
            "\r",
            "\r\n",
            "\r\n```\r\nx\r\ny\r\n```\r\n",
            "\u2028",
            "\u2029",
            "\x85",
            "\v",
            "\xa0",
            "👍",
            "\\\n",
            "  \n",
        ),
    ]
)


@settings(max_examples=400)
@given(st.lists(PIECES | st.just("\n[z]: b\n"), max_size=25).map("".join))
def test_markup_over_line_ends_is_rendered_in_order_and_inside_its_block(text: str) -> None:
    last = 0
    for para in render(text, 0, len(text)):
        # Indented code has no line that says so: its head stands at its first character.
        end = para.end + (para.kind is ParaKind.CODE_HEADER)
        for run in para.all_runs():
            for index, char in enumerate(run.text):
                source = run.source_of(index)
                assert last <= source
                assert para.start <= source < end
                assert run.single or char in (text[source], " ", "\ufffd") or text[source].isspace()
                last = source


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=25).map("".join), st.lists(st.integers(1, 9), min_size=1))
def test_markup_over_line_ends_streams_to_what_it_is_at_once(text: str, steps: list[int]) -> None:
    assert flat(streamed(text, steps)) == flat(render(text, 0, len(text)))

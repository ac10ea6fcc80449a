"""A document written in pieces ends as one written at once."""

import random

import pytest
from PySide6.QtGui import QFont, QTextDocument
from pytestqt.qtbot import QtBot

from app.rendering.document import DocumentWriter
from app.rendering.look import Look
from app.rendering.model import Para, ParaKind, Run
from app.rendering.stream import StreamRenderer, render
from app.theme import DARK, LIGHT
from tests.helpers.rendering import map_of, painted, tokens_of

SAMPLE = """# Head

Some **bold** and `code` with 👍 and [a link](https://a.example).

1. one
2. two
   - inner

| a | b |
|---|--:|
| 1 | 2 |
| 3 | 👍 |

```python
def f(x):
    return "👍"
```

> quote
> > deeper

| only | header |
|------|--------|

***
last words
"""
TEXTS = [SAMPLE[i : i + 3] for i in range(0, len(SAMPLE), 3)]
ORIGINS = [("accepted", "bonus", "resampled", "plain")[n % 4] for n in range(len(TEXTS))]


def written_at_once(look: Look) -> QTextDocument:
    document = QTextDocument()
    writer = DocumentWriter(document, map_of(tokens_of(TEXTS, ORIGINS)), look)
    writer.show(render(SAMPLE, 0, len(SAMPLE)), [])
    return document


@pytest.mark.parametrize("seed", range(8))
def test_a_streamed_document_is_that_of_the_whole_text(qtbot: QtBot, seed: int) -> None:
    steps = random.Random(seed)
    look = Look(LIGHT, QFont())
    document = QTextDocument()
    writer = DocumentWriter(document, map_of(tokens_of(TEXTS, ORIGINS)), look)
    renderer = StreamRenderer(clock=lambda: 0.0)
    position = 0
    while position < len(SAMPLE):
        position = min(position + steps.randint(1, 9), len(SAMPLE))
        renderer.update(SAMPLE, position)
        writer.show(renderer.frozen, renderer.open)
    renderer.update(SAMPLE, len(SAMPLE), final=True)
    writer.show(renderer.frozen, renderer.open)
    whole = written_at_once(look)
    assert document.toPlainText() == whole.toPlainText()
    assert painted(document) == painted(whole)


def test_a_document_written_again_or_in_other_colours_is_that_of_the_whole_text(
    qtbot: QtBot,
) -> None:
    document = QTextDocument()
    tokens = map_of(tokens_of(TEXTS, ORIGINS))
    writer = DocumentWriter(document, tokens, Look(LIGHT, QFont()))
    writer.show(render(SAMPLE, 0, len(SAMPLE)), [])
    dark = Look(DARK, QFont())
    writer.recolour(dark, colouring=True)
    assert painted(document) == painted(written_at_once(dark))
    writer.rewrite(dark)
    assert painted(document) == painted(written_at_once(dark))
    assert document.toPlainText() == written_at_once(dark).toPlainText()


def test_every_shown_character_finds_its_source(qtbot: QtBot) -> None:
    document = QTextDocument()
    look = Look(LIGHT, QFont())
    writer = DocumentWriter(document, map_of(tokens_of(TEXTS, ORIGINS)), look)
    writer.show(render(SAMPLE, 0, len(SAMPLE)), [])
    found = 0
    for position in range(document.characterCount()):
        char = document.characterAt(position)
        if char.isalnum() and char.isascii():
            source = writer.source_at(position)
            assert source is not None
            assert SAMPLE[source] == char
            found += 1
    assert found > 90


@pytest.mark.parametrize("char", ["\u2029", "\ufdd0", "\ufdd1", "\r"], ids=ascii)
def test_a_character_that_qt_reads_as_a_break_begins_no_paragraph(qtbot: QtBot, char: str) -> None:
    tokens = map_of(tokens_of(["one", "two"], ["accepted", "bonus"]))
    run = Run(f"c{char}d", 0)
    paras = [
        Para(ParaKind.TEXT, 0, 3, (run,)),
        Para(ParaKind.TEXT, 0, 3, (run, Run("e", 3))),
        Para(ParaKind.TABLE, 0, 3, rows=(((run,), (run,)),)),
    ]
    document = QTextDocument()
    writer = DocumentWriter(document, tokens, Look(LIGHT, QFont()))
    writer.show([], paras[:1])
    writer.show([], paras[1:])
    assert document.blockCount() == 4, "a paragraph, two cells and what follows a table"


def test_half_a_character_is_shown_coloured_and_found(qtbot: QtBot) -> None:
    source = "a\ud800b 👍 **c\udc00**\n\n| a\ud800 | b |\n|-|-|\n| \udfff | d |\n"
    document = QTextDocument()
    tokens = map_of(tokens_of([source[:2], source[2:]], ["accepted", "bonus"]))
    writer = DocumentWriter(document, tokens, Look(LIGHT, QFont()))
    writer.show(render(source, 0, len(source)), [])
    found = [writer.source_at(position) for position in range(8)]
    assert [source[at] for at in found if at is not None] == list("a\ud800b 👍👍 c")

"""Replies made of rounds, and what is shown of them."""

from collections.abc import Sequence

from PySide6.QtGui import QTextDocument

from app.records import TokenSpan
from app.rendering.model import Para
from app.rendering.stream import StreamRenderer
from app.rendering.tokens import TokenInfo, TokenMap
from core.events import Token

ROUNDS = (4, 0, 2, 4)
"""Accepted of 4 in each round: 10 accepted and 4 of the target."""
ORIGINS = tuple(
    origin
    for accepted in ROUNDS
    for origin in (*("accepted",) * accepted, "bonus" if accepted == 4 else "resampled")
)


def tokens_of(texts: Sequence[str], origins: Sequence[str] = ORIGINS) -> list[Token]:
    """Return streamed tokens with these texts."""
    return [
        Token(id=number, text=text, origin=origin, target_prob=0.25, draft_prob=0.5)
        for number, (text, origin) in enumerate(zip(texts, origins, strict=True))
    ]


def spans_of(tokens: Sequence[Token]) -> tuple[TokenSpan, ...]:
    """Return ``tokens`` as they are stored."""
    return tuple(
        TokenSpan(len(t.text), t.origin, t.id, t.target_prob, t.draft_prob) for t in tokens
    )


def map_of(tokens: Sequence[Token]) -> TokenMap:
    """Return the token map of ``tokens``."""
    result = TokenMap()
    for token in tokens:
        result.append(len(token.text), TokenInfo(token.origin, token.target_prob, token.draft_prob))
    return result


def shown_tokens(paras: Sequence[Para], tokens: TokenMap) -> dict[int, str]:
    """Return which tokens have a character on screen, with their origins."""
    shown: dict[int, str] = {}
    for para in paras:
        for run in para.all_runs():
            for index in range(len(run.text)):
                token = tokens.index_at(run.source_of(index))
                if token is not None:
                    shown[token] = tokens.token(token).origin
    return shown


def flat(paras: list[Para]) -> list[tuple[object, ...]]:
    """Return what is shown, paragraphs that were frozen in parts joined."""
    result: list[tuple[object, ...]] = []
    for para in paras:
        chars = tuple(
            (char, run.source_of(i), run.style, run.href, run.syntax)
            for run in para.runs
            for i, char in enumerate(run.text)
        )
        if para.continues:
            result[-1] = result[-1] + chars
        else:
            marker = para.marker.text if para.marker else ""
            shape = (para.kind, para.level, para.quote, para.indent, marker, para.rows)
            result.append(shape + chars)
    return result


def streamed(text: str, steps: list[int]) -> list[Para]:
    """Return what a text that arrives in pieces of ``steps`` characters ends as."""
    renderer = StreamRenderer(clock=lambda: 0.0)
    position, number = 0, 0
    while position < len(text):
        position = min(len(text), position + steps[number % len(steps)])
        number += 1
        renderer.update(text, position)
    renderer.update(text, len(text), final=True)
    return renderer.frozen


def painted(document: QTextDocument) -> list[tuple[str, str, str]]:
    """Return (text, background, underline colour) of every coloured stretch, as laid out."""
    result = []
    block = document.begin()
    while block.isValid():
        text = block.text().encode("utf-16-le")
        for each in block.layout().formats():
            piece = text[each.start * 2 : (each.start + each.length) * 2].decode("utf-16-le")
            background = each.format.background()
            colour = background.color().name() if background.style().value else ""
            underlined = each.format.underlineStyle().value
            line = each.format.underlineColor().name() if underlined else ""
            result.append((piece, colour, line))
        block = block.next()
    return result

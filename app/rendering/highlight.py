"""Colours code by Pygments: which characters are keywords, strings and so on."""

from collections.abc import Iterator
from functools import lru_cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token, _TokenType
from pygments.util import ClassNotFound

_CLASSES: tuple[tuple[_TokenType, str], ...] = (
    (Token.Comment, "comment"),
    (Token.Literal.String, "string"),
    (Token.Literal.Number, "number"),
    (Token.Name.Function, "function"),
    (Token.Name.Class, "function"),
    (Token.Name.Decorator, "function"),
    (Token.Name.Builtin, "builtin"),
    (Token.Name.Tag, "keyword"),
    (Token.Name.Attribute, "builtin"),
    (Token.Keyword, "keyword"),
    (Token.Operator.Word, "keyword"),
)
_MULTILINE = ("comment", "string")


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    if not language:
        return None
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def prepare_highlighting() -> None:
    """Make ready what colours Python, in any thread.

    It takes a quarter of a second once, which would else hold up the first code of a reply.
    """
    _lexer("python")


@lru_cache(maxsize=512)
def _class_of(kind: _TokenType) -> str:
    for parent, name in _CLASSES:
        if kind in parent:
            return name
    return ""


def highlight(code: str, language: str) -> list[tuple[int, str]]:
    """Return (length, class) over ``code``; class "" is plain. Unknown languages are plain."""
    lexer = _lexer(language.lower())
    if lexer is None or not code:
        return [(len(code), "")] if code else []
    pieces: list[tuple[int, str]] = []
    for _, kind, value in lexer.get_tokens_unprocessed(code):
        name = _class_of(kind)
        if pieces and pieces[-1][1] == name:
            pieces[-1] = (pieces[-1][0] + len(value), name)
        elif value:
            pieces.append((len(value), name))
    return pieces


def highlighted_lines(code: str, language: str) -> Iterator[tuple[list[tuple[str, str]], bool]]:
    """Yield each line of ``code`` as ((text, class), ...) and whether it starts afresh.

    A line starts afresh when it is not inside a string or comment that began before it and is
    not indented: highlighting may begin anew there with the same result.
    """
    line: list[tuple[str, str]] = []
    fresh, position = True, 0
    for length, name in highlight(code, language):
        parts = code[position : position + length].split("\n")
        position += length
        for index, part in enumerate(parts):
            if index:
                yield line, fresh and _unindented(line)
                line, fresh = [], name not in _MULTILINE or (not part and index == len(parts) - 1)
            if part:
                line.append((part, name))
    yield line, fresh and _unindented(line)


def _unindented(line: list[tuple[str, str]]) -> bool:
    return bool(line) and not line[0][0][0].isspace()

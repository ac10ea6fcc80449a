"""Parses Markdown (CommonMark, tables, strikethrough) into the flat list of paragraphs.

Raw HTML is text. Images are their alternative text. Nothing here fetches or executes.
"""

import re
from dataclasses import dataclass, replace

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.rendering.highlight import highlighted_lines
from app.rendering.inline import formula_rule, inline_runs
from app.rendering.model import Cell, Para, ParaKind, Run, Style
from app.rendering.walk import Walker

BULLETS = "•◦▪"
UNNAMED_CODE = "code"
LINE_END = re.compile(r"\r\n|\n|\r")
"""What ends a line in Markdown, and nothing else does."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """Paragraphs, and what a growing text needs to know about them.

    ``blocks`` are (index of the first paragraph, offset of the first line) of each top-level
    block. ``contexts[i]`` is the text that opens the lists around paragraph ``i``, so that a
    parse may begin there. ``fence`` is the last top-level block if it is a fence: (marks,
    language, start of its code, closed).
    """

    paras: tuple[Para, ...]
    blocks: tuple[tuple[int, int], ...]
    contexts: tuple[str, ...]
    fence: tuple[str, str, int, bool] | None
    has_references: bool


def make_parser() -> MarkdownIt:
    """Return the parser of the transcript."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["text_join", "html_block", "html_inline"])
    parser.inline.ruler.before("escape", "formula", formula_rule)
    return parser


def parse(parser: MarkdownIt, text: str, base: int = 0) -> Parsed:
    """Parse ``text``, which stands at offset ``base`` of its message."""
    environment: dict[str, object] = {}
    tokens = parser.parse(text, environment)
    return _Builder(text, base).build(tokens, bool(environment.get("references")))


class _Builder:
    def __init__(self, text: str, base: int) -> None:
        self._text, self._base = text, base
        self._walker = Walker(text, base)
        self._lines = [0, *(match.end() for match in LINE_END.finditer(text)), len(text)]
        self._paras: list[Para] = []
        self._contexts: list[str] = []
        self._blocks: list[tuple[int, int]] = []
        self._lists: list[tuple[bool, str]] = []
        self._items: list[tuple[int, int]] = []
        self._quote = 0
        self._marker: Run | None = None
        self._fence: tuple[str, str, int, bool] | None = None

    def build(self, tokens: list[Token], has_references: bool) -> Parsed:
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if token.map:
                line = self._line(token.map[0])
                self._walker.enter(line, self._line(token.map[1]))
                if token.level == 0 and token.nesting >= 0:
                    self._blocks.append((len(self._paras), line))
                    self._fence = None
            index = self._block(tokens, index)
        return Parsed(
            tuple(self._paras),
            tuple(self._blocks),
            tuple(self._contexts),
            self._fence,
            has_references,
        )

    def _line(self, number: int) -> int:
        return self._lines[min(number, len(self._lines) - 1)]

    def _block(self, tokens: list[Token], index: int) -> int:
        """Add what token ``index`` says; return the index to go on at."""
        token = tokens[index]
        kind = token.type
        if kind in ("bullet_list_open", "ordered_list_open"):
            self._lists.append((kind == "ordered_list_open", token.markup))
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self._lists.pop()
        elif kind == "list_item_open":
            self._open_item(token)
        elif kind == "list_item_close":
            if self._marker is not None:
                first = self._items[-1][0]
                self._add(ParaKind.TEXT, token, [], lines=(first, first + 1))
            self._items.pop()
        elif kind == "blockquote_open":
            self._quote += 1
        elif kind == "blockquote_close":
            self._quote -= 1
        elif kind == "hr":
            self._add(ParaKind.RULE, token, [])
        elif kind in ("fence", "code_block"):
            self._code(token)
        elif kind in ("paragraph_open", "heading_open"):
            self._paragraph(token, tokens[index + 1])
            return index + 3
        elif kind == "table_open":
            return self._table(tokens, index)
        return index + 1

    def _open_item(self, token: Token) -> None:
        ordered, markup = self._lists[-1]
        mark = f"{token.info}{markup}" if ordered else markup
        source = self._walker.take(mark)[0].source
        if ordered:
            self._marker = Run(mark, source)
        else:
            depth = sum(1 for is_ordered, _ in self._lists if not is_ordered)
            self._marker = Run(BULLETS[(depth - 1) % len(BULLETS)], source, single=True)
        self._items.append((token.map[0] if token.map else 0, self._walker.pos))

    def _context(self) -> str:
        items = self._items[:-1] if self._marker is not None else self._items
        lines = {line: self._text[self._line(line) : end] + " x\n" for line, end in items}
        return "".join(lines.values()) + ("\n" if lines and self._marker is None else "")

    def _add(
        self,
        kind: ParaKind,
        token: Token,
        runs: list[Run],
        *,
        level: int = 0,
        tight: bool = False,
        lines: tuple[int, int] | None = None,
        language: str = "",
        group: int = -1,
        rows: tuple[tuple[Cell, ...], ...] = (),
        aligns: tuple[str, ...] = (),
    ) -> None:
        span = lines or (tuple(token.map) if token.map else (0, 0))
        start, end = self._line(span[0]), self._line(span[1])
        if self._marker is not None:  # it may stand alone on a line before
            start = min(start, self._line(self._items[-1][0]))
        self._contexts.append(self._context())
        para = Para(
            kind=kind,
            start=self._base + start,
            end=self._base + min(end, len(self._text)),
            runs=tuple(runs),
            level=level,
            quote=self._quote,
            indent=len(self._lists),
            marker=self._marker,
            tight=tight,
            language=language,
            group=group,
            rows=rows,
            aligns=aligns,
        )
        self._marker = None
        self._paras.append(para)

    def _paragraph(self, token: Token, inline: Token) -> None:
        heading = token.type == "heading_open"
        if heading and token.markup.startswith("#"):
            self._walker.skip(token.markup)
        runs = inline_runs(inline.children or (), self._walker)
        kind = ParaKind.HEADING if heading else ParaKind.TEXT
        level = int(token.tag[1]) if heading else 0
        if heading or runs or self._marker:
            self._add(kind, token, runs, level=level, tight=token.hidden)

    def _code(self, token: Token) -> None:
        first, last = token.map or (0, 0)
        fenced = token.type == "fence"
        group = self._base + self._line(first)
        language = token.info.split()[0] if token.info.split() else ""
        top = first + 1 if fenced else first
        self._walker.enter(self._line(first), self._line(top))
        header = self._walker.take(language, Style.MUTED)
        header = header or [Run(UNNAMED_CODE, group, Style.MUTED, single=True)]
        self._add(
            ParaKind.CODE_HEADER, token, header, lines=(first, top), language=language, group=group
        )
        lines = highlighted_lines(token.content.removesuffix("\n"), language)
        for number, (pieces, _) in enumerate(lines if token.content else (), start=top):
            runs = self._code_runs(number, pieces)
            here = (min(number, last), min(number + 1, last))
            self._add(ParaKind.CODE, token, runs, lines=here, language=language, group=group)
        if fenced and token.level == 0:
            closing = self._text[self._line(last - 1) : self._line(last)].strip()
            closed = (
                last - 1 > first
                and len(closing) >= len(token.markup)
                and set(closing) == {token.markup[0]}
            )
            self._fence = (token.markup, language, self._base + self._line(first + 1), closed)
        end = self._base + min(self._line(last), len(self._text))
        self._paras[-1] = replace(self._paras[-1], end=end)

    def _code_runs(self, number: int, pieces: list[tuple[str, str]]) -> list[Run]:
        start, end = self._line(number), self._line(number + 1)
        source = self._walker.text[start:end].rstrip("\r\n")
        shown = "".join(text for text, _ in pieces)
        self._walker.enter(end, end)
        position = self._base + start + len(source) - len(shown)
        if source.endswith(shown):
            return code_runs(pieces, position)
        # Part of a tab belongs to the block around, the rest is spaces that all lean on it.
        indent = len(shown) - len(shown.lstrip(" "))
        tab = max(position + indent - 1, self._base + start)
        return [
            Run(run.text, tab, run.style, syntax=run.syntax, single=True)
            if run.source < position + indent
            else run
            for run in code_runs(_split_at(pieces, indent), position)
        ]

    def _table(self, tokens: list[Token], index: int) -> int:
        opening = tokens[index]
        rows: list[tuple[Cell, ...]] = []
        aligns: list[str] = []
        row: list[Cell] = []
        while tokens[index].type != "table_close":
            token = tokens[index]
            if token.type == "tr_open":
                row = []
                if token.map:
                    self._walker.enter(self._line(token.map[0]), self._line(token.map[1]))
            elif token.type == "tr_close":
                rows.append(tuple(row))
            elif token.type in ("th_open", "td_open"):
                heading = token.type == "th_open"
                if heading:
                    aligns.append(str(token.attrGet("style") or "").rpartition(":")[2])
                style = Style.BOLD if heading else Style.NONE
                row.append(
                    tuple(inline_runs(tokens[index + 1].children or (), self._walker, style))
                )
            index += 1
        self._add(ParaKind.TABLE, opening, [], rows=tuple(rows), aligns=tuple(aligns))
        return index + 1


def _split_at(pieces: list[tuple[str, str]], index: int) -> list[tuple[str, str]]:
    """Return ``pieces`` with a border before character ``index``."""
    result = []
    for text, syntax in pieces:
        result += [
            (part, syntax) for part in (text[: max(index, 0)], text[max(index, 0) :]) if part
        ]
        index -= len(text)
    return result


def code_runs(pieces: list[tuple[str, str]], source: int) -> list[Run]:
    """Return the runs of one line of code that stands as it is at offset ``source``."""
    runs = []
    for text, syntax in pieces:
        runs.append(Run(text, source, Style.CODE, syntax=syntax))
        source += len(text)
    return runs

"""Writes paragraphs into a QTextDocument and lays the colours over them.

Fonts are in the document; colours (origin, code, links) are formats of the layout, so that the
colouring switch and a change of theme never touch the text. Only what differs from what is
already there is written.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

from PySide6.QtGui import (
    QBrush,
    QColor,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QTextTable,
)

from app.rendering.look import Look
from app.rendering.model import Para, ParaKind, Run, Style
from app.rendering.overlay import overlay, shown_runs, utf16
from app.rendering.table import cells_of, write_table
from app.rendering.tokens import TokenMap

_CHAIN_LIMIT = 6000
"""Characters after which a paragraph that was frozen in parts goes on in a new block."""


@dataclass(slots=True)
class _Placed:
    """A paragraph and where it stands: positions of its first character and after its last."""

    para: Para
    start: int
    end: int
    head: int
    table: QTextTable | None = None
    cells: list[tuple[int, tuple[Run, ...]]] = field(default_factory=list)


class DocumentWriter:
    """Keeps one QTextDocument equal to a list of paragraphs. Window thread only."""

    def __init__(self, document: QTextDocument, tokens: TokenMap, look: Look) -> None:
        self.document = document
        self.tokens = tokens
        self.look = look
        self.colouring = True
        self._placed: list[_Placed] = []
        self._starts: list[int] = []
        self._headers: list[int] = []
        self._last_of: dict[int, int] = {}
        self._fixed = 0
        document.setUndoRedoEnabled(False)

    @property
    def paras(self) -> list[Para]:
        """The paragraphs shown."""
        return [placed.para for placed in self._placed]

    def __len__(self) -> int:
        return len(self._placed)

    def para(self, index: int) -> Para:
        """Return paragraph ``index``."""
        return self._placed[index].para

    def show(self, frozen: list[Para], open_: list[Para]) -> None:
        """Show ``frozen`` followed by ``open_``.

        ``frozen`` must begin with what was frozen in the last call.
        """
        total = len(frozen) + len(open_)
        first = self._fixed
        while first < min(total, len(self._placed)):
            para = frozen[first] if first < len(frozen) else open_[first - len(frozen)]
            if self._placed[first].para != para:
                break
            first += 1
        self._fixed = len(frozen)
        if first == total == len(self._placed):
            return
        cursor = QTextCursor(self.document)
        cursor.beginEditBlock()
        begin = first
        if first < min(total, len(self._placed)):
            para = frozen[first] if first < len(frozen) else open_[first - len(frozen)]
            if self._extend(cursor, first, para):
                begin = first + 1
        self._truncate(cursor, begin)
        for index in range(begin, total):
            para = frozen[index] if index < len(frozen) else open_[index - len(frozen)]
            self._append(cursor, para)
        self._colour(first)
        cursor.endEditBlock()

    def rewrite(self, look: Look) -> None:
        """Write everything again in another look."""
        paras, fixed = self.paras, self._fixed
        self.look = look
        self._fixed = 0
        cursor = QTextCursor(self.document)
        cursor.beginEditBlock()
        self._truncate(cursor, 0)
        for para in paras:
            self._append(cursor, para)
        self._colour(0)
        cursor.endEditBlock()
        self._fixed = fixed

    def recolour(self, look: Look, colouring: bool) -> None:
        """Change colours only."""
        self.look, self.colouring = look, colouring
        cursor = QTextCursor(self.document)
        cursor.beginEditBlock()
        self._colour(0)
        for placed in self._placed:
            if placed.table is not None:
                table_format = placed.table.format()
                table_format.setBorderBrush(QBrush(QColor(look.theme.border)))
                placed.table.setFormat(table_format)
        cursor.endEditBlock()

    def _extend(self, cursor: QTextCursor, index: int, para: Para) -> bool:
        """Change a paragraph that only lost or gained text at its end, in place."""
        placed = self._placed[index]
        old = placed.para
        same = (old.kind, old.level, old.quote, old.indent, old.marker, old.group) == (
            para.kind,
            para.level,
            para.quote,
            para.indent,
            para.marker,
            para.group,
        )
        if not same or placed.table is not None or para.kind is ParaKind.TABLE:
            return False
        if old.continues != para.continues or old.tight != para.tight:
            return False
        common = 0
        while common < min(len(old.runs), len(para.runs)) and old.runs[common] == para.runs[common]:
            common += 1
        kept = sum(utf16(run.text) for run in old.runs[:common])
        rest = list(para.runs[common:])
        if common < len(old.runs) and rest and _grows(old.runs[common], rest[0], para):
            kept += utf16(old.runs[common].text)
            shown = len(old.runs[common].text)
            rest[0] = Run(rest[0].text[shown:], rest[0].source + shown, rest[0].style)
        prefix = utf16(para.marker.text) + 1 if para.marker else 0
        self._truncate(cursor, index + 1)
        cursor.setPosition(placed.start + prefix + kept)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        for run in rest:
            cursor.insertText(run.text, self.look.letters(run, para))
        placed.para, placed.end = para, cursor.position()
        return True

    def _truncate(self, cursor: QTextCursor, index: int) -> None:
        if index >= len(self._placed):
            return
        position = self._placed[index - 1].end if index else 0
        cursor.setPosition(position)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        del self._placed[index:]
        del self._starts[index:]
        while self._headers and self._headers[-1] >= index:
            self._headers.pop()
        if index and self._placed[-1].para.group >= 0:
            self._last_of[self._placed[-1].para.group] = index - 1

    def _append(self, cursor: QTextCursor, para: Para) -> None:
        before = self._placed[-1] if self._placed else None
        cursor.movePosition(QTextCursor.MoveOperation.End)
        if para.kind is ParaKind.TABLE:
            self._append_table(cursor, para, before)
            return
        head = len(self._placed)
        if para.continues and before and cursor.block().length() < _CHAIN_LIMIT:
            head = before.head
        else:
            style = Style.CODE if para.kind is ParaKind.CODE else Style.NONE
            letters = self.look.char_format(style, para)
            spacing = self.look.block_format(para, before.para if before else None)
            if before is None or before.table is not None:
                cursor.setBlockFormat(spacing)
                cursor.setBlockCharFormat(letters)
            else:
                cursor.insertBlock(spacing, letters)
        start = cursor.position()
        if para.marker:
            letters = self.look.char_format(Style.NONE, para)
            cursor.insertText(para.marker.text + "\t", letters)
        for run in para.runs:
            cursor.insertText(run.text, self.look.letters(run, para))
        self._place(_Placed(para, start, cursor.position(), head))

    def _append_table(self, cursor: QTextCursor, para: Para, before: _Placed | None) -> None:
        if before is None or before.table is not None:
            cursor.setBlockFormat(self.look.hair_format())
        table = write_table(cursor, para, self.look)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.setBlockFormat(self.look.hair_format())
        placed = _Placed(para, table.firstPosition(), cursor.position(), len(self._placed), table)
        placed.cells = cells_of(table, para)
        self._place(placed)

    def _place(self, placed: _Placed) -> None:
        index = len(self._placed)
        if placed.para.kind is ParaKind.CODE_HEADER:
            self._headers.append(index)
        if placed.para.group >= 0:
            self._last_of[placed.para.group] = index
        self._placed.append(placed)
        self._starts.append(placed.start)

    def _colour(self, first: int) -> None:
        """Lay the colours over paragraphs ``first`` and after."""
        if first < len(self._placed):
            first = self._placed[first].head
        index = first
        while index < len(self._placed):
            placed = self._placed[index]
            if placed.table is not None:
                for position, runs in placed.cells:
                    self._overlay(self.document.findBlock(position), runs, placed.para)
                index += 1
                continue
            following = index + 1
            runs = shown_runs(placed.para)
            while following < len(self._placed) and self._placed[following].head == index:
                runs = (*runs, *self._placed[following].para.runs)
                following += 1
            self._overlay(self.document.findBlock(placed.start), runs, placed.para)
            index = following

    def _overlay(self, block: QTextBlock, runs: tuple[Run, ...], para: Para) -> None:
        tokens = self.tokens if self.colouring else None
        block.layout().setFormats(overlay(runs, para, tokens, self.look))

    def index_at(self, position: int) -> int | None:
        """Return the paragraph at document ``position``, None if there is none."""
        index = bisect_right(self._starts, position) - 1
        return index if index >= 0 else None

    def source_at(self, position: int) -> int | None:
        """Return the source character shown at document ``position``."""
        index = self.index_at(position)
        if index is None:
            return None
        placed = self._placed[index]
        start, runs = placed.start, shown_runs(placed.para)
        if placed.table is not None:
            number = bisect_right([cell[0] for cell in placed.cells], position) - 1
            if number < 0:
                return None
            start, runs = placed.cells[number]
        offset = position - start
        for run in runs:
            size = utf16(run.text)
            if offset < size:
                before = run.text.encode("utf-16-le")[: offset * 2]
                return run.source_of(len(before.decode("utf-16-le", "ignore")))
            offset -= size
        return None

    def source_range(self, start: int, end: int) -> tuple[int, int]:
        """Return the source range of the document positions ``start`` to ``end``.

        A selection that takes the whole front of a paragraph takes its markup too, and one
        that takes its whole end likewise.
        """
        first, last = self.index_at(start), self.index_at(end)
        if first is None or last is None:
            return 0, 0
        head, tail = self._placed[first], self._placed[last]
        source = self.source_at(start)
        if start == head.start or head.table is not None:
            begin = head.para.start
        elif source is not None:
            begin = source
        else:
            begin = head.para.end
        if end >= tail.end or tail.table is not None:
            return begin, tail.para.end
        if end == tail.start:
            return begin, max(tail.para.start, begin)
        before = self.source_at(end - 1)
        return begin, (tail.para.start if before is None else before + 1)

    def in_table(self, position: int) -> bool:
        """Say whether document ``position`` is inside a table."""
        index = self.index_at(position)
        return index is not None and self._placed[index].table is not None

    def code_headers(self) -> list[int]:
        """Return the paragraphs that head code blocks."""
        return self._headers

    def group_range(self, group: int, index: int) -> tuple[int, int]:
        """Return the first and last paragraph of the code block around paragraph ``index``."""
        place = bisect_right(self._headers, index) - 1
        first = self._headers[place] if place >= 0 else index
        after = self._headers[place + 1] if place + 1 < len(self._headers) else len(self._placed)
        last = self._last_of.get(group, index)
        return first, min(max(last, first), after - 1)

    def block(self, index: int) -> QTextBlock:
        """Return the text block of paragraph ``index``."""
        return self.document.findBlock(self._placed[index].start)


def _grows(old: Run, new: Run, para: Para) -> bool:
    alike = (old.source, old.style, old.single) == (new.source, new.style, new.single)
    return alike and not new.single and new.text.startswith(old.text)

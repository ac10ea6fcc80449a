"""Writes paragraphs into a QTextDocument and lays the colours over them.

Fonts are in the document; colours (origin, code, links) are formats of the layout, so that the
colouring switch and a change of theme never touch the text. Only what differs from what is
already there is written.
"""

from PySide6.QtGui import (
    QBrush,
    QColor,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QTextLayout,
    QTextLength,
)

from app.rendering.look import Look
from app.rendering.model import Para, ParaKind, Run, Style
from app.rendering.overlay import insertable, overlay, shown_runs, utf16
from app.rendering.placement import Placed, PlacedText
from app.rendering.table import cells_of, extend_table, share_columns, write_table
from app.rendering.tokens import TokenMap

_CHAIN_LIMIT = 6000
"""Characters after which a paragraph that was frozen in parts goes on in a new block."""


class DocumentWriter(PlacedText):
    """Keeps one QTextDocument equal to a list of paragraphs. Window thread only."""

    def __init__(self, document: QTextDocument, tokens: TokenMap, look: Look) -> None:
        super().__init__(document)
        self.tokens = tokens
        self.look = look
        self.colouring = True
        self._fixed = 0
        document.setUndoRedoEnabled(False)

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
        for placed in self._placed:
            placed.coloured = 0
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
        if placed.table is not None and para.kind is ParaKind.TABLE:
            return self._extend_table(cursor, index, para)
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
            cursor.insertText(insertable(run.text), self.look.letters(run, para))
        placed.para, placed.end = para, cursor.position()
        return True

    def _extend_table(self, cursor: QTextCursor, index: int, para: Para) -> bool:
        placed = self._placed[index]
        if placed.table is None:
            return False
        self._truncate(cursor, index + 1)
        first = extend_table(placed.table, placed.para, para, self.look)
        if first is None:
            return False
        kept = sum(len(row) for row in para.rows[:first])
        placed.cells = placed.cells[:kept] + cells_of(placed.table, para, first)
        placed.coloured = min(placed.coloured, kept)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        placed.para, placed.end = para, cursor.position()
        return True

    def _truncate(self, cursor: QTextCursor, index: int) -> None:
        if index >= len(self._placed):
            return
        position = self._placed[index - 1].end if index else 0
        cursor.setPosition(position)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self._forget(index)

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
            cursor.insertText(insertable(run.text), self.look.letters(run, para))
        self._place(Placed(para, start, cursor.position(), head))

    def _append_table(self, cursor: QTextCursor, para: Para, before: Placed | None) -> None:
        if before is None or before.table is not None:
            cursor.setBlockFormat(self.look.hair_format())
        widths: list[QTextLength] = []
        if para.continues and before is not None and before.table is not None:
            widths = share_columns(before.table, before.para)
            cursor.movePosition(QTextCursor.MoveOperation.End)
        table = write_table(cursor, para, self.look, widths)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.setBlockFormat(self.look.hair_format())
        placed = Placed(para, table.firstPosition(), cursor.position(), len(self._placed), table)
        placed.cells = cells_of(table, para)
        self._place(placed)

    def _colour(self, first: int) -> None:
        """Lay the colours over paragraphs ``first`` and after."""
        tokens = self.tokens if self.colouring else None
        index = first
        while index < len(self._placed):
            placed = self._placed[index]
            if placed.table is not None:
                for position, runs in placed.cells[placed.coloured :]:
                    block = self.document.findBlock(position)
                    block.layout().setFormats(overlay(runs, placed.para, tokens, self.look))
                placed.coloured = len(placed.cells)
                index += 1
                continue
            head = placed.head
            block = self.document.findBlock(placed.start)
            colours: list[QTextLayout.FormatRange] = []
            for part in self._placed[head:index]:
                colours += part.colours or []
            index = self._colour_parts(index, head, block, colours, tokens)
            block.layout().setFormats(colours)

    def _colour_parts(
        self,
        index: int,
        head: int,
        block: QTextBlock,
        colours: list[QTextLayout.FormatRange],
        tokens: TokenMap | None,
    ) -> int:
        """Add the colours of the parts of ``block`` from ``index`` on; return what follows it."""
        while index < len(self._placed) and self._placed[index].head == head:
            part = self._placed[index]
            shift = part.start - block.position()
            part.colours = overlay(shown_runs(part.para), part.para, tokens, self.look, shift)
            colours += part.colours
            index += 1
        return index


def _grows(old: Run, new: Run, para: Para) -> bool:
    alike = (old.source, old.style, old.single) == (new.source, new.style, new.single)
    return alike and not new.single and new.text.startswith(old.text)

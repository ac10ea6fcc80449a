"""Writes a Markdown table as a QTextTable."""

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QTextBlockFormat,
    QTextCursor,
    QTextFrameFormat,
    QTextTable,
    QTextTableFormat,
)

from app.rendering.look import QUOTE_STEP, Look
from app.rendering.model import Cell, Para, Style

_ALIGN = {
    "left": Qt.AlignmentFlag.AlignLeft,
    "right": Qt.AlignmentFlag.AlignRight,
    "center": Qt.AlignmentFlag.AlignHCenter,
}


def write_table(cursor: QTextCursor, para: Para, look: Look) -> QTextTable:
    """Insert the table of ``para`` at ``cursor``; rows may be shorter than the header."""
    columns = max((len(row) for row in para.rows), default=1)
    table_format = QTextTableFormat()
    table_format.setBorder(1.0)
    table_format.setBorderCollapse(True)
    table_format.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    table_format.setBorderBrush(QBrush(QColor(look.theme.border)))
    table_format.setCellPadding(6.0)
    table_format.setCellSpacing(0.0)
    table_format.setTopMargin(12.0)
    table_format.setBottomMargin(12.0)
    table_format.setHeaderRowCount(1)
    table_format.setLeftMargin(para.quote * QUOTE_STEP + para.indent * look.indent)
    table = cursor.insertTable(max(len(para.rows), 1), max(columns, 1), table_format)
    for row, cells in enumerate(para.rows):
        for column, cell in enumerate(cells):
            inside = table.cellAt(row, column).firstCursorPosition()
            spacing = QTextBlockFormat()
            align = para.aligns[column] if column < len(para.aligns) else ""
            spacing.setAlignment(_ALIGN.get(align, Qt.AlignmentFlag.AlignLeft))
            inside.setBlockFormat(spacing)
            inside.setBlockCharFormat(look.char_format(Style.NONE, para))
            for run in cell:
                inside.insertText(run.text, look.letters(run, para))
    return table


def cells_of(table: QTextTable, para: Para) -> list[tuple[int, Cell]]:
    """Return (position of the first character, runs) of each cell in reading order."""
    return [
        (table.cellAt(row, column).firstPosition(), cell)
        for row, cells in enumerate(para.rows)
        for column, cell in enumerate(cells)
    ]

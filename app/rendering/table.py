"""Writes a Markdown table as a QTextTable."""

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QTextBlockFormat,
    QTextCursor,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
    QTextTableFormat,
)

from app.rendering.look import QUOTE_STEP, Look
from app.rendering.model import Cell, Para, Style
from app.rendering.overlay import insertable

_WHOLE = QTextLength(QTextLength.Type.PercentageLength, 100.0)
_MIN_WEIGHT, _MAX_WEIGHT = 4, 50
_ALIGN = {
    "left": Qt.AlignmentFlag.AlignLeft,
    "right": Qt.AlignmentFlag.AlignRight,
    "center": Qt.AlignmentFlag.AlignHCenter,
}


def write_table(
    cursor: QTextCursor, para: Para, look: Look, widths: list[QTextLength]
) -> QTextTable:
    """Insert the table of ``para`` at ``cursor``; with ``widths`` it goes on one before it."""
    columns = max((len(row) for row in para.rows), default=1)
    table_format = QTextTableFormat()
    table_format.setBorder(1.0)
    table_format.setBorderCollapse(True)
    table_format.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    table_format.setBorderBrush(QBrush(QColor(look.theme.border)))
    table_format.setCellPadding(6.0)
    table_format.setCellSpacing(0.0)
    table_format.setTopMargin(0.0 if widths else 12.0)
    table_format.setBottomMargin(12.0)
    table_format.setHeaderRowCount(0 if widths else 1)
    if widths:
        table_format.setWidth(_WHOLE)
        table_format.setColumnWidthConstraints(widths)
    table_format.setLeftMargin(para.quote * QUOTE_STEP + para.indent * look.indent)
    table = cursor.insertTable(max(len(para.rows), 1), max(columns, 1), table_format)
    _fill(table, para, look, 0)
    return table


def share_columns(table: QTextTable, para: Para) -> list[QTextLength]:
    """Give the table of ``para`` columns that one after it can share; return their widths."""
    table_format = table.format()
    widths = list(table_format.columnWidthConstraints())
    if not widths:
        weights = [
            max(min(sum(len(run.text) for run in row[column]), _MAX_WEIGHT) for row in para.rows)
            + _MIN_WEIGHT
            for column in range(table.columns())
        ]
        percent = QTextLength.Type.PercentageLength
        widths = [QTextLength(percent, 100.0 * weight / sum(weights)) for weight in weights]
        table_format.setColumnWidthConstraints(widths)
        table_format.setWidth(_WHOLE)
    table_format.setBottomMargin(0.0)
    table.setFormat(table_format)
    return widths


def extend_table(table: QTextTable, old: Para, new: Para, look: Look) -> int | None:
    """Make the table of ``old`` that of ``new`` if only rows at its end differ.

    Returns the first row that was written, or None if the table must be made anew.
    """
    if (old.aligns, old.quote, old.indent) != (new.aligns, new.quote, new.indent):
        return None
    same = 0
    while same < min(len(old.rows), len(new.rows)) and old.rows[same] == new.rows[same]:
        same += 1
    columns = max((len(row) for row in new.rows), default=1)
    if same == 0 or len(new.rows) < len(old.rows) or columns != table.columns():
        return None
    for row in range(same, len(old.rows)):
        for column in range(table.columns()):
            cell = table.cellAt(row, column)
            cursor = cell.firstCursorPosition()
            cursor.setPosition(cell.lastPosition(), QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
    if len(new.rows) > len(old.rows):
        table.appendRows(len(new.rows) - len(old.rows))
    _fill(table, new, look, same)
    return same


def _fill(table: QTextTable, para: Para, look: Look, first: int) -> None:
    letters = look.char_format(Style.NONE, para)
    for row, cells in enumerate(para.rows[first:], start=first):
        for column, cell in enumerate(cells):
            inside = table.cellAt(row, column).firstCursorPosition()
            spacing = QTextBlockFormat()
            align = para.aligns[column] if column < len(para.aligns) else ""
            spacing.setAlignment(_ALIGN.get(align, Qt.AlignmentFlag.AlignLeft))
            inside.setBlockFormat(spacing)
            inside.setBlockCharFormat(letters)
            for run in cell:
                inside.insertText(insertable(run.text), look.letters(run, para))


def cells_of(table: QTextTable, para: Para, first: int = 0) -> list[tuple[int, Cell]]:
    """Return (position of the first character, runs) of each cell from row ``first`` on."""
    return [
        (table.cellAt(row, column).firstPosition(), cell)
        for row, cells in enumerate(para.rows[first:], start=first)
        for column, cell in enumerate(cells)
    ]

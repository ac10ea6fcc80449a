"""Paints what stands behind rendered text: code backgrounds, quote bars and rules."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from app.rendering.document import DocumentWriter
from app.rendering.look import CODE_PAD, FOOT_PAD, HEADER_PAD, QUOTE_STEP
from app.rendering.model import ParaKind

_RADIUS = 7.0


def paint_decorations(
    painter: QPainter, writer: DocumentWriter, width: int, exposed: QRectF
) -> None:
    """Paint behind the paragraphs that ``exposed`` touches; ``width`` is the text's width."""
    if not len(writer):
        return
    layout = writer.document.documentLayout()
    top = layout.hitTest(QPointF(0.0, max(exposed.top() - 40.0, 0.0)), Qt.HitTestAccuracy.FuzzyHit)
    index = max((writer.index_at(max(top, 0)) or 0) - 1, 0)
    painted: set[int] = set()
    theme = writer.look.theme
    while index < len(writer):
        para = writer.para(index)
        rect = layout.blockBoundingRect(writer.block(index))
        if rect.top() > exposed.bottom() + 40.0:
            return
        if para.group >= 0 and para.group not in painted:
            painted.add(para.group)
            first, last = writer.group_range(para.group, index)
            box = layout.blockBoundingRect(writer.block(first))
            bottom = layout.blockBoundingRect(writer.block(last)).bottom()
            left = para.quote * QUOTE_STEP + para.indent * writer.look.indent
            box = QRectF(
                left,
                box.top() - HEADER_PAD,
                width - left,
                bottom - box.top() + HEADER_PAD + FOOT_PAD - 2.0,
            )
            painter.setPen(QColor(theme.border))
            painter.setBrush(QColor(theme.code_background))
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
        if para.kind is ParaKind.RULE:
            painter.setPen(QColor(theme.border))
            middle = round(rect.center().y()) + 0.5
            painter.drawLine(QPointF(0.0, middle), QPointF(width, middle))
        _paint_quote(painter, writer, index, rect)
        index += 1


def _paint_quote(painter: QPainter, writer: DocumentWriter, index: int, rect: QRectF) -> None:
    para = writer.para(index)
    before = writer.para(index - 1) if index else None
    for depth in range(para.quote):
        joined = before is not None and before.quote > depth
        top = rect.top()
        if joined:
            layout = writer.document.documentLayout()
            top = layout.blockBoundingRect(writer.block(index - 1)).bottom()
        pad = CODE_PAD / 2 if para.group >= 0 else 0.0
        bar = QRectF(depth * QUOTE_STEP + 3.0, top, 3.0, rect.bottom() - top + pad)
        painter.fillRect(bar, QColor(writer.look.theme.outline))

"""Shows rendered text with the origin of every token; selectable, never fetching anything."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, QRectF, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QTextCursor,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QToolButton, QToolTip, QWidget

from app.rendering.document import DocumentWriter
from app.rendering.look import FOOT_PAD, Look
from app.rendering.model import Para
from app.rendering.tokens import TokenMap
from app.widgets.decoration import paint_decorations
from app.widgets.icons import icon
from app.widgets.token_tip import token_tip

SCHEMES = ("http", "https", "mailto")
_EDGE = 7.0
_FOOT = 1.0
"""Less than above: lines have their spare height below the letters."""
_KEYS_OF_THE_TRANSCRIPT = (
    Qt.Key.Key_PageUp,
    Qt.Key.Key_PageDown,
    Qt.Key.Key_Home,
    Qt.Key.Key_End,
    Qt.Key.Key_Space,
)


class MarkdownView(QTextBrowser):
    """One text of a message, as high as it needs to be.

    ``source`` returns the whole message text; paragraphs hold offsets into it.
    """

    linkActivated = Signal(str)
    """A link was clicked: http, https or mailto only."""

    def __init__(
        self,
        tokens: TokenMap,
        look: Look,
        source: Callable[[], str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._source = source
        self._writer = DocumentWriter(self.document(), tokens, look)
        self._caret_opacity: float | None = None
        self._buttons: dict[int, QToolButton] = {}
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setOpenLinks(False)
        # The viewport of a view that has not been shown yet has no width to go by.
        self.setLineWrapMode(QTextBrowser.LineWrapMode.FixedPixelWidth)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
            | Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.viewport().setAutoFillBackground(False)
        for part in (self, self.viewport()):
            part.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.document().setDocumentMargin(0.0)
        root = self.document().rootFrame()
        margins = root.frameFormat()
        margins.setTopMargin(_EDGE)
        margins.setBottomMargin(_FOOT)
        root.setFrameFormat(margins)
        self.anchorClicked.connect(self._open_link)
        self._wear(look)

    @property
    def writer(self) -> DocumentWriter:
        """What keeps the document."""
        return self._writer

    def show_paras(self, frozen: list[Para], open_: list[Para]) -> None:
        """Show paragraphs; see DocumentWriter.show."""
        self._writer.show(frozen, open_)

    def set_look(self, look: Look, *, colouring: bool) -> None:
        """Change the theme or the font; the text is written anew only for another font."""
        old = self._writer.look
        self._wear(look)
        if old.font == look.font:
            self._writer.recolour(look, colouring)
        else:
            self._writer.colouring = colouring
            self._writer.rewrite(look)
        self.viewport().update()

    def set_colouring(self, on: bool) -> None:
        """Show or hide the origins."""
        if on != self._writer.colouring:
            self._writer.recolour(self._writer.look, on)

    def set_caret(self, opacity: float | None) -> None:
        """Show a caret after the text with ``opacity`` 0..1; None hides it."""
        if opacity != self._caret_opacity:
            self._caret_opacity = opacity
            self.viewport().update(self._caret_rect().toAlignedRect().adjusted(-2, -2, 2, 2))

    def height_for(self, width: int) -> int:
        """Lay the text out for ``width`` and return the height it needs."""
        if self.lineWrapColumnOrWidth() != width:
            self.setLineWrapColumnOrWidth(width)
        height = self.document().size().height()
        if len(self._writer) and self._writer.para(len(self._writer) - 1).group >= 0:
            height += FOOT_PAD
        return int(height + 0.999)

    def place_buttons(self) -> None:
        """Put a copy button on the header of every code block; call after laying out."""
        layout = self.document().documentLayout()
        seen = set()
        for index in self._writer.code_headers():
            para = self._writer.para(index)
            seen.add(para.group)
            button = self._buttons.get(para.group) or self._make_button(para.group)
            rect = layout.blockBoundingRect(self._writer.block(index))
            x = self.width() - button.width() - 4
            button.move(x, round(rect.center().y() - button.height() / 2))
            button.show()
        for group in set(self._buttons) - seen:
            self._buttons.pop(group).deleteLater()

    def focus_chain(self) -> list[QWidget]:
        """Return what takes the focus, in reading order."""
        return [self, *(self._buttons[group] for group in sorted(self._buttons))]

    def code_text(self, group: int) -> str:
        """Return the code of the block ``group`` (the offset of its fence)."""
        lines = [p.text for p in self._writer.paras if p.group == group]
        return "\n".join(lines[1:])

    def source_under(self, point: QPoint) -> int | None:
        """Return the source character under ``point`` of the viewport."""
        layout = self.document().documentLayout()
        position = layout.hitTest(QPointF(point), Qt.HitTestAccuracy.ExactHit)
        if position < 0:
            return None
        block = self.document().findBlock(position)
        text_layout = block.layout()
        inside = QPointF(point) - text_layout.position()
        line = text_layout.lineForTextPosition(position - block.position())
        if not line.isValid():
            return None
        if block.length() > 1 and not self._writer.in_table(position):
            offset = line.xToCursor(inside.x(), line.CursorPosition.CursorOnCharacter)
            position = block.position() + int(offset)
        return self._writer.source_at(position)

    def tip_at(self, point: QPoint) -> str:
        """Return the tooltip for ``point`` of the viewport, empty where no token is."""
        offset = self.source_under(point)
        tokens = self._writer.tokens
        index = None if offset is None else tokens.index_at(offset)
        if index is None:
            return ""
        start, end = tokens.span(index)
        return token_tip(self._source()[start:end], tokens.token(index))

    def selected_source(self) -> str:
        """Return the Markdown that the selection was rendered from."""
        cursor = self.textCursor()
        if not cursor.hasSelection():
            return ""
        start, end = self._writer.source_range(cursor.selectionStart(), cursor.selectionEnd())
        return self._source()[start:end].rstrip("\n")

    # Qt overrides

    def createMimeDataFromSelection(self) -> QMimeData:
        """Copy the Markdown source of what is selected."""
        data = QMimeData()
        data.setText(self.selected_source())
        return data

    def loadResource(self, type: int, name: QUrl | str) -> object:
        """Never fetch anything."""
        return None

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the transcript."""
        event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave scrolling keys to the transcript."""
        plain = event.modifiers() in (
            Qt.KeyboardModifier.NoModifier,
            Qt.KeyboardModifier.KeypadModifier,
        )
        if plain and event.key() in _KEYS_OF_THE_TRANSCRIPT:
            event.ignore()
            return
        super().keyPressEvent(event)

    def viewportEvent(self, event: QEvent) -> bool:
        """Show what the token under the pointer knows."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            tip = self.tip_at(event.pos())
            if tip:
                QToolTip.showText(event.globalPos(), tip, self.viewport())
            else:
                QToolTip.hideText()
            return True
        return super().viewportEvent(event)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Stay in place: the view is as high as its text."""
        self.verticalScrollBar().setValue(0)
        self.horizontalScrollBar().setValue(0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint what stands behind the text, the text, and the caret."""
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_decorations(painter, self._writer, self.viewport().width(), QRectF(event.rect()))
        painter.end()
        super().paintEvent(event)
        if self._caret_opacity is not None:
            painter = QPainter(self.viewport())
            painter.setOpacity(self._caret_opacity)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self._writer.look.theme.accent))
            painter.drawRoundedRect(self._caret_rect(), 1.5, 1.5)
            painter.end()

    def minimumSizeHint(self) -> QSize:
        """The transcript decides the size."""
        return QSize(0, 0)

    def _caret_rect(self) -> QRectF:
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        rect = QRectF(self.cursorRect(cursor))
        height = max(self.fontMetrics().height() - 2.0, 6.0)
        return QRectF(rect.right() + 2.0, rect.center().y() - height / 2 + 1.0, 8.0, height)

    def _wear(self, look: Look) -> None:
        theme = look.theme
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Base, Qt.GlobalColor.transparent)
        palette.setColor(QPalette.ColorRole.Text, QColor(theme.text))
        palette.setColor(QPalette.ColorRole.Highlight, QColor(theme.accent))
        palette.setColor(QPalette.ColorRole.HighlightedText, QColor(theme.accent_text))
        self.setPalette(palette)
        self.document().setDefaultFont(look.font)
        for button in self._buttons.values():
            button.setIcon(icon("copy", theme.muted))

    def _make_button(self, group: int) -> QToolButton:
        button = QToolButton(self.viewport())
        button.setProperty("flat", True)
        button.setAutoRaise(True)
        button.setIcon(icon("copy", self._writer.look.theme.muted))
        button.setToolTip("Copy this code")
        button.setAccessibleName("Copy this code")
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(lambda: self._copy_code(group))
        button.adjustSize()
        self._buttons[group] = button
        return button

    def _copy_code(self, group: int) -> None:
        QGuiApplication.clipboard().setText(self.code_text(group))
        button = self._buttons[group]
        QToolTip.showText(button.mapToGlobal(QPoint(0, button.height())), "Copied", button)

    def _open_link(self, url: QUrl) -> None:
        if url.scheme().lower() in SCHEMES:
            self.linkActivated.emit(url.toString())

"""Places messages under each other; texts far from what is seen wait with a guessed height."""

import time
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.rendering.look import Look
from app.widgets.empty_state import EmptyState
from app.widgets.error_box import ErrorBox
from app.widgets.margins import MARGIN, TEXT_WIDTH
from app.widgets.message import MessageWidget
from app.widgets.prefill_line import PrefillLine

_EMPTY_WIDTH = 620
_TOP = 20
_BOTTOM = 24
_GAP = 20
_BUDGET_S = 0.008


@dataclass(frozen=True, slots=True)
class Wear:
    """How messages are shown at present; one that wears another is brought up to date."""

    look: Look
    colouring: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    """What is at the upper edge of the view: a message and how much of it lies above."""

    widget: MessageWidget | None
    pixels: int = 0
    part: float = 0.0
    width: int = 0


@dataclass(slots=True)
class _Item:
    widget: MessageWidget
    y: int = 0
    height: int = 0
    width: int = -1
    """The width its height was measured for; -1 when it must be measured again."""
    wear: Wear | None = None

    def up_to_date(self, width: int, wear: Wear) -> bool:
        return self.widget.rendered and self.width == width and self.wear == wear


class Column(QWidget):
    """The content of the transcript. :meth:`place` must follow every change."""

    def __init__(self, empty: EmptyState, prefill: PrefillLine, error: ErrorBox) -> None:
        super().__init__()
        self._items: list[_Item] = []
        self._empty, self._prefill, self._error = empty, prefill, error
        for part in (empty, prefill, error):
            part.setParent(self)
        self._text_width = TEXT_WIDTH
        self._chain: list[QWidget] = []
        # What Qt knows to be opaque is moved as a picture when it scrolls, and what is static is
        # painted only where it grows.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)

    def add(self, widget: MessageWidget) -> None:
        """Add a message at the end."""
        widget.hide()
        self._items.append(_Item(widget))

    def clear(self) -> None:
        """Remove all messages."""
        for item in self._items:
            item.widget.hide()
            item.widget.deleteLater()
        self._items.clear()
        self._chain.clear()

    def forget_height(self, widget: MessageWidget) -> None:
        """Measure ``widget`` anew when it is next placed."""
        for item in reversed(self._items):
            if item.widget is widget:
                item.width = -1
                return

    def anchor(self, top: int) -> Anchor:
        """Return what is at ``top``."""
        for item in self._items:
            if item.y + item.height > top:
                above = top - item.y
                return Anchor(item.widget, above, above / max(item.height, 1), item.width)
        return Anchor(None)

    def resolve(self, anchor: Anchor) -> int:
        """Return where the upper edge is now that :meth:`anchor` described.

        In a text of another width the same part of it lies above, else the same pixels.
        """
        for item in self._items:
            if item.widget is anchor.widget:
                same = anchor.width in (item.width, -1) or anchor.pixels <= 0
                above = anchor.pixels if same else round(anchor.part * item.height)
                return max(item.y + above, 0)
        return 0

    def place(self, width: int, view_height: int, top: int | None, wear: Wear) -> int:
        """Place everything for ``width``, bring what is near ``top`` (None: the end) up to date.

        Returns the height of the whole.
        """
        self._text_width = max(min(TEXT_WIDTH, width - 2 * MARGIN), 120)
        left = (width - self._text_width) // 2
        end = self._stack()
        if top is None:
            top = max(end - view_height, 0)
        for item in self._items:
            near = item.y < top + 1.5 * view_height and (
                item.y + item.height > top - 0.5 * view_height
            )
            if near and not item.up_to_date(self._text_width, wear):
                self._update(item, wear)
        end = self._stack()
        for item in self._items:
            item.widget.setGeometry(left, item.y, self._text_width, item.height)
            if item.wear is not None and item.widget.isHidden():
                item.widget.show()
        end = self._place_tail(left, end)
        return self._place_empty(width, max(end + _BOTTOM, view_height))

    def _stack(self) -> int:
        y = _TOP
        for item in self._items:
            if item.height == 0:
                item.height = item.widget.estimate(self._text_width)
            item.y = y
            y += item.height + _GAP
        return y - _GAP if self._items else y

    def _update(self, item: _Item, wear: Wear) -> None:
        item.widget.wear(wear.look, colouring=wear.colouring)
        item.widget.materialise()
        item.height = item.widget.lay_out(self._text_width)
        item.width, item.wear = self._text_width, wear

    def _place_tail(self, left: int, y: int) -> int:
        if not self._prefill.isHidden():
            height = self._prefill.sizeHint().height()
            self._prefill.setGeometry(left, y + _GAP, self._text_width, height)
            y += _GAP + height
        if not self._error.isHidden():
            height = self._error.lay_out(self._text_width)
            self._error.setGeometry(left, y + _GAP, self._text_width, height)
            y += _GAP + height
        return y

    def _place_empty(self, width: int, height: int) -> int:
        self._empty.setVisible(not self._items)
        if self._items:
            return height
        wide = min(width - 2 * MARGIN, _EMPTY_WIDTH)
        tall = self._empty.lay_out(wide, height - 2 * _TOP)
        top = max((height - tall) // 2, _TOP)
        self._empty.setGeometry((width - wide) // 2, top, wide, tall)
        if not self._error.isHidden():
            box = self._error.lay_out(wide)
            self._error.setGeometry((width - wide) // 2, top + tall + _GAP, wide, box)
            tall += _GAP + box
        return max(height, top + tall + _BOTTOM)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the ground."""
        QPainter(self).fillRect(event.rect(), self.palette().window())

    def order_focus(self, before: QWidget) -> None:
        """Let Tab go from ``before`` through the messages in reading order.

        Qt keeps the order of creation, and texts are created when they come into sight.
        """
        chain = [widget for item in self._items for widget in item.widget.focus_chain()]
        if chain == self._chain:
            return
        self._chain = chain
        for widget in chain:
            QWidget.setTabOrder(before, widget)
            before = widget

    def unfinished(self, wear: Wear) -> bool:
        """Say whether a message is not up to date."""
        return any(not item.up_to_date(self._text_width, wear) for item in self._items)

    def catch_up(self, wear: Wear) -> None:
        """Bring messages up to date, newest first, for some milliseconds."""
        begun = time.perf_counter()
        for item in reversed(self._items):
            if item.up_to_date(self._text_width, wear):
                continue
            self._update(item, wear)
            if time.perf_counter() - begun > _BUDGET_S:
                return

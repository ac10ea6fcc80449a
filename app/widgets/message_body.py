"""The text of one message: what was said and, folded, what was thought."""

import time
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.rendering.look import Look
from app.rendering.stream import StreamRenderer, render_plain
from app.rendering.thinking import Segment, ThinkingScanner
from app.rendering.tokens import TokenInfo, TokenMap
from app.widgets.markdown_view import MarkdownView
from app.widgets.thinking_section import ThinkingSection

_GAP = 4
_PORTION = 3000
"""Characters of a complete text that are rendered at a time, so that nothing blocks."""


@dataclass(slots=True)
class _Part:
    segment: Segment
    renderer: StreamRenderer
    view: MarkdownView
    section: ThinkingSection | None
    rendered_to: int = -1
    complete: bool = False

    @property
    def widget(self) -> QWidget:
        return self.section or self.view


class MessageBody(QWidget):
    """Holds the text and the tokens of a message and shows them.

    ``markdown`` False shows the text as typed. Call :meth:`lay_out` after every change.
    """

    linkActivated = Signal(str)
    heightChanged = Signal()
    """A folded section was opened or closed."""

    def __init__(self, look: Look, *, markdown: bool, opens_thinking: bool = False) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._look = look
        self._markdown = markdown
        self._opens_thinking = opens_thinking
        self._colouring = True
        self._text = ""
        self._tokens = TokenMap()
        self._parts: list[_Part] = []
        self._scanner = ThinkingScanner(opened_by_prompt=opens_thinking)
        self._final = False
        self._unfinished = False

    @property
    def text(self) -> str:
        """The whole source text."""
        return self._text

    @property
    def tokens(self) -> TokenMap:
        """The tokens of the text."""
        return self._tokens

    @property
    def unfinished(self) -> bool:
        """Whether a complete text is long and only its first part is shown; refresh goes on."""
        return self._unfinished

    @property
    def views(self) -> list[MarkdownView]:
        """The views of the text in reading order."""
        return [part.view for part in self._parts]

    def focus_chain(self) -> list[QWidget]:
        """Return what takes the focus, in reading order."""
        chain: list[QWidget] = []
        for part in self._parts:
            if part.section is not None:
                chain.append(part.section.header)
            chain += part.view.focus_chain()
        return chain

    def append(self, text: str, info: TokenInfo) -> None:
        """Add one token; nothing is shown before :meth:`refresh`."""
        self._text += text
        self._tokens.append(len(text), info)

    def set_source(self, text: str, tokens: list[tuple[int, TokenInfo]]) -> None:
        """Replace everything; shown by the next :meth:`refresh`."""
        self._drop_parts(0)
        self._scanner = ThinkingScanner(opened_by_prompt=self._opens_thinking)
        self._text = text
        self._tokens = TokenMap()
        for length, info in tokens:
            self._tokens.append(length, info)

    def refresh(self, *, final: bool) -> None:
        """Show the text so far; with ``final`` it is complete."""
        self._final, self._unfinished = final, False
        for number, segment in enumerate(self._segments(final)):
            if number < len(self._parts):
                old = self._parts[number].segment
                if (old.thinking, old.start) != (segment.thinking, segment.start) or (
                    self._parts[number].complete and old.end != segment.end
                ):
                    self._drop_parts(number)
            if number == len(self._parts):
                self._parts.append(self._make_part(segment))
            self._show_part(self._parts[number], segment, final)
        self._drop_parts(len(self._segments(final)))
        defined = any(part.renderer.has_references for part in self._parts)
        if final and defined and not self._unfinished:
            # A definition may come after its use; only the whole text resolves it.
            self._drop_parts(0)
            for segment in self._segments(final):
                part = self._make_part(segment)
                self._parts.append(part)
                self._show_part(part, segment, final)
                part.renderer.has_references = False

    def _segments(self, final: bool) -> list[Segment]:
        if not self._markdown:
            return [Segment(False, 0, len(self._text))]
        segments = self._scanner.feed(self._text, final=final)
        return [
            segment
            for segment in segments
            if self._text[segment.start : segment.end].strip()
            or (segment.thinking and not segment.closed and not final)
        ]

    def _make_part(self, segment: Segment) -> _Part:
        view = MarkdownView(self._tokens, self._look, lambda: self._text, self)
        view.writer.colouring = self._colouring
        view.setAccessibleName("Thoughts" if segment.thinking else "Text of the message")
        view.linkActivated.connect(self.linkActivated)
        section = None
        if segment.thinking:
            section = ThinkingSection(view, self._look.theme, self)
            section.toggled.connect(self._section_toggled)
            section.show()
        view.setVisible(not segment.thinking)
        return _Part(segment, StreamRenderer(segment.start), view, section)

    def _show_part(self, part: _Part, segment: Segment, final: bool) -> None:
        part.segment = segment
        complete = segment.closed or final
        if part.section is not None:
            part.section.set_state(thinking=not complete)
            if not part.section.opened:
                return
        if part.complete or (part.rendered_to == segment.end and not complete):
            return
        end = segment.end
        if not self._markdown:
            part.view.show_paras(render_plain(self._text, segment.start, end), [])
        else:
            begin = max(part.rendered_to, segment.start)
            in_parts = complete and end - begin > _PORTION
            if in_parts:
                self._unfinished, complete, end = True, False, begin + _PORTION
            rendered = part.renderer.update(self._text, end, final=complete, complete=in_parts)
            begun = time.perf_counter()
            part.view.show_paras(part.renderer.frozen, part.renderer.open)
            if rendered:
                part.renderer.add_cost(time.perf_counter() - begun)
        part.rendered_to, part.complete = end, complete

    def _section_toggled(self) -> None:
        self.refresh(final=self._final)
        self.heightChanged.emit()

    def _drop_parts(self, first: int) -> None:
        for part in self._parts[first:]:
            if part.section is not None:
                part.section.hide()
                part.section.deleteLater()
            part.view.hide()
            part.view.deleteLater()
        del self._parts[first:]

    def lay_out(self, width: int) -> int:
        """Place everything for ``width`` and return the height it takes."""
        y = 0
        for number, part in enumerate(self._parts):
            y += _GAP if number else 0
            if part.section is not None:
                height = part.section.lay_out(width)
            else:
                height = part.view.height_for(width)
            part.widget.setGeometry(0, y, width, height)
            if part.section is None:
                part.view.place_buttons()
            y += height
        return y

    def set_look(self, look: Look) -> None:
        """Change the theme or the font."""
        self._look = look
        for part in self._parts:
            part.view.set_look(look, colouring=self._colouring)
            if part.section is not None:
                part.section.set_theme(look.theme)

    def set_colouring(self, on: bool) -> None:
        """Show or hide the origins."""
        self._colouring = on
        for part in self._parts:
            part.view.set_colouring(on)

    def set_caret(self, opacity: float | None) -> None:
        """Show the caret after the last text; None hides it."""
        for part in self._parts:
            last = part is self._parts[-1]
            part.view.set_caret(opacity if last else None)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The transcript lays out; nothing to do here."""
        event.accept()

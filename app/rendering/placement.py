"""Which paragraph stands where in a document, and which source character is shown there."""

from bisect import bisect_right
from dataclasses import dataclass, field

from PySide6.QtGui import QTextBlock, QTextDocument, QTextLayout, QTextTable

from app.rendering.model import Para, ParaKind, Run
from app.rendering.overlay import characters, shown_runs, utf16


@dataclass(slots=True)
class Placed:
    """A paragraph and where it stands: positions of its first character and after its last."""

    para: Para
    start: int
    end: int
    head: int
    table: QTextTable | None = None
    cells: list[tuple[int, tuple[Run, ...]]] = field(default_factory=list)
    coloured: int = 0
    """How many of the cells have their colours."""
    colours: list[QTextLayout.FormatRange] | None = None
    """What lies over it; a block made of several paragraphs shows those of all."""


class PlacedText:
    """The paragraphs of a document in order, found by position."""

    def __init__(self, document: QTextDocument) -> None:
        self.document = document
        self._placed: list[Placed] = []
        self._starts: list[int] = []
        self._headers: list[int] = []
        self._last_of: dict[int, int] = {}

    @property
    def paras(self) -> list[Para]:
        """The paragraphs shown."""
        return [placed.para for placed in self._placed]

    def __len__(self) -> int:
        return len(self._placed)

    def para(self, index: int) -> Para:
        """Return paragraph ``index``."""
        return self._placed[index].para

    def _place(self, placed: Placed) -> None:
        index = len(self._placed)
        if placed.para.kind is ParaKind.CODE_HEADER:
            self._headers.append(index)
        if placed.para.group >= 0:
            self._last_of[placed.para.group] = index
        self._placed.append(placed)
        self._starts.append(placed.start)

    def _forget(self, index: int) -> None:
        del self._placed[index:]
        del self._starts[index:]
        while self._headers and self._headers[-1] >= index:
            self._headers.pop()
        if index and self._placed[-1].para.group >= 0:
            self._last_of[self._placed[-1].para.group] = index - 1

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
                return run.source_of(characters(run.text, offset))
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

"""The flat shape of rendered text: a list of paragraphs made of runs that know their source.

A run is contiguous in its source: character ``i`` of ``text`` came from source character
``source + i`` (``single`` runs: every character came from ``source``, the last character of an
entity or an escape). Offsets are in characters of the whole message text.
"""

from dataclasses import dataclass
from enum import IntFlag, StrEnum


class Style(IntFlag):
    """How a run is set."""

    NONE = 0
    BOLD = 1
    ITALIC = 2
    STRIKE = 4
    CODE = 8
    MUTED = 16


class ParaKind(StrEnum):
    """What a paragraph of the flat document is."""

    TEXT = "text"
    HEADING = "heading"
    CODE_HEADER = "code-header"
    CODE = "code"
    RULE = "rule"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of text in one style; see the module text for ``source`` and ``single``."""

    text: str
    source: int
    style: Style = Style.NONE
    href: str = ""
    syntax: str = ""
    single: bool = False

    def source_of(self, index: int) -> int:
        """Return the source character that character ``index`` came from."""
        return self.source if self.single else self.source + index


Cell = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Para:
    """One paragraph, heading, line of code (under a header with its language), rule or table.

    ``start`` and ``end`` are the source range (whole lines) it came from. ``quote`` and
    ``indent`` count block quotes and lists around it, ``marker`` is the bullet or number that
    hangs before it, ``tight`` asks for no space above. Lines of one code block share ``group``
    (the source offset of its fence). ``continues`` adds to the paragraph before it.
    """

    kind: ParaKind
    start: int
    end: int
    runs: tuple[Run, ...] = ()
    level: int = 0
    quote: int = 0
    indent: int = 0
    marker: Run | None = None
    tight: bool = False
    language: str = ""
    group: int = -1
    rows: tuple[tuple[Cell, ...], ...] = ()
    aligns: tuple[str, ...] = ()
    continues: bool = False

    @property
    def text(self) -> str:
        """The text of the runs, without the marker."""
        return "".join(run.text for run in self.runs)

    def all_runs(self) -> tuple[Run, ...]:
        """Every run that shows text, marker first, cells in reading order."""
        marker = (self.marker,) if self.marker else ()
        cells = tuple(run for row in self.rows for cell in row for run in cell)
        return marker + self.runs + cells

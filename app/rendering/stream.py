"""Renders a growing text: what is complete once, only the open rest again.

Blocks before the last one never change in CommonMark, so they are frozen. An open fence takes
its lines one by one. A long open list is frozen but for its last piece, a long open paragraph
up to a space; a block that stays dear is rendered less often, its new text shown as it is in
between. So the cost of a frame does not grow with the text.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from app.rendering.fence import OpenFence, restart
from app.rendering.inline import LINE_SEPARATOR
from app.rendering.markdown import LINE_END, Parsed, make_parser, parse
from app.rendering.model import Para, ParaKind, Run, Style

SOFT_LIMIT = 1500
"""Characters of one open block above which parts of it are frozen."""
_TABLE_LIMIT = 4000
"""The same for a table, which then goes on as another one with the same columns."""
_DEAR_S = 0.012
_REST = 6.0
"""A dear block rests this many times its last cost between renderings."""


class StreamRenderer:
    """Turns the characters from ``start`` of a growing message text into paragraphs.

    After ``update``, ``frozen`` holds what never changes again (it only grows) and ``open``
    what may. Not for use from several threads.
    """

    def __init__(self, start: int = 0, clock: Callable[[], float] = time.perf_counter) -> None:
        self.frozen: list[Para] = []
        self.open: list[Para] = []
        self.has_references = False
        self._parser = make_parser()
        self._base = start
        self._context = ""
        self._continues = False
        self._in_table = False
        self._fence: OpenFence | None = None
        self._clock = clock
        self._cost = 0.0
        self._rendered_at = float("-inf")
        self._rendered_to = start

    def update(self, text: str, end: int, *, final: bool = False, complete: bool = False) -> bool:
        """Render ``text`` up to ``end``; with ``final`` everything is frozen.

        Returns False when the new text was only appended as it is because rendering is dear;
        that never happens to a ``complete`` text, which is only shown in parts.
        """
        now = self._clock()
        if not final and text.endswith("\r", 0, end):
            end -= 1  # the other half of a line end may follow
        resting = not final and not complete
        if resting and self._cost > _DEAR_S and now - self._rendered_at < self._cost * _REST:
            self._show_raw(text, end)
            return False
        self._render(text, end, final)
        self._rendered_at = self._clock()
        self._cost = self._rendered_at - now
        self._rendered_to = end
        return True

    def add_cost(self, seconds: float) -> None:
        """Count the time it took to show the last update as part of what it cost."""
        self._cost += seconds

    def _show_raw(self, text: str, end: int) -> None:
        fresh = text[self._rendered_to : end]
        last = self.open[-1] if self.open else None
        if not fresh or (last is not None and last.kind is ParaKind.TABLE):
            return
        raw = Run(fresh.replace("\n", LINE_SEPARATOR), self._rendered_to)
        self._rendered_to = end
        if last is not None and last.kind is ParaKind.TEXT:
            self.open[-1] = replace(last, runs=(*last.runs, raw), end=end)
        else:
            self.open.append(Para(ParaKind.TEXT, raw.source, end, (raw,)))

    def _render(self, text: str, end: int, final: bool) -> None:
        while True:
            if self._fence is not None and not self._read_fence(text, end, final):
                return
            parsed = self._parse(text, end)
            if final:
                self.frozen += parsed.paras
                self.open = []
                return
            if not self._enter_fence(parsed, text, end):
                break
        self._freeze(parsed, text, end)

    def _parse(self, text: str, end: int) -> Parsed:
        context = self._context
        tail = text[self._base : end]
        parsed = parse(self._parser, context + tail, self._base - len(context))
        self.has_references |= parsed.has_references
        if self._in_table and parsed.paras and parsed.paras[0].kind is ParaKind.TABLE:
            table = parsed.paras[0]
            body = replace(table, rows=table.rows[1:], start=self._base, continues=True)
            parsed = replace(parsed, paras=(body, *parsed.paras[1:]))
        if context:
            kept = [i for i, para in enumerate(parsed.paras) if _first_source(para) >= self._base]
            skipped = len(parsed.paras) - len(kept)
            blocks = tuple(
                (max(index - skipped, 0), max(line - len(context), 0))
                for index, line in parsed.blocks
            )
            parsed = Parsed(
                tuple(parsed.paras[i] for i in kept),
                blocks,
                tuple(parsed.contexts[i] for i in kept),
                parsed.fence,
                parsed.has_references,
            )
        if (
            self._continues
            and not self._in_table
            and parsed.paras
            and parsed.paras[0].kind is ParaKind.TEXT
        ):
            first = replace(parsed.paras[0], continues=True)
            parsed = replace(parsed, paras=(first, *parsed.paras[1:]))
        return parsed

    def _freeze(self, parsed: Parsed, text: str, end: int) -> None:
        """Freeze the blocks that nothing can change, then, if it is long, the open block."""
        paras = list(parsed.paras)
        complete = text.rfind("\n", self._base, end) + 1 - self._base
        count, cut = 0, 0
        for index, line in parsed.blocks[1:]:
            second = text.find("\n", self._base + line) + 1 - self._base
            if 0 < second < complete:
                count, cut = index, line
        if count:
            self._advance(paras[:count], self._base + cut)
            self._context, self._continues, self._in_table = "", False, False
        self.open = paras[count:]
        if end - self._base > SOFT_LIMIT and self.open:
            self._freeze_softly(parsed.contexts[count:], text, end)

    def _freeze_softly(self, contexts: tuple[str, ...], text: str, end: int) -> None:
        last = len(self.open) - 1
        while (
            last > 0
            and self.open[last].group >= 0
            and (self.open[last].group == self.open[last - 1].group)
        ):
            last -= 1
        if last > 0 and end - self.open[last].start < SOFT_LIMIT:
            start = self.open[last].start
            self._advance(self.open[:last], start)
            self.open = self.open[last:]
            self._context, self._continues = contexts[last], False
        elif (
            last == 0
            and self.open[0].kind is ParaKind.TEXT
            and not (self.open[0].indent or self.open[0].quote)
        ):
            self._split(self.open[0], end)

        elif last == 0 and self.open[0].kind is ParaKind.TABLE and end - self._base > _TABLE_LIMIT:
            self._split_table(self.open[0], text)

    def _split_table(self, para: Para, text: str) -> None:
        """Freeze all rows of a long table but the last two; its header opens the next parse."""
        count = len(para.rows) - 2
        if para.indent or para.quote or count < 2:
            return
        ends = [match.end() for match in LINE_END.finditer(text, para.start, para.end)]
        if not para.continues:
            self._context = text[para.start : ends[1]]
        cut = ends[count - (1 if para.continues else 0)]
        head = replace(para, rows=para.rows[:count], end=cut)
        self._advance([head], cut)
        self.open = [replace(para, rows=para.rows[count:], start=cut, continues=True)]
        self._continues, self._in_table = True, True

    def _split(self, para: Para, end: int) -> None:
        """Freeze a long paragraph up to a plain space well before its end."""
        for number in range(len(para.runs) - 1, -1, -1):
            run = para.runs[number]
            room = min(len(run.text), end - 200 - run.source)
            if run.style is not Style.NONE or run.href or run.single or room < 2:
                continue
            space = run.text.rfind(" ", 0, room)
            while space > 0 and not run.text[space + 1 : space + 2].isalpha():
                space = run.text.rfind(" ", 0, space)
            if space <= 0:
                continue
            cut = run.source + space + 1
            head = replace(run, text=run.text[: space + 1])
            rest = replace(run, text=run.text[space + 1 :], source=cut)
            self._advance([replace(para, runs=(*para.runs[:number], head), end=cut)], cut)
            tail = (rest, *para.runs[number + 1 :])
            self.open = [replace(para, runs=tail, start=cut, continues=True)]
            self._context, self._continues = "", True
            return

    def _advance(self, paras: list[Para], base: int) -> None:
        self.frozen += paras
        self._base = base

    def _enter_fence(self, parsed: Parsed, text: str, end: int) -> bool:
        """Begin to take lines one by one if the last block is a fence that is still open."""
        if parsed.fence is None:
            return False
        marks, language, code_start, closed = parsed.fence
        opening_done = text.rfind("\n", 0, code_start) + 1 == code_start and code_start <= end
        if closed or not opening_done or self._context or not parsed.blocks:
            return False
        first = parsed.blocks[-1][0]
        self._advance(list(parsed.paras[: first + 1]), code_start)
        self._continues = False
        self._fence = OpenFence(marks, language, parsed.paras[first].group)
        return True

    def _read_fence(self, text: str, end: int, final: bool) -> bool:
        """Take the lines of the open fence; return whether it was closed."""
        fence = self._fence
        if fence is None:
            return True
        lines = LINE_END.split(text[self._base : end])
        starts = [self._base, *(m.end() for m in LINE_END.finditer(text, self._base, end))]
        starts.append(starts[-1] + len(lines[-1]) + 1)
        closing = next((i for i, line in enumerate(lines) if fence.closes(line)), None)
        last_line_open = closing == len(lines) - 1
        code = lines if closing is None else lines[:closing]
        if closing is None and not final and fence.may_close(lines[-1]):
            code = lines[:-1]
        if code and not code[-1].strip(" \t") and closing is None:
            code = code[:-1]
        paras, fresh = fence.paras(code, starts)
        if closing is not None and (not last_line_open or final):
            self._advance(paras, min(starts[closing + 1], end))
            self._fence, self.open = None, []
            return True
        if final:
            self._advance(paras, end)
            self._fence, self.open = None, []
            return True
        keep = restart(paras, fresh)
        start = paras[keep].start if keep < len(paras) else self._base
        if keep:
            self._advance(paras[:keep], start)
        self.open = paras[keep:]
        return False


def _first_source(para: Para) -> int:
    runs = para.all_runs()
    return runs[0].source if runs else para.start


def render(text: str, start: int, end: int) -> list[Para]:
    """Render a complete text at once."""
    renderer = StreamRenderer(start)
    renderer.update(text, end, final=True)
    return renderer.frozen


def render_plain(text: str, start: int, end: int) -> list[Para]:
    """Return the text as typed, a paragraph a line."""
    paras = []
    after = [match.end() for match in LINE_END.finditer(text, start, end)]
    for line, following in zip(LINE_END.split(text[start:end]), [*after, end + 1], strict=True):
        runs = (Run(line, start),) if line else ()
        paras.append(Para(ParaKind.TEXT, start, following, runs, tight=True))
        start = following
    return paras

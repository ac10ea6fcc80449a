"""A code fence that is still open while its text grows: its lines are taken one by one."""

from dataclasses import dataclass
from itertools import pairwise

from app.rendering.highlight import highlighted_lines
from app.rendering.markdown import code_runs
from app.rendering.model import Para, ParaKind

_WINDOW = 1500
"""Characters of code that are coloured anew at most with every update."""


@dataclass(frozen=True, slots=True)
class OpenFence:
    """``marks`` opened it; ``group`` is the offset of its first line in the message."""

    marks: str
    language: str
    group: int

    def closes(self, line: str) -> bool:
        """Say whether ``line`` is the end of the code."""
        marks = line.rstrip(" \t").lstrip(" ")
        return (
            len(marks) >= len(self.marks)
            and set(marks) == {self.marks[0]}
            and len(line) - len(line.lstrip(" ")) <= 3
        )

    def may_close(self, line: str) -> bool:
        """Say whether ``line``, not yet complete, may become the end of the code."""
        marks = line.strip(" ")
        return bool(marks) and set(marks) == {self.marks[0]} and len(marks) <= len(self.marks)

    def paras(self, lines: list[str], starts: list[int]) -> tuple[list[Para], list[bool]]:
        """Return the paragraphs of ``lines`` and which lines start afresh.

        ``starts`` says where each line begins, and where the one after the last would.
        """
        paras: list[Para] = []
        fresh: list[bool] = []
        coloured = (
            highlighted_lines("\n".join(lines).replace("\0", "\ufffd"), self.language)
            if lines
            else ()
        )
        for (start, end), (pieces, is_fresh) in zip(
            pairwise(starts[: len(lines) + 1]), coloured, strict=True
        ):
            paras.append(
                Para(
                    ParaKind.CODE,
                    start,
                    end,
                    tuple(code_runs(pieces, start)),
                    language=self.language,
                    group=self.group,
                )
            )
            fresh.append(is_fresh)
        return paras, fresh


def restart(paras: list[Para], fresh: list[bool]) -> int:
    """Return how many lines to freeze: up to the last line highlighting may begin anew at.

    Without such a line the window still has a limit; then a colour may be wrong, never text.
    """
    last = len(paras) - 1
    keep = next((i for i in range(last, 0, -1) if fresh[i]), 0)
    while keep < last and paras[-1].end - paras[keep].end > _WINDOW:
        keep += 1
    return keep

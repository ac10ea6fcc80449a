"""The chart of a benchmark: tokens per second as bars, one group a suite."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from core.bench.png import GLYPH_HEIGHT, Canvas, Colour, text_width
from core.bench.records import BenchResult, Summary
from core.requests import DrafterKind

_WIDTH = 1120
_MARGIN = 32
_BAR = 24
_GAP = 10
_GROUP_GAP = 30
_HEAD = 104
_FOOT = 56
_LINE = 2 * GLYPH_HEIGHT

_PAPER: Colour = (255, 255, 255)
_INK: Colour = (31, 41, 55)
_FAINT_INK: Colour = (107, 114, 128)
_GRID: Colour = (229, 231, 235)
_OTHER: Colour = (13, 116, 110)
_COLOURS: Mapping[str, Colour] = MappingProxyType(
    {
        DrafterKind.OFF: (156, 163, 175),
        DrafterKind.MODEL: (37, 99, 235),
        DrafterKind.NGRAM: (217, 119, 6),
        DrafterKind.HYBRID: (22, 163, 74),
        DrafterKind.MTP: (147, 51, 234),
        DrafterKind.EARLY_EXIT: (219, 39, 119),
    }
)


def draw_chart(result: BenchResult) -> bytes:
    """Return a PNG picture of the result: medians as bars, quartiles as lines upon them."""
    rows = [summary for summary in result.summaries if summary.tokens_per_second is not None]
    groups = list(dict.fromkeys(summary.suite for summary in rows))
    names = max((text_width(row.configuration) for row in rows), default=0)
    numbers = max((text_width(_numbers(row)) for row in rows), default=0)
    left = _MARGIN + names + 16
    longest = max((row.tokens_per_second.high for row in rows if row.tokens_per_second), default=1)
    step = _nice_step(longest)
    ticks = math.ceil(longest / step) + 1
    plot_width = _WIDTH - left - numbers - 2 * _MARGIN
    pixels = plot_width / (step * (ticks - 1))

    group_height = _LINE + _GAP
    height = _HEAD + _FOOT + len(rows) * (_BAR + _GAP) + len(groups) * (group_height + _GROUP_GAP)
    canvas = Canvas(_WIDTH, height, _PAPER)
    canvas.text(_MARGIN, _MARGIN - 6, "Tokens per second: median and quartiles", _INK, scale=3)
    pair = result.target + (f" + {result.draft}" if result.draft else "")
    where = f"{result.precision} on {result.device}, {pair}"
    canvas.text(_MARGIN, _MARGIN + 32, _fit(where, _WIDTH - 2 * _MARGIN), _FAINT_INK)
    bottom = height - _FOOT
    for tick in range(ticks):
        x = left + round(tick * step * pixels)
        canvas.rectangle(x, _HEAD, 1, bottom - _HEAD + 6, _GRID)
        label = f"{tick * step:g}"
        canvas.text(x - text_width(label) // 2, bottom + 14, label, _FAINT_INK)
    y = _HEAD + _GAP
    for group in groups:
        canvas.text(_MARGIN, y, group, _INK)
        y += group_height
        for row in rows:
            if row.suite == group:
                _draw_row(canvas, row, left, y, pixels)
                y += _BAR + _GAP
        y += _GROUP_GAP
    return canvas.to_png()


def _draw_row(canvas: Canvas, row: Summary, left: int, y: int, pixels: float) -> None:
    speed = row.tokens_per_second
    if speed is None:
        return
    text_y = y + (_BAR - _LINE) // 2 + 1
    name_x = left - 16 - text_width(row.configuration)
    canvas.text(name_x, text_y, row.configuration, _INK)
    drafter = row.configuration.partition(":")[0].partition("@")[0]
    canvas.rectangle(left, y, round(speed.median * pixels), _BAR, _COLOURS.get(drafter, _OTHER))
    low, high = (left + round(value * pixels) for value in (speed.low, speed.high))
    if speed.count > 1:
        canvas.rectangle(low, y + _BAR // 2 - 1, max(high - low, 1), 2, _INK)
        for end in (low, high):
            canvas.rectangle(end - 1, y + _BAR // 2 - 5, 2, 10, _INK)
    end = max(high, left + round(speed.median * pixels))
    canvas.text(end + 12, text_y, _numbers(row), _INK)


def _numbers(row: Summary) -> str:
    speed = "" if row.tokens_per_second is None else f"{row.tokens_per_second.median:.1f}"
    return speed if row.speed_up is None else f"{speed}  {row.speed_up.median:.2f}x"


def _nice_step(longest: float) -> float:
    """Return a step of 1, 2 or 5 times a power of ten that divides the axis into 4 to 10."""
    if longest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(longest / 4))
    return next(factor * power for factor in (5, 2, 1) if factor * power <= longest / 4)


def _fit(text: str, width: int) -> str:
    if text_width(text) <= width:
        return text
    while text_width(text + "...") > width:
        text = text[:-1]
    return text + "..."

"""The reports of a benchmark: stable, complete, and readable by other programs."""

import csv
import io
import json
import struct
import zlib
from dataclasses import replace

import pytest

from core.bench.chart import draw_chart
from core.bench.machine import Machine
from core.bench.png import GLYPH_HEIGHT, Canvas, text_width
from core.bench.records import BenchResult, Spread, Summary
from core.bench.report import (
    COLUMNS,
    CSV_COLUMNS,
    describe_spread,
    headline,
    markdown_table,
    to_csv,
    to_json,
    to_markdown,
    to_table,
)

WHITE, RED = (255, 255, 255), (255, 0, 0)


def summary_of(suite: str, configuration: str, speed: float, speed_up: float | None) -> Summary:
    return Summary(
        suite=suite,
        configuration=configuration,
        lossy=configuration.endswith("@1"),
        replies=3,
        tokens=96,
        tokens_per_second=Spread(median=speed, low=speed - 1, high=speed + 2, count=3),
        speed_up=(
            None if speed_up is None else Spread(median=speed_up, low=speed_up, high=2.5, count=3)
        ),
        same_text_share=None if speed_up is None else 1.0,
        mean_acceptance_length=None if speed_up is None else 2.25,
        acceptance_by_position=() if speed_up is None else (0.9, 0.75, 0.5, 0.25, 0.1),
        time_to_first_token_ms=Spread(median=1234.0, low=1200.0, high=1300.0, count=3),
        draft_share=0.05,
        verify_share=0.9,
        resident_bytes=700_000_000,
    )


RESULT = BenchResult(
    complete=True,
    target="big",
    draft="small",
    device="cpu",
    precision="int8",
    machine=Machine(
        system="Linux 6.1 x86_64",
        processor="A Processor",
        cores=2,
        threads=4,
        torch_threads=2,
        memory_bytes=8_000_000_000,
        gpu="",
        python="3.11.7",
        versions=(("paceline", "0.1.0"), ("torch", "2.13.0")),
        load_average=0.1,
    ),
    seed=5,
    repeats=3,
    caches="cold",
    peak_bytes=900_000_000,
    summaries=(
        summary_of("code", "off", 9.0, None),
        summary_of("code", "hybrid:auto", 18.0, 2.0),
        summary_of("edit", "off", 10.0, None),
        summary_of("edit", "ngram:4:typical@1", 23.456, 2.3456),
    ),
    heads={},
    measurements=(),
    notices=("The draft model holds 512 tokens.",),
)

MARKDOWN = """\
# Benchmark

- big with small, int8 on cpu
- A Processor, 2 cores, 2 threads used, 8.0 GB, Linux 6.1 x86_64
- Python 3.11.7, paceline 0.1.0, torch 2.13.0; 0.1 busy threads before
- 0 replies, repeats 3, seed 5, caches cold
- peak memory of the process, loading included: 900 MB

| suite | configuration | tokens/s | speed-up | acceptance length | accepted by position, % | \
first token | draft | verify | same text |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| code | off | 9.00 (8.00-11.0) | - | - | - | 1.23 s (1.20-1.30) | 5% | 90% | - |
| code | hybrid:auto | 18.0 (17.0-20.0) | 2.00x (2.00-2.50) | 2.25 | 90 75 50 25 ... | \
1.23 s (1.20-1.30) | 5% | 90% | 100% |
| edit | off | 10.0 (9.00-12.0) | - | - | - | 1.23 s (1.20-1.30) | 5% | 90% | - |
| edit | ngram:4:typical@1 (lossy) | 23.5 (22.5-25.5) | 2.35x (2.35-2.50) | 2.25 | \
90 75 50 25 ... | 1.23 s (1.20-1.30) | 5% | 90% | 100% |
"""


def read_png(data: bytes) -> list[list[tuple[int, int, int]]]:
    """The pixels of a PNG of this program's kind; every chunk's checksum is looked at."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = [], 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        body = data[at + 4 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length) == (zlib.crc32(body),)
        chunks.append((body[:4], body[4:]))
        at += 12 + length
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">IIBBBBB", chunks[0][1])
    assert form == [8, 2, 0, 0, 0]
    raw = zlib.decompress(chunks[1][1])
    assert len(raw) == height * (1 + 3 * width)
    rows = [raw[y * (1 + 3 * width) :][: 1 + 3 * width] for y in range(height)]
    assert {row[0] for row in rows} == {0}
    return [[tuple(row[1 + 3 * x :][:3]) for x in range(width)] for row in rows]  # type: ignore[misc]


def test_markdown_is_the_whole_report() -> None:
    text = to_markdown(RESULT)
    assert text.startswith(MARKDOWN)
    assert text.endswith("\n- The draft model holds 512 tokens.\n")


def test_the_report_says_why_a_later_position_may_stand_more_often() -> None:
    assert "accepted by position" in COLUMNS[5]
    text = to_markdown(RESULT)
    assert "Accepted by position: of the drafts that were at least that long" in text
    assert "It can rise with the position" in text


def test_a_run_that_was_stopped_says_so() -> None:
    assert headline(replace(RESULT, complete=False))[-1] == "The run was not completed."
    assert "not completed" in to_markdown(replace(RESULT, complete=False))


def test_bars_inside_a_markdown_cell_do_not_end_it() -> None:
    assert markdown_table(["a"], [["x|y"]])[2] == r"| x\|y |"


def test_csv_has_one_line_a_configuration_and_suite_and_the_columns_stay() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(RESULT))))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert (
        *("suite", "configuration", "lossy", "replies", "tokens"),
        *("tokens_per_second_median", "tokens_per_second_low", "tokens_per_second_high"),
        *("speed_up_median", "speed_up_low", "speed_up_high"),
        *("same_text_share", "mean_acceptance_length", "acceptance_by_position"),
        *("time_to_first_token_ms_median", "time_to_first_token_ms_low"),
        *("time_to_first_token_ms_high", "draft_share", "verify_share", "resident_bytes"),
    ) == CSV_COLUMNS
    assert [row["configuration"] for row in rows] == [
        "off",
        "hybrid:auto",
        "off",
        "ngram:4:typical@1",
    ]
    assert (rows[0]["speed_up_median"], rows[1]["speed_up_median"]) == ("", "2.0")
    assert rows[1]["acceptance_by_position"] == "0.9 0.75 0.5 0.25 0.1"


def test_json_holds_the_machine_the_summaries_and_every_reply() -> None:
    data = json.loads(to_json(RESULT))
    assert data["machine"]["processor"] == "A Processor"
    assert data["summaries"][1]["speed_up"] == {"median": 2.0, "low": 2.0, "high": 2.5, "count": 3}
    assert data["measurements"] == []
    assert data["seed"] == 5


def test_the_table_has_a_line_a_configuration_under_the_name_of_its_suite() -> None:
    cells = [str(cell).strip() for cell in to_table(RESULT).columns[0].cells]
    code = ["", "code", "off", "hybrid:auto"]
    assert cells == [*code, "", "edit", "off", "ngram:4:typical@1 (lossy)"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (None, "-"),
        (Spread(median=1.0, low=1.0, high=1.0, count=1), "1.00"),
        (Spread(median=12.34, low=9.87, high=100.0, count=2), "12.3 (9.87-100.0)"),
    ],
)
def test_a_spread_is_written_with_three_digits_or_so(values: Spread | None, said: str) -> None:
    assert describe_spread(values) == said


def test_a_canvas_becomes_a_png_with_its_pixels() -> None:
    canvas = Canvas(7, 5, WHITE)
    canvas.rectangle(2, 1, 3, 2, RED)
    pixels = read_png(canvas.to_png())
    red = {(x, y) for y, row in enumerate(pixels) for x, pixel in enumerate(row) if pixel == RED}
    assert red == {(x, y) for x in (2, 3, 4) for y in (1, 2)}
    assert all(pixel in (WHITE, RED) for row in pixels for pixel in row)


def test_what_lies_outside_a_canvas_is_left_out() -> None:
    canvas = Canvas(4, 3, WHITE)
    canvas.rectangle(-2, -2, 3, 3, RED)
    canvas.rectangle(3, 2, 9, 9, RED)
    canvas.rectangle(9, 9, 2, 2, RED)
    canvas.rectangle(-9, -9, 2, 2, RED)
    pixels = read_png(canvas.to_png())
    red = {(x, y) for y, row in enumerate(pixels) for x, pixel in enumerate(row) if pixel == RED}
    assert red == {(0, 0), (3, 2)}


def test_letters_are_drawn_and_a_foreign_one_becomes_a_question_mark() -> None:
    def drawn(text: str) -> bytes:
        canvas = Canvas(text_width("mm") + 1, 2 * GLYPH_HEIGHT, WHITE)
        canvas.text(0, 0, text, RED)
        return canvas.to_png()

    assert drawn("I") != drawn("l") != drawn(" ")
    assert drawn("é") == drawn("?")
    letter = read_png(drawn("T"))
    assert all(pixel == RED for pixel in letter[0][:10])
    assert letter[6][4] == RED
    assert letter[6][0] == WHITE


def test_the_chart_is_a_picture_with_longer_bars_for_more_speed() -> None:
    pixels = read_png(draw_chart(RESULT))
    grey, green = (156, 163, 175), (22, 163, 74)
    widest = {colour: max(row.count(colour) for row in pixels) for colour in (grey, green)}
    assert widest[green] > 1.5 * widest[grey] > 100
    assert draw_chart(RESULT) == draw_chart(RESULT)


def test_a_chart_of_nothing_is_still_a_picture() -> None:
    assert read_png(draw_chart(replace(RESULT, summaries=())))


@pytest.mark.parametrize("speed", [0.003, 0.9, 7.0, 80.0, 12345.0])
def test_a_chart_fits_any_speed(speed: float) -> None:
    one = replace(
        summary_of("code", "hybrid:16:target-prob@0.7", 1.0, 1.0),
        tokens_per_second=Spread(median=speed, low=speed, high=speed, count=1),
    )
    pixels = read_png(draw_chart(replace(RESULT, summaries=(one,))))
    longest = max(row.count((22, 163, 74)) for row in pixels)
    assert 0.4 * 700 < longest < 1000
    assert all(row[-1] == WHITE for row in pixels)

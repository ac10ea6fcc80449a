"""Numbers and stop strings as the window writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.widgets import formats
from app.widgets.fields import escaped, unescaped


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"),
        (0.0, "0.0 tok/s"),
        (9.94, "9.9 tok/s"),
        (9.96, "10 tok/s"),
        (38.2, "38 tok/s"),
        (1234.0, "1,234 tok/s"),
    ],
)
def test_speeds_have_few_digits_and_a_unit(value: float | None, words: str) -> None:
    assert formats.speed(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "–"), (420.4, "420 ms"), (999.6, "1.00 s"), (1100.0, "1.10 s"), (12_345.0, "12.3 s")],
)
def test_times_are_in_ms_below_a_second(value: float | None, words: str) -> None:
    assert formats.duration(value) == words


def test_a_speed_up_below_one_says_that_it_is_slower() -> None:
    assert formats.ratio(1.876) == "1.88×"
    assert formats.ratio(0.6) == "0.60× (slower)"
    assert formats.ratio(None) == "–"


def test_sizes_are_in_mb_or_gb() -> None:
    assert formats.size(612_000_000) == "612 MB"
    assert formats.size(1_940_000_000) == "1.9 GB"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("the pair has no draft model.", "Speculation is off because the pair has no draft model."),
        ("Speculation is off because gamma is 0.", "Speculation is off because gamma is 0."),
        ("", "Speculation is off: plain decoding was chosen."),
    ],
)
def test_why_speculation_is_off_reads_as_one_sentence(reason: str, words: str) -> None:
    assert formats.off_sentence(reason) == words


@given(st.text())
def test_a_stop_string_survives_writing_on_one_line(text: str) -> None:
    assert "\n" not in escaped(text)
    assert unescaped(escaped(text)) == text


def test_a_lone_backslash_is_itself() -> None:
    assert unescaped("\\d \\") == "\\d \\"
    assert unescaped("\\n") == "\n"

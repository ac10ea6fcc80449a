"""Ring buffers and what the plots draw from them."""

import numpy as np
import pytest

from app.qtmodels.ring import RingBuffer
from app.qtmodels.series import CAPACITY, RoundSeries, averaged, thinned
from tests.helpers.rounds import make_round, rounds_of


def test_a_ring_keeps_the_newest_rows_in_order() -> None:
    ring = RingBuffer(3, 2)
    for number in range(5):
        ring.append((number, 10 * number))
    assert ring.tail().tolist() == [[2, 3, 4], [20, 30, 40]]
    assert ring.tail(2).tolist() == [[3, 4], [30, 40]]
    assert len(ring) == 3


def test_a_ring_that_is_not_full_returns_what_it_has() -> None:
    ring = RingBuffer(10, 1)
    ring.append((7,))
    assert ring.tail().tolist() == [[7]]
    assert ring.tail(99).tolist() == [[7]]
    assert ring.tail(0).shape == (1, 0)


def test_a_returned_tail_does_not_change_when_rows_are_added() -> None:
    ring = RingBuffer(2, 1)
    ring.append((1,))
    ring.append((2,))
    before = ring.tail()
    ring.append((3,))
    assert before.tolist() == [[1, 2]]


def test_a_cleared_ring_is_empty_and_works_on() -> None:
    ring = RingBuffer(2, 1)
    ring.append((1,))
    ring.clear()
    assert len(ring) == 0
    ring.append((5,))
    assert ring.tail().tolist() == [[5]]


@pytest.mark.parametrize(("capacity", "columns"), [(0, 1), (1, 0), (-1, 3)])
def test_a_ring_without_room_is_refused(capacity: int, columns: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        RingBuffer(capacity, columns)


def test_a_million_rounds_take_no_more_memory_than_the_first() -> None:
    series = RoundSeries()
    taken = series.nbytes
    round_ = make_round(0, accepted=2)
    for _ in range(1_000_000):
        series.add(round_)
    assert series.nbytes == taken
    assert len(series) == CAPACITY
    assert series.tail(1).index[-1] == 1_000_000


def test_speed_of_a_round_is_its_tokens_over_its_time() -> None:
    series = RoundSeries()
    series.add(make_round(0, accepted=4, round_ms=100.0))
    assert series.tail().speed.tolist() == [50.0]
    assert series.tail().speed_smooth.tolist() == [50.0]


def test_even_rounds_smooth_to_themselves() -> None:
    series = RoundSeries()
    for each in rounds_of([2] * 50):
        series.add(each)
    assert series.tail().speed_smooth == pytest.approx(30.0)
    assert series.tail().length_smooth == pytest.approx(3.0)


def test_one_very_short_round_hardly_moves_the_smoothed_speed() -> None:
    series = RoundSeries()
    for each in rounds_of([2] * 50):
        series.add(each)
    series.add(make_round(50, accepted=2, round_ms=0.01))
    assert series.tail(1).speed[-1] > 100_000
    assert series.tail(1).speed_smooth[-1] < 40


def test_a_round_without_a_measured_time_takes_the_smoothed_speed() -> None:
    series = RoundSeries()
    series.add(make_round(0, round_ms=0.0, draft_ms=0.0, verify_ms=0.0))
    assert series.tail().speed.tolist() == [0.0]
    assert series.tail().draft_share.tolist() == [0.0]


def test_rounds_without_a_draft_have_length_one() -> None:
    series = RoundSeries()
    series.add(make_round(0, gamma=4, proposed=0, accepted=0))
    assert series.tail().length.tolist() == [1.0]
    assert series.tail().gamma.tolist() == [4.0]


def test_shares_of_a_round_never_exceed_the_whole() -> None:
    series = RoundSeries()
    series.add(make_round(0, draft_ms=80.0, verify_ms=80.0, round_ms=100.0))
    tail = series.tail()
    assert tail.draft_share[0] + tail.verify_share[0] == pytest.approx(1.0)


def test_thinning_keeps_peaks_and_dips() -> None:
    x = np.arange(10_000, dtype=np.float64)
    y = np.zeros(10_000)
    y[4321] = 9.0
    y[8765] = -3.0
    thin_x, thin_y = thinned(x, y, 500)
    assert len(thin_x) == len(thin_y) <= 520
    assert thin_y.max() == 9.0
    assert thin_y.min() == -3.0
    assert (np.diff(thin_x) >= 0).all()


def test_averaging_ends_at_the_newest_point() -> None:
    x = np.arange(1_003, dtype=np.float64)
    thin_x, thin_y = averaged(x, 2 * x, 100)
    assert len(thin_x) == len(thin_y) <= 102
    assert (thin_x[-1], thin_y[-1]) == (1002.0, 2004.0)


def test_few_points_are_left_as_they_are() -> None:
    x = np.arange(5, dtype=np.float64)
    assert thinned(x, x, 100)[1].tolist() == averaged(x, x, 100)[1].tolist() == [0, 1, 2, 3, 4]

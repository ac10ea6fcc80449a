"""The curve of a training: bounded, whole from its beginning, and with its newest point."""

import pytest

from app.qtmodels.curve import Curve


def test_points_come_out_as_they_went_in() -> None:
    curve = Curve(8)
    for step in range(5):
        curve.append(step, 10.0 - step)
    x, y = curve.points()
    assert x.tolist() == [0, 1, 2, 3, 4]
    assert y.tolist() == [10, 9, 8, 7, 6]


@pytest.mark.parametrize("count", [9, 64, 1000, 4097])
def test_a_long_curve_keeps_its_beginning_its_end_and_its_bound(count: int) -> None:
    curve = Curve(16)
    for step in range(count):
        curve.append(step, step)
    x, y = curve.points()
    assert len(curve) == len(x) <= 16
    assert len(x) >= 6
    assert (x[0], x[-1]) == (0, count - 1)
    assert (x[1:] > x[:-1]).all()
    assert (x == y).all()


def test_a_cleared_curve_begins_anew() -> None:
    curve = Curve(4)
    for step in range(50):
        curve.append(step, 1.0)
    curve.clear()
    assert len(curve) == 0
    curve.append(1, 2)
    curve.append(2, 3)
    assert curve.points()[0].tolist() == [1, 2]


def test_what_was_taken_out_stays_as_it_was() -> None:
    curve = Curve(4)
    curve.append(1, 1)
    x, _ = curve.points()
    curve.clear()
    curve.append(9, 9)
    assert x.tolist() == [1]


def test_a_curve_needs_room() -> None:
    with pytest.raises(ValueError, match="four points"):
        Curve(2)

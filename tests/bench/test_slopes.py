"""Slopes: exact for powers, taken from the last decade alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.slopes import last_decade, sizes, slope


@given(st.floats(0.1, 3.0), st.floats(1e-6, 1e6))
def test_the_slope_of_a_power_is_its_exponent(exponent: float, factor: float) -> None:
    points = [(float(size), factor * size**exponent) for size in sizes(10, 1000)]
    assert slope(points) == pytest.approx(exponent, rel=1e-6)


def test_what_a_call_costs_at_any_size_does_not_hide_a_square() -> None:
    points = [(float(size), 100_000 + size**2) for size in sizes(1, 10_000)]
    assert slope(points) < 1.15
    assert slope(last_decade(points)) > 1.7


def test_a_step_before_the_last_decade_is_no_growth() -> None:
    points = [(float(size), size * (3.0 if size > 500 else 1.0)) for size in sizes(10, 10_000)]
    assert slope(last_decade(points)) == pytest.approx(1.0)


def test_the_last_decade_of_less_is_all() -> None:
    assert last_decade([(1.0, 2.0), (5.0, 3.0)]) == [(1.0, 2.0), (5.0, 3.0)]


@pytest.mark.parametrize(
    ("first", "last", "per_decade", "expected"),
    [(10, 1000, 2, (10, 32, 100, 316, 1000)), (1, 10, 4, (1, 2, 3, 6, 10)), (5, 500, 1, (5, 50, 500))],
)
def test_sizes_are_evenly_spaced(first: int, last: int, per_decade: int, expected: tuple[int, ...]) -> None:
    assert sizes(first, last, per_decade) == expected

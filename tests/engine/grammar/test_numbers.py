"""The digits of a grammar stay between the bounds, and can be every number between them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.grammar.derive import Grammar
from xenoglot.engine.grammar.numbers import Interval

BOUNDS = st.decimals(-(10**7), 10**7, places=3)


def texts(expression: str | None, count: int) -> set[str]:
    assert expression is not None
    grammar = Grammar(f"root ::= {expression}")
    return {grammar.derive(seed) for seed in range(count)}


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 0), (0, 9), (0, 12), (7, 13), (95, 105), (-3, 3), (-12, -8), (-1, 0), (100, 100), (199, 202)],
    ids=str,
)
def test_every_whole_number_between_the_bounds_is_there(low: int, high: int) -> None:
    expression = Interval(low=Decimal(low), high=Decimal(high)).integers()
    assert texts(expression, 600) == {str(number) for number in range(low, high + 1)}


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        pytest.param(Interval(low=Decimal("0.98"), high=Decimal(1)), {"1", "1.00", "0.98", "0.99"}, id="to-one"),
        pytest.param(Interval(low=Decimal("-0.01"), high=Decimal("0.01")), {"0", "-0.01", "0.00", "0.01"}, id="around"),
        pytest.param(
            Interval(low=Decimal(0), high=Decimal("0.03"), above=True, below=True), {"0.01", "0.02"}, id="exclusive"
        ),
        pytest.param(Interval(low=Decimal("9.995"), high=Decimal("9.996")), {"9.995", "9.996"}, id="digits-grow"),
    ],
)
def test_every_number_of_two_digits_is_there(interval: Interval, expected: set[str]) -> None:
    assert texts(interval.numbers(), 300) == expected


def test_where_there_is_no_number_there_is_no_expression() -> None:
    nothing = Interval(low=Decimal(1), high=Decimal(1), above=True)
    assert (nothing.integers(), nothing.numbers(), nothing.multiples(Decimal(3))) == (None, None, None)


@given(one=BOUNDS, other=BOUNDS, above=st.booleans(), below=st.booleans(), seed=st.integers(0, 99))
def test_numbers_stay_between_their_bounds(
    one: Decimal,
    other: Decimal,
    above: bool,  # noqa: FBT001 (a case)
    below: bool,  # noqa: FBT001 (a case)
    seed: int,
) -> None:
    low, high = sorted((one, other))
    interval = Interval(low=low, high=high, above=above, below=below)
    for expression in (interval.integers(), interval.numbers()):
        if expression is not None:
            value = Decimal(Grammar(f"root ::= {expression}").derive(seed))
            assert low <= value <= high
            assert not (above and value == low)
            assert not (below and value == high)


@given(bound=BOUNDS, lower=st.booleans(), seed=st.integers(0, 99))
def test_half_open_intervals_keep_their_bound(bound: Decimal, lower: bool, seed: int) -> None:  # noqa: FBT001 (a case)
    interval = Interval(low=bound) if lower else Interval(high=bound)
    value = Decimal(Grammar(f"root ::= {interval.numbers()}").derive(seed))
    assert value >= bound if lower else value <= bound

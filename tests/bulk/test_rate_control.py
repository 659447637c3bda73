"""How fast a batch is asked: law by law, on a clock that the test turns."""

from __future__ import annotations

from math import inf

import pytest

from xenoglot.bulk.rate_control import RateControl


def test_no_more_are_under_way_than_may_be() -> None:
    pace = RateControl(2)
    first = pace.begin(0.0, 1)
    pace.begin(0.0, 1)
    assert pace.wait(0.0, 1) == inf
    pace.end(1.0, first)
    assert pace.wait(1.0, 1) == 0.0


def test_no_more_begin_in_a_minute_than_may() -> None:
    pace = RateControl(10, requests_per_minute=2)
    for at in (0.0, 10.0):
        assert pace.wait(at, 1) == 0.0
        pace.end(at, pace.begin(at, 1))
    assert pace.wait(15.0, 1) == 45.0
    assert pace.wait(60.0, 1) == 0.0


@pytest.mark.parametrize(
    ("used", "left"),
    [
        pytest.param(None, 0, id="not-known"),
        pytest.param(10, 50, id="fewer"),
        pytest.param(90, 0, id="more"),
    ],
)
def test_tokens_are_counted_as_they_were_used(used: int | None, left: int) -> None:
    pace = RateControl(10, tokens_per_minute=100)
    pace.end(0.0, pace.begin(0.0, 60), used)
    assert (pace.wait(0.0, 50) == 0.0) is (left == 50)
    assert pace.wait(60.0, 50) == 0.0


def test_a_line_that_needs_more_than_a_minute_has_is_asked_all_the_same() -> None:
    pace = RateControl(10, tokens_per_minute=100)
    assert pace.wait(0.0, 1_000_000) == 0.0
    pace.end(0.0, pace.begin(0.0, 1_000_000), 250)
    assert 0.0 < pace.wait(0.0, 1_000_000) <= 60.0


def test_a_crowd_halves_what_is_under_way_once_and_answers_raise_it_by_one_a_round() -> None:
    pace = RateControl(8)
    tickets = [pace.begin(0.0, 1) for _ in range(8)]
    for ticket in tickets:
        pace.on_overload(1.0, ticket, 5.0)
        pace.end(1.0, ticket)
    assert pace.limit == 4.0
    assert pace.wait(1.0, 1) == 5.0
    for _ in range(4):
        pace.on_success()
    assert 4.9 < pace.limit < 5.0
    for _ in range(100):
        pace.on_success()
    assert pace.limit == 8.0


def test_there_is_always_one_under_way() -> None:
    pace = RateControl(2)
    for at in range(1, 10):
        ticket = pace.begin(float(at), 1)
        pace.on_overload(at + 0.5, ticket)
        pace.end(at + 0.5, ticket)
    assert pace.limit == 1.0
    assert pace.wait(20.0, 1) == 0.0

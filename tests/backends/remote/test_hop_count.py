"""How far a request has come, and where that ends."""

from __future__ import annotations

import pytest

from xenoglot.backends.remote.request_heads import HOPS_HEADER as HEADER
from xenoglot.backends.remote.request_heads import arrive, read_hops
from xenoglot.backends.remote.request_heads import next_hops as onward
from xenoglot.errors import FailureError


@pytest.mark.parametrize("said", ["5", "17"])
def test_a_circle_of_gateways_comes_to_its_end(said: str) -> None:
    with pytest.raises(FailureError, match="in a circle"):
        read_hops([(HEADER, said)])


@pytest.mark.parametrize(
    ("said", "next_one"),
    [("0", "1"), ("4", "5"), ("", "1"), ("-1", "1"), ("x", "1"), ("1e9", "1"), ("100", "1"), ("\u0663", "1")],
)
def test_each_gateway_tells_the_next(said: str, next_one: str) -> None:
    arrive(read_hops([("host", "localhost"), (HEADER, said)]))
    assert onward() == next_one


def test_what_came_before_says_nothing_of_the_next_request() -> None:
    arrive(read_hops([(HEADER, "4")]))
    arrive(read_hops([]))
    assert onward() == "1"

"""Rate-limit headers, both ways."""

import pytest

from xenoglot.dialects.chat import CHAT
from xenoglot.model.limits import RateBudget, RateLimits

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("17ms", 0.017),
        ("1h2m3.5s", 3723.5),
        ("12", 12.0),
        ("1700000030", 30.0),
        ("1700000030000", 30.0),
        ("1600000000", 0.0),
        ("soon", None),
        ("-3", None),
        ("nan", None),
        ("1e999", None),
        ("9" * 400 + "h", None),
        ("99999999h", None),
        ("", None),
    ],
)
def test_resets(text: str, seconds: float | None) -> None:
    """pitfall-122, U37: durations, seconds and moments; nonsense says nothing."""
    limits = CHAT.decode_limits({"x-ratelimit-limit-requests": "60", "x-ratelimit-reset-requests": text}, NOW)
    assert limits == RateLimits(requests=RateBudget(limit=60, reset=seconds))


def test_both_allowances() -> None:
    headers = {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    limits = CHAT.decode_limits(headers, NOW)
    assert limits == RateLimits(
        requests=RateBudget(limit=60, remaining=59),
        tokens=RateBudget(limit=150000, remaining=149984, reset=360.0),
    )
    assert dict(CHAT.encode_limits(limits, NOW)) == headers


def test_no_headers_say_nothing() -> None:
    assert CHAT.decode_limits({"x-ratelimit-limit-requests": "many"}, NOW) is None


def test_numbers_beyond_reason_say_nothing() -> None:
    assert CHAT.decode_limits({"x-ratelimit-limit-requests": "9" * 5000}, NOW) is None


def test_what_runs_out_first_stands_for_both() -> None:
    """pitfall-122: Messages counts input and output apart."""
    limits = RateLimits(input_tokens=RateBudget(remaining=50), output_tokens=RateBudget(remaining=5, reset=0.25))
    assert list(CHAT.encode_limits(limits, NOW)) == [
        ("x-ratelimit-remaining-tokens", "5"),
        ("x-ratelimit-reset-tokens", "250ms"),
    ]


@pytest.mark.parametrize(("seconds", "text"), [(0.0, "0s"), (1.0, "1s"), (61.5, "1m1.5s"), (3600.0, "1h0m0s")])
def test_durations(seconds: float, text: str) -> None:
    limits = RateLimits(requests=RateBudget(reset=seconds))
    assert list(CHAT.encode_limits(limits, NOW)) == [("x-ratelimit-reset-requests", text)]

"""How long an upstream asks to wait, however it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.backends.retry_after import headers_in, retry_after
from xenoglot.dialects.openai.rate_limits import decode_limits
from xenoglot.model.limits import RateBudget, RateLimits

if TYPE_CHECKING:
    from xenoglot.model.json import JSON

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="U37-missing"),
        pytest.param({"retry-after": ""}, None, id="U37-empty"),
        pytest.param({"retry-after": "7"}, 7.0, id="U37-seconds"),
        pytest.param({"retry-after": "0"}, 0.0, id="U37-zero"),
        pytest.param({"retry-after": "0.5"}, 0.5, id="U37-fraction"),
        pytest.param({"retry-after": "Tue, 14 Nov 2023 22:13:45 GMT"}, 25.0, id="U37-date"),
        pytest.param({"retry-after": "Tue, 14 Nov 2023 22:13:45 -0000"}, 25.0, id="U37-date-without-zone"),
        pytest.param({"retry-after": "Wed, 15 Nov 2023 00:13:45 +0200"}, 25.0, id="U37-date-of-another-zone"),
        pytest.param({"retry-after": "Tuesday, 14-Nov-23 22:13:45 GMT"}, 25.0, id="U37-date-of-rfc-850"),
        pytest.param({"retry-after": "Tue Nov 14 22:13:45 2023"}, 25.0, id="U37-date-of-asctime"),
        pytest.param({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0, id="U37-past-date"),
        pytest.param({"retry-after": "Tue, 99 Nov 2023 22:00:00 GMT"}, None, id="U37-no-date"),
        pytest.param({"retry-after-ms": "1500", "retry-after": "9"}, 1.5, id="U37-ms-first"),
        pytest.param({"retry-after-ms": "61000"}, 60.0, id="U37-ms-capped"),
        pytest.param({"retry-after-ms": "soon", "retry-after": "9"}, 9.0, id="U37-ms-unreadable"),
        pytest.param({"retry-after-ms": "-1", "retry-after": "9"}, 9.0, id="U37-ms-negative"),
        pytest.param({"retry-after": "-3"}, None, id="U37-negative"),
        pytest.param({"retry-after": "NaN"}, None, id="U37-nan"),
        pytest.param({"retry-after": "inf"}, None, id="U37-infinite"),
        pytest.param({"retry-after": "1e9"}, 60.0, id="U37-capped"),
        pytest.param({"retry-after": "1e999"}, None, id="U37-beyond-a-double"),
        pytest.param({"retry-after": "9" * 5000}, None, id="U37-thousands-of-digits"),
        pytest.param({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 60.0, id="U37-far-date"),
        pytest.param({"retry-after": "tomorrow"}, None, id="U37-words"),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


SPENT = RateLimits(
    requests=RateBudget(limit=60, remaining=0, reset=12.0),
    tokens=RateBudget(limit=9, remaining=0, reset=30.0),
    input_tokens=RateBudget(limit=9, remaining=5, reset=50.0),
    output_tokens=RateBudget(limit=9, remaining=0),
)


@pytest.mark.parametrize(
    ("headers", "said", "limits", "seconds"),
    [
        pytest.param({"retry-after": "7"}, 34.0, SPENT, 7.0, id="U37-header-before-body"),
        pytest.param({"retry-after": "soon"}, 34.0, SPENT, 34.0, id="U37-body-before-limits"),
        pytest.param({}, 3600.0, None, 60.0, id="U37-body-capped"),
        pytest.param({}, float("nan"), SPENT, 30.0, id="U37-body-nan"),
        pytest.param({}, -1.0, None, None, id="U37-body-negative"),
        pytest.param({}, None, SPENT, 30.0, id="U37-longest-of-the-limits-used-up"),
        pytest.param(
            {}, None, RateLimits(requests=RateBudget(remaining=1, reset=9.0)), None, id="U37-limit-not-used-up"
        ),
        pytest.param({}, None, RateLimits(requests=RateBudget(remaining=0)), None, id="U37-limit-without-reset"),
        pytest.param(
            {}, None, RateLimits(output_tokens=RateBudget(remaining=0, reset=1e6)), 60.0, id="U37-limit-capped"
        ),
    ],
)
def test_what_else_may_say_it(
    headers: dict[str, str], said: float | None, limits: RateLimits | None, seconds: float | None
) -> None:
    assert retry_after(headers, NOW, said=said, limits=limits) == seconds


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param(
            {"error": {"metadata": {"headers": {"X-RateLimit-Remaining": 0, "X-RateLimit-Reset": "1700000042000"}}}},
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000042000"},
            id="U37-openrouter",
        ),
        pytest.param({"error": {"metadata": {"headers": {"a": ["b"], "c": None}}}}, {}, id="U37-no-text"),
        pytest.param({"error": {"metadata": {"headers": ["a"]}}}, {}, id="U37-no-object"),
        pytest.param({"error": "slow down"}, {}, id="U37-a-text"),
        pytest.param([1], {}, id="U37-a-list"),
        pytest.param(None, {}, id="U37-nothing"),
    ],
)
def test_headers_in_a_body(body: JSON, headers: dict[str, str]) -> None:
    assert headers_in(body) == headers


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        pytest.param("1m30s", 60.0, id="U37-minutes"),
        pytest.param("7.66s", 7.66, id="U37-groq"),
        pytest.param("17ms", 0.017, id="U37-milliseconds"),
        pytest.param("1700000042000", 42.0, id="U37-moment"),
        pytest.param("soon", None, id="U37-words"),
    ],
)
def test_resets_of_rate_limits(reset: str, seconds: float | None) -> None:
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": reset}
    assert retry_after(headers, NOW, limits=decode_limits(headers, NOW)) == seconds

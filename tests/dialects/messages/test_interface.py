"""What surrounds the messages: headers, limits, lists of models, counts."""

import pytest
from anthropic.types import ModelInfo as SDKModel

from xenoglot.dialects.messages import MESSAGES
from xenoglot.model.catalog import ModelInfo
from xenoglot.model.limits import RateBudget, RateLimits

NOW = 1_763_690_400.5  # 2025-11-21T02:00:00.5Z

HEADERS = {
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-requests-reset": "2025-11-21T02:00:10Z",
    "anthropic-ratelimit-input-tokens-limit": "1000",
    "anthropic-ratelimit-output-tokens-remaining": "0",
}
LIMITS = RateLimits(
    requests=RateBudget(limit=50, remaining=49, reset=9.5),
    input_tokens=RateBudget(limit=1000),
    output_tokens=RateBudget(remaining=0),
)


def test_limits_both_ways() -> None:
    """pitfall-122."""
    assert MESSAGES.decode_limits(HEADERS, NOW) == LIMITS
    assert dict(MESSAGES.encode_limits(LIMITS, NOW)) == HEADERS


@pytest.mark.parametrize(
    ("headers", "limits"),
    [
        ({"content-type": "x"}, None),
        ({"anthropic-ratelimit-tokens-limit": "many", "anthropic-ratelimit-tokens-reset": "soon"}, None),
        (
            {"anthropic-ratelimit-tokens-reset": "2025-11-21T02:00:00"},
            RateLimits(tokens=RateBudget(reset=0.0)),
        ),
        ({"anthropic-ratelimit-tokens-limit": "9" * 5000}, None),
        ({"anthropic-ratelimit-tokens-reset": "9999-12-31T23:59:59Z"}, None),
    ],
    ids=["none", "malformed", "past-and-without-zone", "a-number-beyond-reason", "a-time-beyond-reason"],
)
def test_limits_as_they_come(headers: dict[str, str], limits: RateLimits | None) -> None:
    assert MESSAGES.decode_limits(headers, NOW) == limits


@pytest.mark.parametrize(
    ("key", "headers"),
    [
        ("k", [("x-api-key", "k"), ("anthropic-version", "2023-06-01")]),
        (None, [("anthropic-version", "2023-06-01")]),
    ],
    ids=["key", "no-key"],
)
def test_authorize(key: str | None, headers: list[tuple[str, str]]) -> None:
    assert MESSAGES.authorize(key) == headers


def test_models() -> None:
    known = ModelInfo(
        id="a", display_name="A", created=1_763_690_400, max_input_tokens=9, max_output_tokens=5, lifecycle="deprecated"
    )
    first = {
        "type": "model",
        "id": "a",
        "display_name": "A",
        "created_at": "2025-11-21T02:00:00Z",
        "lifecycle": "deprecated",
        "max_input_tokens": 9,
        "max_tokens": 5,
    }
    second = {
        "type": "model",
        "id": "b",
        "display_name": "b",
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
    }
    page = {"data": [first, second], "has_more": False, "first_id": "a", "last_id": "b"}
    assert MESSAGES.encode_models([known, ModelInfo(id="b")]) == page
    assert MESSAGES.encode_models([]) == {"data": [], "has_more": False, "first_id": None, "last_id": None}
    assert MESSAGES.encode_model(known) == first
    assert MESSAGES.decode_models(page)[0] == known
    assert [SDKModel.model_validate(one).lifecycle for one in (first, second)] == [
        "deprecated",
        "active",
    ]  # strict: findings-H


def test_counts() -> None:
    """pitfall-124."""
    assert MESSAGES.encode_count is not None
    assert MESSAGES.encode_count(7) == {"input_tokens": 7}

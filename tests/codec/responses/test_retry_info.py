"""The wait in the details of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xenoglot.codec.responses.error_text import RETRY_INFO, retry_delay
from xenoglot.dialects.gemini.errors import decode_error as decode_gemini
from xenoglot.dialects.openai.errors import decode_error as decode_openai

if TYPE_CHECKING:
    from xenoglot.model.json import JSON


@pytest.mark.parametrize(
    ("details", "seconds"),
    [
        pytest.param([{"@type": RETRY_INFO, "retryDelay": "34s"}], 34.0, id="U37-seconds"),
        pytest.param([{"@type": RETRY_INFO, "retryDelay": "34.074824224s"}], 34.074824224, id="U37-fraction"),
        pytest.param([None, {"@type": "other"}, {"@type": RETRY_INFO, "retryDelay": "1s"}], 1.0, id="U37-among-others"),
        pytest.param([{"@type": RETRY_INFO, "retryDelay": "-3s"}], None, id="U37-negative"),
        pytest.param([{"@type": RETRY_INFO, "retryDelay": "nans"}], None, id="U37-nan"),
        pytest.param([{"@type": RETRY_INFO, "retryDelay": "1" * 400 + "s"}], None, id="U37-endless"),
        pytest.param([{"@type": RETRY_INFO, "retryDelay": 34}], None, id="U37-number"),
        pytest.param([{"@type": RETRY_INFO}], None, id="U37-missing"),
        pytest.param([{"retryDelay": "34s"}], None, id="U37-no-type"),
        pytest.param({"@type": RETRY_INFO, "retryDelay": "34s"}, None, id="U37-no-list"),
        pytest.param(None, None, id="U37-nothing"),
    ],
)
def test_retry_delay(details: JSON, seconds: float | None) -> None:
    assert retry_delay(details) == seconds


def test_gemini_says_the_same_through_both_of_its_faces() -> None:
    error = {
        "code": 429,
        "message": "You exceeded your current quota.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": RETRY_INFO, "retryDelay": "34s"}],
    }
    own, openai = decode_gemini(429, {"error": error}), decode_openai(429, [{"error": error}])
    assert [(one.kind, one.retry_after) for one in (own, openai)] == [("rate_limit", 34.0), ("rate_limit", 34.0)]

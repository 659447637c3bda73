"""Errors: the table both ways, and the words that clients act on."""

import pytest

from xenoglot.dialects.gemini import GEMINI
from xenoglot.model.failure import Failure, FailureKind
from xenoglot.model.json import JSON, JSONObject

RETRY = "type.googleapis.com/google.rpc.RetryInfo"


@pytest.mark.parametrize(
    ("kind", "code", "status"),
    [
        ("invalid_request", 400, "INVALID_ARGUMENT"),
        ("unsupported", 400, "INVALID_ARGUMENT"),
        ("authentication", 401, "UNAUTHENTICATED"),
        ("billing", 402, "FAILED_PRECONDITION"),
        ("permission", 403, "PERMISSION_DENIED"),
        ("not_found", 404, "NOT_FOUND"),
        ("conflict", 409, "ABORTED"),
        ("too_large", 413, "INVALID_ARGUMENT"),
        ("rate_limit", 429, "RESOURCE_EXHAUSTED"),
        ("cancelled", 499, "CANCELLED"),
        ("internal", 500, "INTERNAL"),
        ("upstream", 502, "UNAVAILABLE"),
        ("overloaded", 503, "UNAVAILABLE"),
        ("timeout", 504, "DEADLINE_EXCEEDED"),
    ],
)
def test_each_kind_is_said_and_read(kind: FailureKind, code: int, status: str) -> None:
    """pitfall-120, pitfall-121: another dialect's status, type and code are not this one's."""
    failure = Failure(kind=kind, message="No.", status=418, dialect="chat", raw_type="t", code="c")
    body = {"error": {"code": code, "message": "No.", "status": status}}
    assert GEMINI.encode_error(failure) == (code, body)
    assert GEMINI.decode_error(code, body).kind == ("invalid_request" if kind == "unsupported" else kind)


def test_what_else_a_failure_says() -> None:
    """pitfall-122."""
    failure = Failure(kind="rate_limit", message="Slow.", retry_after=2.5, param="$.contents[0]", request_id="r1")
    status, body = GEMINI.encode_error(failure)
    assert body["error"]["details"] == [
        {"@type": RETRY, "retryDelay": "2.5s"},
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": "contents[0]", "description": "Slow."}],
        },
        {"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": "r1"},
    ]
    again = GEMINI.decode_error(status, body)
    assert (again.retry_after, again.param, again.request_id) == (2.5, "contents[0]", "r1")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        pytest.param(400, {"error": {"details": [{"reason": "API_KEY_INVALID"}]}}, "authentication", id="bad-key"),
        pytest.param(400, {"error": {"status": "FAILED_PRECONDITION"}}, "permission", id="not-in-your-country"),
        pytest.param(429, [{"error": {"code": 429, "message": "x"}}], "rate_limit", id="in-an-array"),
        pytest.param(200, {"error": {"code": 503, "message": "x"}}, "overloaded", id="in-an-answer"),
        pytest.param(502, "<html>", "upstream", id="a-page"),
        pytest.param(418, None, "invalid_request", id="nothing"),
        pytest.param(200, {"error": "oops"}, "upstream", id="a-text"),
    ],
)
def test_errors_of_all_shapes(status: int, body: JSON, kind: FailureKind) -> None:
    """pitfall-121."""
    assert GEMINI.decode_error(status, body).kind == kind


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            Failure(kind="context_overflow", message="Too long", tokens=9000, limit=8192),
            "The input token count (9000) exceeds the maximum number of tokens allowed (8192).",
        ),
        (
            Failure(kind="context_overflow", message="Too long"),
            "The input token count exceeds the maximum number of tokens allowed: Too long",
        ),
    ],
)
def test_an_overflow_in_words_that_clients_know(failure: Failure, message: str) -> None:
    """pitfall-123."""
    body: JSONObject = GEMINI.encode_error(failure)[1]
    assert body["error"]["message"] == message
    again = GEMINI.decode_error(400, body)
    assert (again.kind, again.tokens, again.limit) == ("context_overflow", failure.tokens, failure.limit)


def test_a_status_that_http_has_a_word_for_is_the_code() -> None:
    failure = Failure(kind="invalid_request", message="`GET` is not for this path", status=405)
    error = {"code": 405, "message": failure.message, "status": "INVALID_ARGUMENT"}
    assert GEMINI.encode_error(failure) == (405, {"error": error})

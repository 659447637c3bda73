"""Errors: the table both ways, and the words that clients act on."""

import pytest

from xenoglot.dialects.messages import MESSAGES
from xenoglot.model.failure import Failure, FailureKind
from xenoglot.model.json import JSON, JSONObject


@pytest.mark.parametrize(
    ("kind", "status", "error_type"),
    [
        ("invalid_request", 400, "invalid_request_error"),
        ("unsupported", 400, "invalid_request_error"),
        ("authentication", 401, "authentication_error"),
        ("billing", 402, "billing_error"),
        ("permission", 403, "permission_error"),
        ("not_found", 404, "not_found_error"),
        ("conflict", 409, "conflict_error"),
        ("too_large", 413, "request_too_large"),
        ("rate_limit", 429, "rate_limit_error"),
        ("cancelled", 499, "api_error"),
        ("internal", 500, "api_error"),
        ("upstream", 502, "api_error"),
        ("timeout", 504, "timeout_error"),
        ("overloaded", 529, "overloaded_error"),
    ],
)
def test_each_kind_is_said(kind: FailureKind, status: int, error_type: str) -> None:
    """pitfall-120, pitfall-121: another dialect's status, type and code are not this one's."""
    failure = Failure(
        kind=kind, message="No.", status=418, dialect="chat", raw_type="t", code="c", details={"a": 1}, request_id="r"
    )
    body = {"type": "error", "error": {"type": error_type, "message": "No."}, "request_id": "r"}
    assert MESSAGES.encode_error(failure) == (status, body)


LLAMA = "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it"


def error(error_type: str, message: str, **fields: JSON) -> JSONObject:
    return {"type": "error", "error": {"type": error_type, "message": message, **fields}}


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        pytest.param(
            529,
            error("overloaded_error", "Overloaded"),
            Failure(kind="overloaded", message="Overloaded", status=529, raw_type="overloaded_error"),
            id="pitfall-121-own",
        ),
        pytest.param(
            500,
            error("api_error", "Oops", details={"error_code": "x"}),
            Failure(kind="internal", message="Oops", status=500, raw_type="api_error", details={"error_code": "x"}),
            id="details",
        ),
        pytest.param(
            400,
            error("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
            Failure(
                kind="context_overflow",
                message="prompt is too long: 208310 tokens > 200000 maximum",
                status=400,
                raw_type="invalid_request_error",
                tokens=208310,
                limit=200000,
            ),
            id="pitfall-123-own",
        ),
        pytest.param(
            400,
            {
                "error": {
                    "code": 400,
                    "message": LLAMA,
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 9000,
                    "n_ctx": 8192,
                }
            },
            Failure(
                kind="context_overflow",
                message=LLAMA,
                status=400,
                raw_type="exceed_context_size_error",
                tokens=9000,
                limit=8192,
            ),
            id="pitfall-123-llama-cpp",
        ),
        pytest.param(
            503,
            {"error": "model is loading"},
            Failure(kind="overloaded", message="model is loading", status=503),
            id="string",
        ),
        pytest.param(422, {"detail": "bad"}, Failure(kind="invalid_request", message="bad", status=422), id="detail"),
        pytest.param(
            502,
            "<html>Bad Gateway</html>",
            Failure(kind="upstream", message="the upstream answered with status 502", status=502),
            id="U26-html",
        ),
        pytest.param(
            418,
            None,
            Failure(kind="invalid_request", message="the upstream answered with status 418", status=418),
            id="U24-nothing",
        ),
        pytest.param(
            500,
            {"error": {"message": 5, "type": []}},
            Failure(kind="internal", message="the upstream answered with status 500", status=500),
            id="garbage",
        ),
    ],
)
def test_errors_are_read(status: int, body: JSON, failure: Failure) -> None:
    assert MESSAGES.decode_error(status, body) == Failure(
        **{name: getattr(failure, name) for name in Failure.__struct_fields__ if name != "dialect"}, dialect="messages"
    )


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        pytest.param(
            Failure(
                kind="invalid_request",
                message="messages[1].role: Input should be 'user', 'assistant' or 'system'",
                param="$.messages[1].role",
            ),
            "messages.1.role: Input should be 'user', 'assistant' or 'system'",
            id="pitfall-120-path",
        ),
        pytest.param(
            Failure(kind="context_overflow", message="maximum context length is 8 tokens", tokens=9, limit=8),
            "prompt is too long: 9 tokens > 8 maximum",
            id="pitfall-123-numbers",
        ),
        pytest.param(
            Failure(kind="context_overflow", message="the context is full"),
            "prompt is too long: the context is full",
            id="pitfall-123-no-numbers",
        ),
    ],
)
def test_words_that_clients_act_on(failure: Failure, message: str) -> None:
    assert MESSAGES.encode_error(failure) == (400, error("invalid_request_error", message))

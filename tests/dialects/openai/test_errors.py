"""Errors of chat servers, read and written: kinds, statuses, and the words that clients act on."""

import pytest

from xenoglot.dialects.chat import CHAT
from xenoglot.model.failure import STATUS, Failure, FailureKind
from xenoglot.model.json import JSON


def body(message: str, kind: str | None, code: JSON, param: str | None = None) -> JSON:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


@pytest.mark.parametrize(
    ("status", "answer", "kind", "message"),
    [
        pytest.param(401, body("no", "invalid_request_error", "invalid_api_key"), "authentication", "no", id="key"),
        pytest.param(404, body("no", "invalid_request_error", "model_not_found"), "not_found", "no", id="U41-model"),
        pytest.param(429, body("no", "tokens", "rate_limit_exceeded"), "rate_limit", "no", id="U37-rate"),
        pytest.param(
            429, body("no", "insufficient_quota", "insufficient_quota"), "billing", "no", id="pitfall-121-quota"
        ),
        pytest.param(
            402, body("Insufficient Balance", "unknown_error", None), "billing", "Insufficient Balance", id="deepseek"
        ),
        pytest.param(400, body("no", "invalid_request_error", None, "n"), "invalid_request", "no", id="invalid"),
        pytest.param(
            422,
            {"detail": [{"loc": ["body", "n"], "msg": "too big"}]},
            "invalid_request",
            "body.n: too big",
            id="fastapi",
        ),
        pytest.param(404, {"error": "model 'x' not found"}, "not_found", "model 'x' not found", id="ollama"),
        pytest.param(
            400,
            [{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}],
            "invalid_request",
            "bad",
            id="gemini",
        ),
        pytest.param(
            400,
            {"object": "error", "message": "bad", "type": "BadRequestError", "code": 400},
            "invalid_request",
            "bad",
            id="vllm-flat",
        ),
        pytest.param(200, {"error": {"message": "bad", "code": 429}}, "rate_limit", "bad", id="pitfall-105-in-stream"),
        pytest.param(200, {"error": {}}, "upstream", "the server failed", id="empty"),
        pytest.param(502, "<html>nginx</html>", "upstream", "the server answered with status 502", id="U26-html"),
        pytest.param(503, "overloaded", "overloaded", "overloaded", id="U38-text"),
        pytest.param(529, None, "overloaded", "the server answered with status 529", id="U38-nothing"),
        pytest.param(418, {}, "invalid_request", "the server answered with status 418", id="other-4xx"),
        pytest.param(599, {}, "upstream", "the server answered with status 599", id="other-5xx"),
    ],
)
def test_kinds(status: int, answer: JSON, kind: FailureKind, message: str) -> None:
    failure = CHAT.decode_error(status, answer)
    assert (failure.kind, failure.message, failure.dialect) == (kind, message, "openai")


@pytest.mark.parametrize(
    ("message", "tokens", "limit"),
    [
        pytest.param(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 10042 tokens.",
            10042,
            8192,
            id="openai",
        ),
        pytest.param("prompt is too long: 210000 tokens > 200000 maximum", 210000, 200000, id="anthropic"),
        pytest.param(
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            40000,
            32768,
            id="mistral",
        ),
        pytest.param("the input length exceeds the context length", None, None, id="ollama"),
    ],
)
def test_overflow_is_known_by_its_words(message: str, tokens: int | None, limit: int | None) -> None:
    """pitfall-123, U39."""
    failure = CHAT.decode_error(400, body(message, "invalid_request_error", None))
    assert (failure.kind, failure.tokens, failure.limit) == ("context_overflow", tokens, limit)


def test_a_limit_of_tokens_per_minute_is_no_overflow() -> None:
    failure = CHAT.decode_error(
        429, body("context length of requests exceeded: maximum context length", "tokens", None)
    )
    assert failure.kind == "rate_limit"


@pytest.mark.parametrize("kind", sorted(STATUS))
def test_every_kind_is_written_and_read_again(kind: FailureKind) -> None:
    """pitfall-120, pitfall-121."""
    status, written = CHAT.encode_error(Failure(kind=kind, message="maximum context length"))
    assert status == STATUS[kind]
    assert written["error"].keys() == {"message", "type", "param", "code"}
    if kind != "invalid_request":  # which says nothing by its code
        again = CHAT.decode_error(status, {"error": written["error"] | {"message": "m"}})
        assert again.kind == kind


@pytest.mark.parametrize(
    ("failure", "status", "message", "code", "param"),
    [
        pytest.param(
            Failure(kind="overloaded", message="m", dialect="messages", status=529),
            503,
            "m",
            "service_unavailable",
            None,
            id="U38-529",
        ),
        pytest.param(
            Failure(kind="context_overflow", message="prompt is too long: 9 tokens > 8 maximum", tokens=9, limit=8),
            400,
            "This model's maximum context length is 8 tokens. However, your messages resulted in 9 tokens.",
            "context_length_exceeded",
            None,
            id="pitfall-123-numbers",
        ),
        pytest.param(
            Failure(kind="context_overflow", message="too long", limit=8),
            400,
            "This model's maximum context length is 8 tokens. too long",
            "context_length_exceeded",
            None,
            id="pitfall-123-limit",
        ),
        pytest.param(
            Failure(kind="context_overflow", message="too long"),
            400,
            "The request exceeds the model's maximum context length: too long",
            "context_length_exceeded",
            None,
            id="pitfall-123-words",
        ),
        pytest.param(
            Failure(kind="not_found", message="m", param="$.model"),
            404,
            "m",
            "model_not_found",
            "model",
            id="U41-model",
        ),
        pytest.param(
            Failure(kind="invalid_request", message="m", param="$.messages[0].role"),
            400,
            "m",
            None,
            "messages[0].role",
            id="param",
        ),
    ],
)
def test_what_clients_read(failure: Failure, status: int, message: str, code: str | None, param: str | None) -> None:
    written = CHAT.encode_error(failure)
    assert (written[0], {key: written[1]["error"][key] for key in ("message", "code", "param")}) == (
        status,
        {"message": message, "code": code, "param": param},
    )

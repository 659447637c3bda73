"""Errors: kinds by status and by words."""

import pytest

from xenoglot.dialects.ollama import OLLAMA
from xenoglot.model.failure import STATUS, Failure, FailureKind
from xenoglot.model.json import JSON


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (400, {"error": "model is required"}, "invalid_request", "model is required"),
        (400, {"error": "prompt too long; exceeded max context length by 4 tokens"}, "context_overflow", None),
        (404, {"error": "model 'x' not found"}, "not_found", None),
        (405, "405 method not allowed", "not_found", "405 method not allowed"),
        (429, {"error": {"message": "slow down"}}, "rate_limit", "slow down"),
        (499, {"error": "request canceled"}, "cancelled", None),
        (500, {"StatusCode": 500, "Status": "", "error": "no memory"}, "internal", "no memory"),
        (502, "<html>bad gateway</html>", "upstream", "the server answered with status 502"),
        (503, None, "overloaded", "the server answered with status 503"),
        (418, [], "invalid_request", "the server answered with status 418"),
        (200, {"error": "broken"}, "upstream", "broken"),
        (200, {}, "upstream", "the server failed"),
    ],
)
def test_what_went_wrong(status: int, body: JSON, kind: FailureKind, message: str | None) -> None:
    """pitfall-120, pitfall-121."""
    failure = OLLAMA.decode_error(status, body)
    assert (failure.kind, failure.status) == (kind, None if status == 200 else status)
    assert message is None or failure.message == message


@pytest.mark.parametrize("kind", sorted(STATUS))
def test_a_strangers_failure(kind: FailureKind) -> None:
    status, body = OLLAMA.encode_error(Failure(kind=kind, message="why", status=529, dialect="x"))
    said = "the input length exceeds the context length: why" if kind == "context_overflow" else "why"
    assert (status, body) == (STATUS[kind], {"error": said})


def test_an_empty_sentence_would_be_no_error_to_clients() -> None:
    assert OLLAMA.encode_error(Failure(kind="internal", message="")) == (500, {"error": "the server failed"})


def test_what_stands_beside_the_sentence_goes_home() -> None:
    body = {"error": "unauthorized", "signin_url": "https://example.com"}
    assert OLLAMA.encode_error(OLLAMA.decode_error(401, body)) == (401, body)

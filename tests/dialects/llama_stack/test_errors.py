"""Errors, both ways."""

import pytest

from xenoglot.dialects.llama_stack import LLAMA_STACK
from xenoglot.dialects.llama_stack.errors import encode_stream_error
from xenoglot.model.failure import Failure, FailureKind
from xenoglot.model.json import JSON


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (400, {"detail": "Invalid value: x"}, "invalid_request", "Invalid value: x"),
        (400, {"detail": "Invalid value: Model 'x' not found"}, "not_found", "Invalid value: Model 'x' not found"),
        (400, {"detail": [{"loc": ["body", "a"], "msg": "no"}, "and", 5]}, "invalid_request", "body.a: no; and"),
        (400, {"error": {"detail": {"errors": [{"msg": "no"}]}}}, "invalid_request", "no"),
        (
            400,
            {"detail": "prompt is too long: 9 tokens > 5 maximum"},
            "context_overflow",
            "prompt is too long: 9 tokens > 5 maximum",
        ),
        (401, {"error": {"message": "no key"}}, "authentication", "no key"),
        (403, {"detail": "Permission denied: x"}, "permission", "Permission denied: x"),
        (426, {"error": {"message": "old"}}, "invalid_request", "old"),
        (429, "slow down", "rate_limit", "slow down"),
        (501, {"detail": "Not implemented: x"}, "unsupported", "Not implemented: x"),
        (502, "<html>" + "x" * 600, "upstream", "the server answered with status 502"),
        (599, None, "upstream", "the server answered with status 599"),
        (200, {"error": {"message": "503: busy"}}, "overloaded", "busy"),
        (200, {"error": {"message": "gone"}}, "upstream", "gone"),
        (200, {"error": {}}, "upstream", "the server failed"),
    ],
)
def test_errors_are_read(status: int, body: JSON, kind: str, message: str) -> None:
    """pitfall-121, pitfall-123: whatever shape they come in."""
    failure = LLAMA_STACK.decode_error(status, body)
    assert (failure.kind, failure.message) == (kind, message)


@pytest.mark.parametrize(
    ("kind", "status", "title"),
    [("not_found", 404, "Not found"), ("unsupported", 400, "Unsupported"), ("overloaded", 503, "Overloaded")],
)
def test_errors_are_written(kind: FailureKind, status: int, title: str) -> None:
    body = {"status": status, "title": title, "detail": "no"}
    assert LLAMA_STACK.encode_error(Failure(kind=kind, message="no")) == (status, body)


@pytest.mark.parametrize(
    ("failure", "detail"),
    [
        (Failure(kind="context_overflow", message="no"), "The prompt exceeds the model's maximum context length: no"),
        (
            Failure(kind="context_overflow", message="no", limit=5),
            "This model's maximum context length is 5 tokens. no",
        ),
        (
            Failure(kind="context_overflow", message="no", limit=5, tokens=9),
            "This model's maximum context length is 5 tokens. However, your messages resulted in 9 tokens.",
        ),
    ],
)
def test_an_overflow_is_told_in_words_that_clients_know(failure: Failure, detail: str) -> None:
    """pitfall-123."""
    assert LLAMA_STACK.encode_error(failure)[1]["detail"] == detail


def test_a_message_that_was_changed_is_not_undone() -> None:
    """A key in a message of the server is taken out; its own body would bring it back."""
    failure = LLAMA_STACK.decode_error(401, {"detail": "bad key sk-1"})
    changed = Failure(
        kind="authentication", message="bad key ***", status=401, dialect="llama_stack", details=failure.details
    )
    assert LLAMA_STACK.encode_error(changed)[1]["detail"] == "bad key ***"


def test_errors_in_streams() -> None:
    whole = LLAMA_STACK.decode_error(400, {"detail": "no"})
    assert encode_stream_error(whole) == {"error": {"message": "400: no"}}
    streamed = LLAMA_STACK.decode_error(200, {"error": {"message": "400: no"}})
    assert encode_stream_error(streamed) == {"error": {"message": "400: no"}}
    bare = LLAMA_STACK.decode_error(200, {"error": {"message": "no"}})
    assert encode_stream_error(bare) == {"error": {"message": "502: no"}}

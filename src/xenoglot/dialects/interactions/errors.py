"""Encodes and decodes errors.

Sources: `Error` and `Status` in `google/genai/_gaos/types/interactions` of the official SDK, and
https://cloud.google.com/apis/design/errors. An error of this API has a word for its `code` (`resource_exhausted`); what
stands before it answers with that of Google's other APIs, whose `code` is the HTTP status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.responses.error_text import find_overflow, retry_delay
from xenoglot.dialects.interactions.extras import NAME
from xenoglot.model.failure import STATUS, Failure, kind_of_status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.model.failure import FailureKind
    from xenoglot.model.json import JSON, JSONObject

_CODES: Final[Mapping[FailureKind, str]] = {
    "invalid_request": "invalid_request",
    "context_overflow": "invalid_request",
    "unsupported": "unimplemented",
    "too_large": "request_too_large",
    "authentication": "unauthenticated",
    "billing": "failed_precondition",
    "permission": "permission_denied",
    "not_found": "not_found",
    "conflict": "aborted",
    "rate_limit": "resource_exhausted",
    "cancelled": "cancelled",
    "internal": "internal",
    "upstream": "upstream_failure",
    "overloaded": "unavailable",
    "timeout": "deadline_exceeded",
}
"""How each kind of failure is written."""

_KINDS: Final[Mapping[str, FailureKind]] = {
    **{code: kind for kind, code in _CODES.items() if kind not in ("context_overflow", "billing")},
    "invalid_argument": "invalid_request",
    "bad_request": "invalid_request",
    "out_of_range": "invalid_request",
    "failed_precondition": "permission",
    "unauthorized": "authentication",
    "already_exists": "conflict",
    "too_many_requests": "rate_limit",
    "quota_exceeded": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "internal_error": "internal",
    "server_error": "internal",
    "unknown": "internal",
    "data_loss": "internal",
    "service_unavailable": "overloaded",
    "overloaded": "overloaded",
    "gateway_timeout": "timeout",
    "timeout": "timeout",
    "model_not_found": "not_found",
}

_VAGUE: Final = {(402, "failed_precondition"), (502, "unavailable")}
"""Words that mean less than the status of their answer."""

_LONGEST_TEXT: Final = 500
_GRPC: Final[Mapping[int, str]] = {
    1: "cancelled",
    3: "invalid_argument",
    4: "deadline_exceeded",
    5: "not_found",
    7: "permission_denied",
    8: "resource_exhausted",
    9: "failed_precondition",
    13: "internal",
    14: "unavailable",
    16: "unauthenticated",
}
"""`google.rpc.Code`, which the error of a step has for its `code`."""


def decode_error(status: int, body: JSON) -> Failure:
    """Return the failure in a server's HTTP `status` and `body`: JSON, other text, or `None`."""
    return read_error(body, status)


def read_error(body: JSON, status: int | None = None) -> Failure:
    """Return the failure in `body`: an answer to a request, an `error` event, or an interaction that failed."""
    error = error_object(body)
    told = status if status is not None and _is_error(status) else None
    code = error.get("code")
    if told is None and _is_error(code):
        told = code
    word = _word(error)
    message = _text(error, "message") or ""
    kind = _kind(told, word)
    overflow = (
        find_overflow(message, word) if kind in ("invalid_request", "too_large", "internal", "upstream") else None
    )
    return Failure(
        kind="context_overflow" if overflow else kind,
        message=message or ("the server failed" if told is None else f"the server answered with status {told}"),
        status=told,
        dialect=NAME,
        code=word,
        retry_after=retry_delay(error.get("details")),
        tokens=overflow.tokens if overflow else None,
        limit=overflow.limit if overflow else None,
        details=error if message and isinstance(body, dict) and isinstance(body.get("error"), dict) else None,
    )


def error_object(body: JSON) -> JSONObject:
    """Return the error in `body`, whatever its wrapping; empty if there is none."""
    if isinstance(body, str) and 0 < len(body) <= _LONGEST_TEXT and not body.lstrip().startswith("<"):
        return {"message": body.strip()}
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return {}
    errors = body.get("errors")
    found = body.get("error", errors[0] if isinstance(errors, list) and errors else _step_error(body))
    if isinstance(found, dict):
        return found
    return {"message": found} if isinstance(found, str) else {"message": body.get("message")}


def _step_error(body: JSONObject) -> JSON:
    """Return the error of the last step of an interaction that failed."""
    steps = body.get("steps")
    last = steps[-1] if isinstance(steps, list) and steps else None
    return last.get("error") if isinstance(last, dict) else None


def _is_error(status: JSON) -> bool:
    return type(status) is int and 400 <= status < 600  # noqa: PLR2004  RFC 9110 section 15


def _text(value: JSONObject, key: str) -> str | None:
    found = value.get(key)
    return found if isinstance(found, str) and found else None


def _word(error: JSONObject) -> str | None:
    """Return the word of an error: its `code`, or the `status` of an error of another API."""
    code = error.get("code")
    if isinstance(code, int) and not isinstance(code, bool) and code in _GRPC:
        return _GRPC[code]
    return _text(error, "code") or (_text(error, "status") or "").lower() or None


def _kind(status: int | None, word: str | None) -> FailureKind:
    found = None if word is None or (status, word.lower()) in _VAGUE else _KINDS.get(word.lower())
    if found is not None and not (found == "invalid_request" and status is not None and status not in (400, 422)):
        return found
    return "upstream" if status is None else kind_of_status(status)


def encode_error(failure: Failure) -> tuple[int, JSONObject]:
    """Return the HTTP status and body for `failure`; an error from this dialect keeps its own text."""
    own = failure.dialect == NAME
    status = failure.status if failure.status is not None and (own or failure.dialect is None) else STATUS[failure.kind]
    return status, {"error": error_of(failure)}


def error_of(failure: Failure) -> JSONObject:
    """Return the `error` object of a failure."""
    if failure.dialect == NAME and isinstance(failure.details, dict):
        return failure.details | {"message": failure.message}
    code = failure.code if failure.dialect == NAME and failure.code else _CODES[failure.kind]
    return {"code": code, "message": _message(failure)}


def _message(failure: Failure) -> str:
    """Return the message; that of a context overflow in the words that clients of the servers know (pitfall-123)."""
    if failure.kind != "context_overflow" or "input token count" in failure.message:
        return failure.message
    if failure.tokens is not None and failure.limit is not None:
        exceeds = "exceeds the maximum number of tokens allowed"
        return f"The input token count ({failure.tokens}) {exceeds} ({failure.limit})."
    return f"The input token count exceeds the maximum number of tokens allowed: {failure.message}"

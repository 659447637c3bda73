"""Encodes and decodes errors.

Source: https://ai.google.dev/gemini-api/docs/troubleshooting and https://cloud.google.com/apis/design/errors: an error
has the HTTP status, the word of a `google.rpc.Code`, and details with a type each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.responses.error_text import RETRY_INFO, find_overflow, retry_delay
from xenoglot.dialects.gemini.extras import NAME
from xenoglot.model.failure import Failure, FailureKind, kind_of_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON, JSONObject

KINDS: dict[FailureKind, tuple[int, str]] = {
    "invalid_request": (400, "INVALID_ARGUMENT"),
    "context_overflow": (400, "INVALID_ARGUMENT"),
    "unsupported": (400, "INVALID_ARGUMENT"),
    "too_large": (413, "INVALID_ARGUMENT"),
    "authentication": (401, "UNAUTHENTICATED"),
    "billing": (402, "FAILED_PRECONDITION"),
    "permission": (403, "PERMISSION_DENIED"),
    "not_found": (404, "NOT_FOUND"),
    "conflict": (409, "ABORTED"),
    "rate_limit": (429, "RESOURCE_EXHAUSTED"),
    "cancelled": (499, "CANCELLED"),
    "internal": (500, "INTERNAL"),
    "upstream": (502, "UNAVAILABLE"),
    "overloaded": (503, "UNAVAILABLE"),
    "timeout": (504, "DEADLINE_EXCEEDED"),
}
"""The HTTP status and `error.status` of each kind of failure."""

_WORDS: dict[str, FailureKind] = {
    "INVALID_ARGUMENT": "invalid_request",
    "OUT_OF_RANGE": "invalid_request",
    "FAILED_PRECONDITION": "permission",  # a country, or a project without billing
    "UNAUTHENTICATED": "authentication",
    "PERMISSION_DENIED": "permission",
    "NOT_FOUND": "not_found",
    "ABORTED": "conflict",
    "ALREADY_EXISTS": "conflict",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "CANCELLED": "cancelled",
    "INTERNAL": "internal",
    "UNKNOWN": "internal",
    "DATA_LOSS": "internal",
    "UNIMPLEMENTED": "unsupported",
    "UNAVAILABLE": "overloaded",
    "DEADLINE_EXCEEDED": "timeout",
}

_VAGUE = {(413, "INVALID_ARGUMENT"), (402, "FAILED_PRECONDITION"), (502, "UNAVAILABLE")}

_TYPES = "type.googleapis.com/google.rpc."
_BAD_REQUEST = _TYPES + "BadRequest"
_REQUEST_INFO = _TYPES + "RequestInfo"

_BAD_KEYS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED"})
"""Reasons of an `ErrorInfo` that show that the API key caused a 400."""

_LONGEST_TEXT = 500


def decode_error(status: int, body: JSON) -> Failure:
    """Return the failure in a server's HTTP `status` and `body`: JSON, other text, or `None`."""
    return read_error(body, status)


def read_error(body: JSON, status: int | None = None) -> Failure:
    """Return the failure in `body`; inside a stream, or with the status of an answer, its `code` is the status."""
    error = error_object(body)
    if not _is_error(status):
        status = error.get("code") if _is_error(error.get("code")) else None
    word = _text(error, "status")
    message = _text(error, "message") or ""
    kind = _kind(status, word, error)
    overflow = None if kind in ("rate_limit", "authentication", "permission") else find_overflow(message, word)
    return Failure(
        kind="context_overflow" if overflow else kind,
        message=message or ("the server failed" if status is None else f"the server answered with status {status}"),
        status=status,
        dialect=NAME,
        raw_type=word,
        param=_param(error),
        retry_after=retry_delay(error.get("details")),
        tokens=overflow.tokens if overflow else None,
        limit=overflow.limit if overflow else None,
        request_id=next((_text(detail, "requestId") for detail in _details(error, _REQUEST_INFO)), None),
        details=error if message and "error" in _first(body) else None,
    )


def _first(body: JSON) -> JSONObject:
    """Return the object that holds the error; a stream sends it as the only element of an array."""
    if isinstance(body, list) and body:
        body = body[0]
    return body if isinstance(body, dict) else {}


def error_object(body: JSON) -> JSONObject:
    """Return the error in `body`, whatever its wrapping; empty if there is none."""
    if isinstance(body, str) and 0 < len(body) <= _LONGEST_TEXT and not body.lstrip().startswith("<"):
        return {"message": body.strip()}
    outer = _first(body)
    error = outer.get("error", outer)
    if isinstance(error, dict):
        return error
    return {"message": error} if isinstance(error, str) else {}


def _is_error(status: JSON) -> bool:
    return type(status) is int and 400 <= status < 600  # noqa: PLR2004  RFC 9110 section 15


def _text(value: JSONObject, key: str) -> str | None:
    found = value.get(key)
    return found if isinstance(found, str) and found else None


def _details(error: JSONObject, kind: str | None = None) -> Iterator[JSONObject]:
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and kind in (None, detail.get("@type")):
            yield detail


def _kind(status: int | None, word: str | None, error: JSONObject) -> FailureKind:
    if any(detail.get("reason") in _BAD_KEYS for detail in _details(error) if isinstance(detail.get("reason"), str)):
        return "authentication"
    if word in _WORDS and (status, word) not in _VAGUE:
        return _WORDS[word]
    if status is None:
        return "upstream"
    return kind_of_status(status)


def _param(error: JSONObject) -> str | None:
    for detail in _details(error, _BAD_REQUEST):
        violations = detail.get("fieldViolations")
        for violation in violations if isinstance(violations, list) else ():
            if isinstance(violation, dict) and (field := _text(violation, "field")):
                return field
    return None


def encode_error(failure: Failure) -> tuple[int, JSONObject]:
    """Return the HTTP status and body for `failure`; an error from this dialect keeps its own text."""
    status, word = KINDS[failure.kind]
    if failure.dialect == NAME:
        status = failure.status or status
        if isinstance(failure.details, dict):
            return status, {"error": failure.details | {"message": failure.message}}
        return status, {"error": {"code": status, "message": failure.message, "status": failure.raw_type or word}}
    if failure.dialect is None and failure.status is not None:  # HTTP has a word of its own for it
        status = failure.status
    error: JSONObject = {"code": status, "message": _message(failure), "status": word}
    if details := _encode_details(failure):
        error["details"] = details
    return status, {"error": error}


def _encode_details(failure: Failure) -> list[JSONObject]:
    details: list[JSONObject] = []
    if failure.retry_after is not None:
        details.append({"@type": RETRY_INFO, "retryDelay": f"{failure.retry_after:.9f}".rstrip("0").rstrip(".") + "s"})
    if failure.param is not None:
        violation = {"field": failure.param.removeprefix("$."), "description": failure.message}
        details.append({"@type": _BAD_REQUEST, "fieldViolations": [violation]})
    if failure.request_id is not None:
        details.append({"@type": _REQUEST_INFO, "requestId": failure.request_id})
    return details


def _message(failure: Failure) -> str:
    """Return the message; that of a context overflow in the words that clients of the dialect know (pitfall-123)."""
    if failure.kind != "context_overflow" or "input token count" in failure.message:
        return failure.message
    if failure.tokens is not None and failure.limit is not None:
        exceeds = "exceeds the maximum number of tokens allowed"
        return f"The input token count ({failure.tokens}) {exceeds} ({failure.limit})."
    return f"The input token count exceeds the maximum number of tokens allowed: {failure.message}"

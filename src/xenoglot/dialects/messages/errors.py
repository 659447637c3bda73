"""Encodes and decodes errors.

Source: https://docs.claude.com/en/api/errors, and `anthropic/types/shared/error_type.py` and `_exceptions.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xenoglot.codec.responses.error_text import find_overflow
from xenoglot.dialects.messages.extras import NAME
from xenoglot.model.failure import Failure, FailureKind, kind_of_status

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

KINDS: dict[FailureKind, tuple[int, str]] = {
    "invalid_request": (400, "invalid_request_error"),
    "context_overflow": (400, "invalid_request_error"),
    "unsupported": (400, "invalid_request_error"),
    "authentication": (401, "authentication_error"),
    "billing": (402, "billing_error"),
    "permission": (403, "permission_error"),
    "not_found": (404, "not_found_error"),
    "conflict": (409, "conflict_error"),
    "too_large": (413, "request_too_large"),
    "rate_limit": (429, "rate_limit_error"),
    "cancelled": (499, "api_error"),
    "internal": (500, "api_error"),
    "upstream": (502, "api_error"),
    "timeout": (504, "timeout_error"),
    "overloaded": (529, "overloaded_error"),
}
"""The HTTP status and `error.type` of each kind of failure (pitfall-121)."""

_TYPES: dict[str, FailureKind] = {
    "invalid_request_error": "invalid_request",
    "authentication_error": "authentication",
    "billing_error": "billing",
    "permission_error": "permission",
    "not_found_error": "not_found",
    "conflict_error": "conflict",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limit",
    "timeout_error": "timeout",
    "overloaded_error": "overloaded",
    "memory_precondition_failed_error": "conflict",
    "memory_path_conflict_error": "conflict",
}
"""The kind for each `error.type`; for `api_error` the status decides."""

_WRONG_METHOD = 405

TOO_LONG = "prompt is too long"
"""How the message of a context overflow begins: clients compact when they read it (pitfall-123)."""

_INDEX = re.compile(r"\[(\d+)\]")


def decode_error(status: int, body: JSON) -> Failure:
    """Return the failure in a server's HTTP `status` and `body`: JSON, other text, or `None`."""
    return read_error(body, status)


def read_error(body: JSON, status: int | None = None) -> Failure:
    """Return the failure in `body`; an error inside a stream, or one with the status of an answer, has none."""
    if status is not None and not 400 <= status < 600:  # noqa: PLR2004  RFC 9110 section 15
        status = None
    error = _error_object(body)
    message = _text(error, "message") or _text(error, "detail") or ""
    raw_type, code = _text(error, "type"), _text(error, "code")
    kind = _kind(raw_type, status)
    overflow = None
    if kind in ("invalid_request", "too_large", "internal", "upstream"):
        overflow = find_overflow(message, code, raw_type, tokens=error.get("n_prompt_tokens"), limit=error.get("n_ctx"))
    return Failure(
        kind="context_overflow" if overflow else kind,
        message=message or _nothing_said(status),
        status=status,
        dialect=NAME,
        raw_type=raw_type,
        code=code,
        param=_text(error, "param"),
        tokens=overflow.tokens if overflow else None,
        limit=overflow.limit if overflow else None,
        request_id=_text(body, "request_id"),
        details=error.get("details"),
    )


def broken(message: str) -> Failure:
    """Return the failure of a broken stream that reports no error: the message is ours, not the wire's."""
    return Failure(kind="upstream", message=message)


def _error_object(body: JSON) -> JSONObject:
    """Return the object that holds type and message, at any place where servers put it."""
    if not isinstance(body, dict):
        return {}  # a page or a text of unknown origin: nothing of it is shown
    error = body.get("error")
    if isinstance(error, dict):
        return error
    return {"message": error} if isinstance(error, str) else {key: body[key] for key in body if key != "type"}


def _text(value: JSON, key: str) -> str | None:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def _kind(raw_type: str | None, status: int | None) -> FailureKind:
    if raw_type in _TYPES:
        return _TYPES[raw_type]
    if status is None:
        return "upstream"
    return "not_found" if status == _WRONG_METHOD else kind_of_status(status)


def _nothing_said(status: int | None) -> str:
    return "the upstream failed without a reason" if status is None else f"the upstream answered with status {status}"


def encode_error(failure: Failure) -> tuple[int, JSONObject]:
    """Return the HTTP status and body for `failure`; an error from this dialect keeps its own text."""
    status, error_type = KINDS[failure.kind]
    home = failure.dialect == NAME
    if home:
        error_type = failure.raw_type or error_type
        if failure.kind != "overloaded":  # Claude Code does as `x-should-retry` says at 529, and not at 503 (U38)
            status = failure.status or status
    error: JSONObject = {"type": error_type, "message": _message(failure)}
    if home:
        own = {"code": failure.code, "param": failure.param, "details": failure.details}
        error |= {key: value for key, value in own.items() if value is not None and not _is_path(value)}
    body: JSONObject = {"type": "error", "error": error}
    if failure.request_id is not None:
        body["request_id"] = failure.request_id
    return status, body


def _is_path(value: JSON) -> bool:
    """Whether a `param` is one of our own paths: the dialect has these in the message."""
    return isinstance(value, str) and value.startswith("$")


def _message(failure: Failure) -> str:
    if failure.dialect == NAME:
        return failure.message
    if failure.kind == "context_overflow":
        return _too_long(failure)
    bare = (failure.param or "").removeprefix("$.")
    if bare and failure.message.startswith(bare):
        return _INDEX.sub(r".\1", bare) + failure.message[len(bare) :]
    return failure.message


def _too_long(failure: Failure) -> str:
    if failure.message.startswith(TOO_LONG):
        return failure.message
    if failure.tokens is not None and failure.limit is not None:
        return f"{TOO_LONG}: {failure.tokens} tokens > {failure.limit} maximum"
    return f"{TOO_LONG}: {failure.message}"

"""Encodes and decodes errors in the shapes of the server (`llama_stack/distribution/server/server.py`).

`{"detail": ...}` is what an endpoint raised, `{"error": {"detail": {"errors": [...]}}}` a request that does not fit its
types, `{"error": {"message": ...}}` what stands before the endpoints; the same in a stream begins with the status. What
we write is the `Error` of its published document (`docs/_static/llama-stack-spec.yaml`), whose `detail` is that of the
first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xenoglot.codec.responses.error_text import find_overflow
from xenoglot.dialects.llama_stack.extras import NAME
from xenoglot.model.failure import STATUS, Failure, kind_of_status

if TYPE_CHECKING:
    from xenoglot.model.failure import FailureKind
    from xenoglot.model.json import JSON, JSONObject

_STATUS_FIRST = re.compile(r"(?P<status>[45]\d\d): (?P<message>.*)", re.DOTALL)
"""How an error in a stream reads: the text of an `HTTPException`."""

_NO_MODEL = re.compile(r"Model '.*' not found", re.DOTALL)
"""The router's text for an unknown model, with status 400."""

_LONGEST_TEXT = 500


def decode_error(status: int, body: JSON) -> Failure:
    """Return what an answer of `status` with `body` (JSON, text that is none, or nothing) means as a failure.

    An error inside a stream has no status of its own: there `status` is 200, and that in the text counts.
    """
    known, message = _read(status, body)
    kind = _kind(known, message)
    overflow = find_overflow(message) if kind in ("invalid_request", "too_large", "internal", "upstream") else None
    return Failure(
        kind="context_overflow" if overflow else kind,
        message=message or (f"the server answered with status {known}" if known else "the server failed"),
        status=known,
        dialect=NAME,
        tokens=overflow.tokens if overflow else None,
        limit=overflow.limit if overflow else None,
        details=body if message and isinstance(body, dict) else None,
    )


def encode_error(failure: Failure) -> tuple[int, JSONObject]:
    """Return the status and the body of an error for a client; one of this dialect returns unchanged."""
    own = failure.dialect == NAME
    status = failure.status if own and failure.status is not None else STATUS[failure.kind]
    if own and isinstance(failure.details, dict) and _read(status, failure.details)[1] == failure.message:
        return status, failure.details
    title = failure.kind.replace("_", " ").capitalize()
    return status, {"status": status, "title": title, "detail": _message(failure)}


def encode_stream_error(failure: Failure) -> JSONObject:
    """Return the event that reports a failure inside a stream."""
    status, body = encode_error(failure)
    if isinstance(body.get("error"), dict) and "message" in body["error"] and _is_told(body["error"]["message"]):
        return body
    return {"error": {"message": f"{status}: {_message(failure)}"}}


def _is_told(message: JSON) -> bool:
    return isinstance(message, str) and _STATUS_FIRST.match(message) is not None


def _read(status: int, body: JSON) -> tuple[int | None, str]:
    """Return the status that counts, and the message."""
    message = _said(body)
    if 400 <= status < 600:  # noqa: PLR2004  RFC 9110 section 15
        return status, message
    found = _STATUS_FIRST.match(message)
    return (None, message) if found is None else (int(found["status"]), found["message"])


def _said(value: JSON) -> str:
    """Return the message from any field that has it."""
    match value:
        case str() if len(value) <= _LONGEST_TEXT or not value.lstrip().startswith("<"):
            return value.strip()
        case {"error": inner} | {"detail": inner} | {"errors": inner} if inner is not None:
            return _said(inner)
        case {"message": str() as message}:
            return message
        case {"msg": str() as message}:
            place = value.get("loc")
            return f"{'.'.join(map(str, place))}: {message}" if isinstance(place, list) else message
        case list():
            return "; ".join(filter(None, map(_said, value)))
        case _:
            return ""


def _kind(status: int | None, message: str) -> FailureKind:
    if status is None:
        return "upstream"
    if status == 400 and _NO_MODEL.search(message):  # noqa: PLR2004  as the server has it
        return "not_found"
    return kind_of_status(status)


def _message(failure: Failure) -> str:
    """Return the message; that of a context overflow is worded so that clients know it (pitfall-123)."""
    if failure.kind != "context_overflow" or find_overflow(failure.message):
        return failure.message
    if failure.limit is None:
        return f"The prompt exceeds the model's maximum context length: {failure.message}"
    head = f"This model's maximum context length is {failure.limit} tokens."
    if failure.tokens is None:
        return f"{head} {failure.message}"
    return f"{head} However, your messages resulted in {failure.tokens} tokens."

"""Encodes and decodes errors.

An error is a status and a `message`; the name of its exception is in the header `x-amzn-errortype` or in `__type`, and
begins with a capital there, while in a stream it does not (`AccessDeniedException` and the other shapes with
`"exception": true` in the published model of the API; https://smithy.io/2.0/aws/protocols/aws-restjson1-protocol.html).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.responses.error_text import find_overflow
from xenoglot.dialects.converse.extras import NAME
from xenoglot.model.failure import Failure, FailureKind, kind_of_status

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

KINDS: Final[dict[FailureKind, tuple[int, str]]] = {
    "invalid_request": (400, "ValidationException"),
    "context_overflow": (400, "ValidationException"),
    "unsupported": (400, "ValidationException"),
    "authentication": (403, "UnrecognizedClientException"),
    "billing": (400, "ServiceQuotaExceededException"),
    "permission": (403, "AccessDeniedException"),
    "not_found": (404, "ResourceNotFoundException"),
    "conflict": (400, "ConflictException"),
    "too_large": (413, "ValidationException"),
    "rate_limit": (429, "ThrottlingException"),
    "cancelled": (408, "ModelTimeoutException"),
    "internal": (500, "InternalServerException"),
    "upstream": (502, "InternalServerException"),
    "overloaded": (503, "ServiceUnavailableException"),
    "timeout": (504, "ModelTimeoutException"),
}
"""How each kind of failure is written: the HTTP status and the exception."""

_EXCEPTIONS: Final[dict[str, FailureKind]] = {
    "accessdeniedexception": "permission",
    "conflictexception": "conflict",
    "expiredtokenexception": "authentication",
    "incompletesignatureexception": "authentication",
    "internalserverexception": "internal",
    "invalidsignatureexception": "authentication",
    "missingauthenticationtokenexception": "authentication",
    "modelerrorexception": "upstream",
    "modelnotreadyexception": "overloaded",
    "modelstreamerrorexception": "upstream",
    "modeltimeoutexception": "timeout",
    "requesttimeoutexception": "timeout",
    "resourcenotfoundexception": "not_found",
    "servicequotaexceededexception": "billing",
    "serviceunavailableexception": "overloaded",
    "throttlingexception": "rate_limit",
    "toomanyrequestsexception": "rate_limit",
    "unrecognizedclientexception": "authentication",
    "validationexception": "invalid_request",
}
"""Exceptions of the API, and those of AWS that a refused signature has, in lower case."""

_STREAMED: Final[dict[FailureKind, str]] = {
    "internal": "internalServerException",
    "upstream": "modelStreamErrorException",
    "timeout": "modelStreamErrorException",
    "rate_limit": "throttlingException",
    "overloaded": "serviceUnavailableException",
}
"""The exceptions that a stream can have (`ConverseStreamOutput`); any other failure is a `validationException`."""

_IN_STREAMS: Final = frozenset({*_STREAMED.values(), "validationException"})

_TOO_LONG: Final = "Input is too long for requested model."
"""How the message of a context overflow begins: clients compact when they read it (`ValidationException`)."""


def decode_error(status: int, body: JSON) -> Failure:
    """Return the failure in a server's HTTP `status` and `body`: JSON, other text, or `None`."""
    return read_error(body, status)


def read_error(body: JSON, status: int | None = None, name: str | None = None) -> Failure:
    """Return the failure in `body`; `name` is the exception in a stream, which has no status."""
    if status is not None and not 400 <= status < 600:  # noqa: PLR2004  RFC 9110 section 15
        status = None
    error = body if isinstance(body, dict) else {}
    message = _text(error, "message") or _text(error, "Message") or _text(error, "originalMessage") or ""
    raw_type = _exception(name or _text(error, "__type") or _text(error, "code") or "")
    kind = _EXCEPTIONS.get(raw_type.lower()) or ("upstream" if status is None else kind_of_status(status))
    overflow = find_overflow(message) if kind in ("invalid_request", "too_large", "upstream", "internal") else None
    said = "the server failed" if status is None else f"the server answered with status {status}"
    return Failure(
        kind="context_overflow" if overflow or message.startswith(_TOO_LONG) else kind,
        message=message or said,
        status=status,
        dialect=NAME,
        raw_type=raw_type or None,
        tokens=overflow.tokens if overflow else None,
        limit=overflow.limit if overflow else None,
    )


def _exception(name: str) -> str:
    """Return the name of an exception without the namespace before it and the URL after it."""
    return name.rpartition("#")[2].partition(":")[0]


def _text(value: JSONObject, key: str) -> str | None:
    found = value.get(key)
    return found if isinstance(found, str) and found else None


def broken(message: str) -> Failure:
    """Return the failure of a stream that is at fault without an error of its own."""
    return Failure(kind="upstream", message=message)


def encode_error(failure: Failure) -> tuple[int, JSONObject]:
    """Return the HTTP status and body for `failure`; an error from this dialect keeps its own name."""
    status, name = KINDS[failure.kind]
    if failure.dialect == NAME:
        name = failure.raw_type or name
        status = failure.status or status
    elif failure.dialect is None and failure.status is not None:  # HTTP has a word of its own for it
        status = failure.status
    name = name[:1].upper() + name[1:]
    return status, {"__type": name, "message": _message(failure)}


def encode_streamed(failure: Failure) -> tuple[str, JSONObject]:
    """Return the exception in a stream for `failure`: its name and payload."""
    name = failure.raw_type or "" if failure.dialect == NAME else ""
    name = name[:1].lower() + name[1:]
    if name not in _IN_STREAMS:
        name = _STREAMED.get(failure.kind, "validationException")
    return name, {"message": _message(failure)}


def _message(failure: Failure) -> str:
    if failure.dialect == NAME or failure.kind != "context_overflow":
        return failure.message
    return failure.message if failure.message.startswith(_TOO_LONG) else f"{_TOO_LONG} {failure.message}"

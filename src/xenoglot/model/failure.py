"""A failure as a value: kind, message and retry hints, which every dialect can write."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from xenoglot.model.json import JSON
from xenoglot.model.short_repr import short_repr

FailureKind: TypeAlias = Literal[
    "invalid_request",
    "context_overflow",
    "authentication",
    "billing",
    "permission",
    "not_found",
    "conflict",
    "too_large",
    "unsupported",
    "rate_limit",
    "cancelled",
    "internal",
    "upstream",
    "overloaded",
    "timeout",
]

FailureCause: TypeAlias = Literal[
    "connect", "tls", "timeout", "protocol", "closed", "too_large", "credentials", "forbidden", "garbled", "exhausted"
]
"""What was to blame where a server did not answer in its own words: the way to it, our key for it, or its bytes;
`exhausted` is our own machine, which can open no more files."""

STATUS: dict[FailureKind, int] = {
    "invalid_request": 400,
    "context_overflow": 400,
    "authentication": 401,
    "billing": 402,
    "permission": 403,
    "not_found": 404,
    "conflict": 409,
    "too_large": 413,
    "unsupported": 400,
    "rate_limit": 429,
    "cancelled": 499,
    "internal": 500,
    "upstream": 502,
    "overloaded": 503,
    "timeout": 504,
}
"""The HTTP status of each kind, unless the dialect has its own (RFC 9110 section 15)."""


KINDS: dict[int, FailureKind] = {
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    425: "overloaded",  # RFC 8470 section 5.2: not now, but later
    429: "rate_limit",
    499: "cancelled",
    500: "internal",
    501: "unsupported",
    502: "upstream",
    503: "overloaded",
    504: "timeout",
    524: "timeout",  # Cloudflare's, of a server that does not answer
    529: "overloaded",  # Anthropic's
}
"""Kinds by status alone."""

_SERVER_ERROR = 500


def kind_of_status(status: int) -> FailureKind:
    """Return the kind of a status of 400 and above (RFC 9110 section 15.5 and 15.6)."""
    return KINDS.get(status) or ("upstream" if status >= _SERVER_ERROR else "invalid_request")


class Failure(Struct, frozen=True, kw_only=True):
    """Why there is no (whole) answer.

    `message` is for a person and safe to show. `status` is the upstream's HTTP status, where there was one. `raw_type`
    and `code` are the words of `dialect`, kept for the same dialect. `param` is the path of the field at fault.
    `retry_after` is in seconds. `tokens` and `limit` belong to a context overflow. `details` is the dialect's own
    machine-readable part. `non_retryable`: the same request would fail again, which the kind alone does not show.
    `cause` and `not_sent` (no server can have started work on the request) are for the retry policy. `operator_message`
    names the server (URL, status, cause, remedy): for logs and for users of the client, never for a gateway's clients.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    dialect: str | None = None
    raw_type: str | None = None
    code: str | None = None
    param: str | None = None
    retry_after: float | None = None
    tokens: int | None = None
    limit: int | None = None
    request_id: str | None = None
    details: JSON = None
    non_retryable: bool = False
    cause: FailureCause | None = None
    not_sent: bool = False
    operator_message: str | None = None

    __repr__ = short_repr

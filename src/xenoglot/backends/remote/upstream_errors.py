"""Failures for unreachable servers and unreadable responses, as clients and policy see them. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.model.failure import Failure, FailureCause, FailureKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xenoglot.backends.http.client import TransportError
    from xenoglot.backends.redaction import Redactor
    from xenoglot.errors import WireError
    from xenoglot.model.json import JSON

FORBIDDEN = 403
SERVER_ERROR = 500

_CREDENTIALS = ("authentication", "permission")
_REFUSING = (401, FORBIDDEN)
_SERVER_FAULTS = ("upstream", "internal", "timeout")
_TEXT_FIELDS = ("message", "raw_type", "code", "param", "details")

_PLACE = re.compile(r"[/\\@]|[0-9]\.[0-9]|localhost")

_KINDS: Mapping[str, FailureKind] = {
    "connect": "upstream",
    "tls": "upstream",
    "timeout": "timeout",
    "protocol": "upstream",
    "closed": "upstream",
    "too_large": "upstream",
    "exhausted": "internal",
}
_MESSAGES: Mapping[str, str] = {
    "connect": "connection error: the upstream cannot be reached",
    "tls": "the upstream's certificate or TLS handshake was refused",
    "timeout": "connection timed out: the upstream did not answer in time",
    "protocol": "the upstream's answer is not lawful HTTP",
    "closed": "connection lost: the upstream closed it",
    "too_large": "the upstream's answer is larger than allowed",
    "exhausted": "server error: too many files are open here to connect to the upstream; retry later",
}


def unreachable(error: TransportError) -> Failure:
    """Return the failure of a request to which no whole answer came.

    A server to which no connection comes up in time is as absent as one that refuses it (U02).
    """
    kind = "connect" if error.stage == "connect" and error.kind == "timeout" else error.kind
    return Failure(kind=_KINDS[kind], message=_MESSAGES[kind], cause=kind, not_sent=not error.sent)


def invalid_answer(error: WireError) -> Failure:
    """Return the failure of an answer that is not what its dialect allows."""
    return Failure(
        kind="upstream", message=f"server error: the upstream's answer was not understood: {error}", cause="garbled"
    )


def has_no_endpoint(failure: Failure) -> bool:
    """Return whether a server that failed so is taken not to have what was asked for: it was there, and spoke."""
    if failure.kind == "upstream":
        return failure.cause in (None, "protocol", "garbled")
    return failure.kind in ("not_found", "unsupported")


def for_client(failure: Failure, redact: Redactor) -> Failure:
    """Return what the client may know of a failure that the server told in its own words."""
    if failure.dialect is None:
        return failure
    if failure.kind in _CREDENTIALS or failure.status in _REFUSING:
        # The client's own key is fine: it must not be told otherwise (U40).
        forbidden = failure.kind == "permission" or failure.status == FORBIDDEN
        cause: FailureCause = "forbidden" if forbidden else "credentials"
        return Failure(kind="upstream", message="the upstream refused the gateway's credentials", cause=cause)
    told = redacted(failure, redact)
    crowded = failure.kind == "overloaded" and not all(map(_is_plain, _texts([told.message, told.details])))
    if failure.kind in _SERVER_FAULTS or crowded:  # their texts can hold anything: paths, hosts, traces (R32)
        said = "" if failure.status in (None, SERVER_ERROR) else f" (status {failure.status})"
        return replace(told, message=f"server error: the upstream failed{said}", details=None)
    return told


def redacted(failure: Failure, redact: Redactor) -> Failure:
    """Return the failure without the secrets that its words may repeat."""
    return replace(failure, **{name: redact.json(getattr(failure, name)) for name in _TEXT_FIELDS})


def _texts(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])


def _is_plain(text: str) -> bool:
    """Whether a text has nothing in it that could be a path or an address."""
    return _PLACE.search(text) is None

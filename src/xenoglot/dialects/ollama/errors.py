"""Encodes and decodes errors: one sentence, with a status, or as the last line of a stream.

Source: `docs/api/errors.mdx`, and what `server/routes.go` answers with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.responses.error_text import find_overflow
from xenoglot.dialects.ollama.extras import FAMILY
from xenoglot.model.failure import STATUS, Failure, kind_of_status

if TYPE_CHECKING:
    from xenoglot.model.failure import FailureKind
    from xenoglot.model.json import JSON, JSONObject

_NO_SUCH_ROUTE = 405
"""What Ollama answers where nothing is served."""

_MAY_OVERFLOW = frozenset({"invalid_request", "too_large", "internal", "upstream"})

OVERFLOW = "the input length exceeds the context length"
"""The server's text for it (`server/routes.go`)."""

_LONGEST_TEXT = 500


def decode_error(status: int, body: JSON) -> Failure:
    """Return what an answer of `status` with `body` (JSON, text that is none, or nothing) means as a failure.

    An error inside a stream has no status of its own: there `status` is 200.
    """
    known = status if 400 <= status < 600 else None  # noqa: PLR2004  RFC 9110 section 15
    said = _sentence(body)
    kind = _kind(known)
    overflow = find_overflow(said) if kind in _MAY_OVERFLOW else None
    own = isinstance(body, dict) and isinstance(body.get("error"), str) and len(body) > 1
    return Failure(
        kind="context_overflow" if overflow else kind,
        message=said or (f"the server answered with status {known}" if known else "the server failed"),
        status=known,
        dialect=FAMILY,
        tokens=overflow.tokens if overflow else None,
        limit=overflow.limit if overflow else None,
        details={key: value for key, value in body.items() if key != "error"} if own else None,
    )


def encode_error(failure: Failure) -> tuple[int, JSONObject]:
    """Return the status and the body of an error for a client; our own returns unchanged."""
    status, details = STATUS[failure.kind], {}
    if failure.dialect == FAMILY:
        status = failure.status or status
        details = failure.details if isinstance(failure.details, dict) else {}
    message = failure.message
    if failure.kind == "context_overflow" and find_overflow(message) is None:
        message = f"{OVERFLOW}: {message}"
    return status, {"error": message or "the server failed", **details}  # an empty `error` is none to clients


def _sentence(body: JSON) -> str:
    """Return the sentence from any field in which a server or a proxy puts it; a page gives none."""
    if isinstance(body, dict):
        inner = body.get("error", body.get("message"))
        return _sentence(inner) if isinstance(inner, str | dict) else ""
    if isinstance(body, str) and len(body) <= _LONGEST_TEXT and not body.lstrip().startswith("<"):
        return body.strip()
    return ""


def _kind(status: int | None) -> FailureKind:
    if status is None:
        return "upstream"
    return "not_found" if status == _NO_SUCH_ROUTE else kind_of_status(status)

"""Errors inside an answer: its `error` object, and the `error` event of a stream.

Around an answer the errors are those of the family (`dialects/openai/errors.py`). Inside there is a code and a message
(`openai/types/responses/response_error.py`), and the code decides what a client does: Codex compacts its history after
`context_length_exceeded`, waits after `rate_limit_exceeded` for as long as the message states, and gives up after
`insufficient_quota` and `invalid_prompt` (`codex-rs/codex-api/src/sse/responses.rs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.dialects.openai import errors as family
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.model.failure import FailureKind
    from xenoglot.model.json import JSON, JSONObject

_REFUSED = "invalid_prompt"
_CODES: dict[str, FailureKind] = {
    "server_error": "internal",
    _REFUSED: "invalid_request",
    "cyber_policy": "permission",
    "usage_not_included": "billing",
}
"""The kind of each code inside an answer, apart from those of the family; codes of images all blame the request."""

_REFUSALS: frozenset[FailureKind] = frozenset({"invalid_request", "not_found", "too_large", "unsupported"})
"""The kinds that have one code inside an answer, with the family's code as `type`.

Codex retries after every code that it does not know, and these requests fail again.
"""

_FINAL: frozenset[FailureKind] = _REFUSALS | {"context_overflow"}
"""The kinds of failures after which it is of no use to wait."""

_OK = 200
_TOLD = {"code", "message"}
"""What an error inside an answer has."""

WAIT = "try again in"
"""The words before the time to wait in a message."""


def broken(message: str) -> Failure:
    """Return the failure of a stream that is no answer."""
    return Failure(kind="upstream", message=message)


def decode_error(status: int, body: JSON) -> Failure:
    """Return the failure in a server's HTTP `status` and `body`; an answer may be one that failed."""
    return read_failure(body) if status == _OK else family.decode_error(status, body)


def read_failure(body: JSON) -> Failure:
    """Return why an answer failed, or what an `error` event reports."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        error = body if isinstance(body, dict) else {}
    said = {key: value for key, value in error.items() if key != "type" or value != "error"}
    failure = family.decode_error(200, {"error": said})
    if said.keys() <= _TOLD:  # around an answer there are more fields in it, which clients of the family look for
        failure = replace(failure, details=None)
    code = failure.code or ""
    kind = "invalid_request" if "image" in code else _CODES.get(code)
    if code == _REFUSED and "type" in said:
        typed = family.decode_error(200, {"error": said | {"code": said["type"]}}).kind
        kind = typed if typed in _REFUSALS else kind
    return replace(failure, kind=kind) if kind is not None and failure.kind == "upstream" else failure


def encode_failure(failure: Failure) -> JSONObject:
    """Return the `error` object of an answer that failed; a server's own returns unchanged."""
    own = failure.dialect == family.FAMILY
    if own and isinstance(failure.details, dict) and isinstance(failure.details.get("code"), str):
        return failure.details | {"message": failure.message}
    if own and failure.code is not None and failure.details is None and _means(failure.code, failure):
        return {"code": failure.code, "message": failure.message}
    error = family.encode_error(replace(failure, details=None))[1]["error"]
    code = failure.code if own and failure.code is not None and _means(failure.code, failure) else error["code"]
    message = _message(failure, error["message"])
    if failure.kind in _REFUSALS:
        return {"code": _REFUSED, "message": message} | ({} if code is None else {"type": code})
    return {"code": code or "server_error", "message": message}


def _means(code: str, failure: Failure) -> bool:
    """Whether `code` alone identifies the kind of `failure`."""
    return read_failure({"error": {"code": code, "message": failure.message}}).kind == failure.kind


def _message(failure: Failure, message: str) -> str:
    if failure.retry_after is None or failure.kind in _FINAL or WAIT in message:
        return message
    return f"{message} Please {WAIT} {failure.retry_after:g}s."

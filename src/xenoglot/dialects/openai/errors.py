"""Encodes and decodes errors, in the shapes and texts that servers of these dialects use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.responses.error_text import find_overflow, retry_delay
from xenoglot.model.failure import KINDS, Failure, kind_of_status

if TYPE_CHECKING:
    from xenoglot.model.failure import FailureKind
    from xenoglot.model.json import JSON, JSONObject

FAMILY = "openai"
"""Whose words a `Failure` has: an error of one of these dialects is one of all of them."""

WORDS: dict[FailureKind, tuple[int, str, str | None]] = {
    "invalid_request": (400, "invalid_request_error", None),
    "context_overflow": (400, "invalid_request_error", "context_length_exceeded"),
    "authentication": (401, "authentication_error", "invalid_api_key"),
    "billing": (402, "insufficient_quota", "insufficient_quota"),
    "permission": (403, "permission_error", "permission_denied"),
    "not_found": (404, "invalid_request_error", "not_found"),
    "conflict": (409, "invalid_request_error", "conflict"),
    "too_large": (413, "invalid_request_error", "request_too_large"),
    "unsupported": (400, "invalid_request_error", "unsupported_parameter"),
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded"),
    "cancelled": (499, "server_error", "request_cancelled"),
    "internal": (500, "server_error", "internal_error"),
    "upstream": (502, "server_error", "upstream_error"),
    "overloaded": (503, "server_error", "service_unavailable"),
    "timeout": (504, "server_error", "timeout"),
}
"""Status, type and code of each kind (https://developers.openai.com/api/docs/guides/error-codes, and our own words)."""

QUOTA = "insufficient_quota"
"""Type and code of a refusal for money, also with status 429 (https://developers.openai.com/api/docs/guides/error-codes)."""

_CODES: dict[str, FailureKind] = {
    **{code: kind for kind, (_, _, code) in WORDS.items() if code is not None},
    "model_not_found": "not_found",
    "invalid_model": "not_found",
    "incorrect_api_key_provided": "authentication",
    "billing_hard_limit_reached": "billing",
    "billing_not_active": "billing",
    "exceeded_current_quota_error": "billing",
    "unsupported_value": "unsupported",
    "string_above_max_length": "too_large",
    "slow_down": "rate_limit",
    "server_is_overloaded": "overloaded",  # after it Codex gives up, so it is not our word
}
"""The failure that a code means by itself."""

_TYPES: dict[str, FailureKind] = {
    "authentication_error": "authentication",
    "permission_error": "permission",
    "permission_denied_error": "permission",
    "not_found_error": "not_found",
    "notfounderror": "not_found",
    "rate_limit_error": "rate_limit",
    "ratelimiterror": "rate_limit",
    "insufficient_quota": "billing",
    "billing_error": "billing",
    "overloaded_error": "overloaded",
    "unavailable_error": "overloaded",
    "service_unavailable_error": "overloaded",
    "timeout_error": "timeout",
    "not_supported_error": "unsupported",
}

_VAGUE_TYPES: dict[str, FailureKind] = {"server_error": "internal", "internalservererror": "internal"}
"""Types that are less precise than the status they come with: OpenAI's 503 is a `server_error` too."""

_NEVER_OVERFLOW: frozenset[FailureKind] = frozenset({"rate_limit", "authentication", "permission", "billing"})
"""Kinds of errors in which the words of an overflow mean something else, such as tokens per minute."""

_LONGEST_TEXT = 500


def decode_error(status: int, body: JSON) -> Failure:
    """Return what an answer of `status` with `body` (JSON, text that is none, or nothing) means as a failure.

    An error inside a stream has no status of its own: there `status` is 200, and a number in `code` counts instead.
    """
    error = _error_object(body)
    said = _text(error, "message") or _detail(error)
    code, word = _text(error, "code"), _text(error, "type") or _text(error, "status")
    if not _is_error(status):
        number = error.get("code")
        status = number if type(number) is int and _is_error(number) else 0
    overflow = find_overflow(
        f"{said} {_raw(error)}", code, word, tokens=error.get("n_prompt_tokens"), limit=error.get("n_ctx")
    )
    kind = _kind(status, code or "", word or "")
    if overflow is not None and kind not in _NEVER_OVERFLOW:
        kind = "context_overflow"
    return Failure(
        kind=kind,
        message=said or (f"the server answered with status {status}" if status else "the server failed"),
        status=status or None,
        dialect=FAMILY,
        raw_type=_text(error, "type"),
        code=code,
        param=_text(error, "param"),
        retry_after=retry_delay(error.get("details")),
        tokens=None if overflow is None else overflow.tokens,
        limit=None if overflow is None else overflow.limit,
        details=error if said and isinstance(body, dict) and body.get("error") is error else None,
    )


def encode_error(failure: Failure) -> tuple[int, JSONObject]:
    """Return the status and the body of an error for a client; an error object of the family returns unchanged."""
    status, word, code = WORDS[failure.kind]
    own = failure.dialect == FAMILY
    if own and failure.status is not None:
        status = failure.status
    if own and isinstance(failure.details, dict):
        return status, {"error": failure.details | {"message": failure.message}}
    if failure.kind == "not_found" and (failure.param or "").endswith("model"):
        code = "model_not_found"
    if failure.kind == "rate_limit" and failure.code == QUOTA:
        word = code = QUOTA
    param = None if failure.param is None else failure.param.removeprefix("$.")
    return status, {"error": {"message": _message(failure), "type": word, "param": param, "code": code}}


def _error_object(body: JSON) -> JSONObject:
    """Return the error in whichever shape it came: an object, a text, a list of one (Gemini), or without a wrapper."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict):
        inner = body.get("error", body)
        return inner if isinstance(inner, dict) else _error_object(inner)
    if isinstance(body, str) and 0 < len(body) <= _LONGEST_TEXT and not body.lstrip().startswith("<"):
        return {"message": body.strip()}
    return {}


def _text(error: JSONObject, key: str) -> str | None:
    value = error.get(key)
    return value if isinstance(value, str) and value else None


def _detail(error: JSONObject) -> str:
    """Return FastAPI's `detail`: a text, or a list of what is wrong where."""
    detail = error.get("detail")
    if isinstance(detail, str):
        return detail
    items = [item for item in detail if isinstance(item, dict)] if isinstance(detail, list) else []
    return "; ".join(f"{_place(item)}{item['msg']}" for item in items if isinstance(item.get("msg"), str))


def _place(item: JSONObject) -> str:
    place = item.get("loc")
    return f"{'.'.join(map(str, place))}: " if isinstance(place, list) else ""


def _raw(error: JSONObject) -> str:
    """Return the text of the server that OpenRouter called."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return raw if isinstance(raw, str) else ""


def _is_error(status: int) -> bool:
    return 400 <= status < 600  # noqa: PLR2004  RFC 9110 section 15


def _kind(status: int, code: str, word: str) -> FailureKind:
    word = word.lower()
    kind = _CODES.get(code) or _TYPES.get(word) or KINDS.get(status) or _VAGUE_TYPES.get(word)
    if kind is not None:
        return kind
    if status:
        return kind_of_status(status)
    return "invalid_request" if word in ("invalid_request_error", "badrequesterror") else "upstream"


def _message(failure: Failure) -> str:
    """Return the message; that of a context overflow is worded so that clients compact their history (pitfall-123)."""
    if failure.kind != "context_overflow" or "maximum context length" in failure.message:
        return failure.message
    if failure.limit is None:
        return f"The request exceeds the model's maximum context length: {failure.message}"
    head = f"This model's maximum context length is {failure.limit} tokens."
    if failure.tokens is None:
        return f"{head} {failure.message}"
    return f"{head} However, your messages resulted in {failure.tokens} tokens."

"""OpenAI's files and batches. Source: `file_object.py`, `batch.py` in `openai/types`, and their `_params.py`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xenoglot.codec.features.batch import (
    BatchCodec,
    BatchFiles,
    BatchRequest,
    FileCodec,
    FileListQuery,
    FileUpload,
    StoredFile,
)
from xenoglot.codec.features.file_query import id_of, last_of, page_limit
from xenoglot.codec.reader import Reader, expected
from xenoglot.dialects.openai.shared import encode_page, refusal
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.features.batch import Batch
    from xenoglot.model.failure import Failure
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.response import Usage


SHORTEST, LONGEST = 3_600, 2_592_000
"""Seconds after which a file may expire."""

OUTPUT = "batch_output"


USUAL_PAGE, LONGEST_PAGE = 1_000, 10_000
"""Files in a page of a list."""

LONGEST_PURPOSE = 64
_MADE = frozenset({OUTPUT, "assistants_output", "fine-tune-results"})
"""Purposes of files that a server makes."""


def encode_file(file: StoredFile, base: str) -> JSONObject:  # noqa: ARG001  the record's form
    """Return the metadata of a file."""
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.size,
        "created_at": int(file.created),
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
        "expires_at": None if file.expires is None else int(file.expires),
        "status_details": None,
    }


def decode_lifetime(value: JSON, path: str) -> float | None:
    """Return the seconds in `{"anchor": "created_at", "seconds": N}`; `None` if not set.

    Raises:
        WireError: it has another form.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise expected(path, "object", value)
    if value.get("anchor") != "created_at":
        raise WireError(f"{path}.anchor", "expected `created_at`")
    seconds = value.get("seconds")
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not SHORTEST <= seconds <= LONGEST:
        raise WireError(f"{path}.seconds", f"expected {SHORTEST} to {LONGEST}")
    return float(seconds)


def decode_query(query: Mapping[str, Sequence[str]]) -> FileListQuery:
    """Return the page of files that a query asks for (`file_list_params.py`).

    Raises:
        WireError: a parameter is not allowed.
    """
    order, purpose = last_of(query, "order") or "desc", last_of(query, "purpose")
    if order not in ("asc", "desc"):
        raise WireError("$.order", "expected `asc` or `desc`")
    if purpose is not None and not purpose.isprintable():
        raise WireError("$.purpose", "expected a word such as `batch`")
    return FileListQuery(
        limit=page_limit(query, "limit", USUAL_PAGE, LONGEST_PAGE),
        after=id_of(query, "after"),
        purpose=purpose,
        ascending=order == "asc",
    )


def decode_upload(fields: Mapping[str, str]) -> FileUpload:
    """Return the purpose and the lifetime of an uploaded file (`file_create_params.py`).

    Raises:
        WireError: a field is missing, or not allowed.
    """
    if "expires_after" in fields:
        raise WireError("$.expires_after", "spell its members out, as in `expires_after[seconds]`")
    anchor, seconds = fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]")
    lifetime: JSON = None
    if anchor is not None or seconds is not None:
        number = int(seconds) if seconds is not None and seconds.isascii() and seconds.isdecimal() else None
        lifetime = {"anchor": anchor, "seconds": number}
    return FileUpload(
        purpose=check_purpose(fields.get("purpose", "")), seconds=decode_lifetime(lifetime, "$.expires_after")
    )


def check_purpose(purpose: str) -> str:
    """Return `purpose` if a client may upload a file for it.

    Raises:
        WireError: it may not.
    """
    if not 0 < len(purpose) <= LONGEST_PURPOSE or not purpose.isprintable():
        raise WireError("$.purpose", "required, expected a word such as `batch`")
    if purpose in _MADE:
        raise WireError("$.purpose", f"`{purpose}` is for what comes of others")
    return purpose


def _deleted(name: str) -> JSONObject:
    return {"id": name, "object": "file", "deleted": True}


def _unknown_file(name: str) -> Failure:
    return refusal("not_found", f"No such File object: {name}", param="id")


def _not_input(name: str) -> Failure:
    message = f"`{name}` cannot be the input of a batch: upload a file with the purpose `batch`"
    return refusal("invalid_request", message, param="input_file_id", code="invalid_file")


FILES = FileCodec(
    show=encode_file,
    decode_query=decode_query,
    decode_upload=decode_upload,
    page=encode_page,
    deleted=_deleted,
    unknown=_unknown_file,
)

BATCH_FILES = BatchFiles(input_purpose="batch", output_purpose=OUTPUT, not_input=_not_input)


MOST_LABELS, LONGEST_LABEL, LONGEST_VALUE = 16, 64, 512
LONGEST_HOURS = 168
HOUR = 3_600.0

_WINDOW = re.compile(r"([1-9][0-9]{0,2})h")
_MOMENTS = {
    "in_progress": "in_progress_at",
    "finalizing": "finalizing_at",
    "completed": "completed_at",
    "failed": "failed_at",
    "expired": "expired_at",
    "cancelled": "cancelled_at",
}


def decode_batch(body: JSON) -> BatchRequest:
    """Return the batch that a client requests.

    Raises:
        WireError: it asks for none.
    """
    said = Reader(body)
    source, endpoint = said.need("input_file_id", str), said.need("endpoint", str)
    window = said.need("completion_window", str)
    found = _WINDOW.fullmatch(window)
    hours = 0 if found is None else int(found[1])
    if not 1 <= hours <= LONGEST_HOURS:
        raise WireError("$.completion_window", f"expected hours, as in `24h`, up to `{LONGEST_HOURS}h`")
    asked: JSONObject = {"input_file_id": source, "completion_window": window, "metadata": _labels(said)}
    lifetime = decode_lifetime(said.take_any("output_expires_after"), "$.output_expires_after")
    if lifetime is not None:
        asked["output_seconds"] = lifetime
    return BatchRequest(endpoint=endpoint, asked=asked, seconds=hours * HOUR, input=source)


def _labels(said: Reader) -> JSON:
    labels = said.take("metadata", dict)
    if labels is None:
        return None
    if len(labels) > MOST_LABELS:
        raise WireError("$.metadata", f"expected at most {MOST_LABELS} pairs, got {len(labels)}")
    for key, value in labels.items():
        if len(key) > LONGEST_LABEL:
            raise WireError("$.metadata", f"a key is longer than {LONGEST_LABEL} characters")
        if not isinstance(value, str):
            raise expected("$.metadata", "texts", value)
        if len(value) > LONGEST_VALUE:
            raise WireError("$.metadata", f"a value is longer than {LONGEST_VALUE} characters")
    return labels


def encode_batch(batch: Batch) -> JSONObject:
    """Return a batch as clients see it."""
    moments = {field: _second(batch.moments.get(phase)) for phase, field in _MOMENTS.items()}
    cancelling = batch.cancelled is not None and not batch.over
    mistakes = [
        {"code": one.code, "line": one.line, "message": one.message, "param": one.param} for one in batch.mistakes
    ]
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "errors": {"object": "list", "data": mistakes} if mistakes else None,
        "input_file_id": batch.asked["input_file_id"],
        "completion_window": batch.asked["completion_window"],
        "status": "cancelling" if cancelling else batch.phase,
        "output_file_id": batch.files.get("output"),
        "error_file_id": batch.files.get("errors"),
        "created_at": int(batch.created),
        "expires_at": int(batch.deadline),
        **moments,
        "cancelling_at": _second(batch.cancelled),
        "request_counts": {"total": batch.total, "completed": batch.succeeded, "failed": batch.errored},
        "usage": _usage(batch.usage),
        "metadata": batch.asked["metadata"],
    }


def _usage(used: Usage) -> JSONObject | None:
    """Return what was used, as far as it was reported (`openai/types/batch_usage.py`)."""
    if used.input_tokens is None and used.output_tokens is None:
        return None
    given, made = used.input_tokens or 0, used.output_tokens or 0
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": used.cache_read or 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": used.reasoning or 0},
        "total_tokens": given + made,
    }


def _second(moment: float | None) -> int | None:
    return None if moment is None else int(moment)


def _unknown(name: str) -> Failure:
    return refusal("not_found", f"No batch found with id '{name}'.", param="batch_id")


def _not_over() -> Failure:
    return refusal("invalid_request", "the batch is not over")


def _over(batch: Batch) -> Failure:
    message = f"Cannot cancel a batch with status '{batch.phase}'."
    return refusal("invalid_request", message, param="status", code="invalid_batch_status")


WORDS = BatchCodec(
    id_prefix="batch_",
    decode=decode_batch,
    show=encode_batch,
    page=encode_page,
    unknown=_unknown,
    not_over=_not_over,
    over=_over,
)

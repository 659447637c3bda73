"""OpenAI's files. Source: `openai/types/file_object.py`, `openai/types/file_create_params.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.features.batch import FileCodec, StoredFile
from xenoglot.codec.reader import expected
from xenoglot.dialects.openai.stored import encode_page, refusal
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from xenoglot.model.failure import Failure
    from xenoglot.model.json import JSON, JSONObject

SHORTEST, LONGEST = 3_600, 2_592_000
"""Seconds after which a file may be told to go."""

OUTPUT = "batch_output"


def encode_file(file: StoredFile) -> JSONObject:
    """Return what is told of a file."""
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
    """Return the seconds in `{"anchor": "created_at", "seconds": N}`; `None` if nothing is said.

    Raises:
        WireError: it says something else.
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


def _deleted(name: str) -> JSONObject:
    return {"id": name, "object": "file", "deleted": True}


def _unknown(name: str) -> Failure:
    return refusal("not_found", f"No such File object: {name}", param="id")


def _not_input(name: str) -> Failure:
    message = f"`{name}` cannot be the input of a batch: upload a file with the purpose `batch`"
    return refusal("invalid_request", message, param="input_file_id", code="invalid_file")


WORDS = FileCodec(
    id_prefix="file-",
    input_purpose="batch",
    output_purpose=OUTPUT,
    made=frozenset({OUTPUT, "assistants_output", "fine-tune-results"}),
    show=encode_file,
    page=encode_page,
    deleted=_deleted,
    unknown=_unknown,
    not_input=_not_input,
    lifetime=decode_lifetime,
)

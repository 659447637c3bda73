"""OpenAI's uploads: a file in parts. Source: `upload.py`, `upload_create_params.py`, `uploads/upload_part.py`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.batch import UploadCodec, UploadCompletion, UploadRequest
from xenoglot.codec.features.file_query import check_id
from xenoglot.codec.reader import Reader, expected
from xenoglot.dialects.openai.batches import check_purpose, decode_lifetime
from xenoglot.dialects.openai.shared import refusal
from xenoglot.errors import WireError

if TYPE_CHECKING:
    from xenoglot.codec.features.batch import StoredFile
    from xenoglot.model.failure import Failure
    from xenoglot.model.json import JSON, JSONObject

SECONDS: Final = 3_600
"""After so many seconds an upload expires."""

MOST_PARTS: Final = 4_096
_MD5: Final = re.compile(r"[0-9a-fA-F]{32}")


def decode_upload(body: JSON) -> UploadRequest:
    """Return a request to create an upload.

    Raises:
        WireError: it is none.
    """
    reader = Reader(body)
    size = reader.need("bytes", int)
    if size < 1:
        raise WireError("$.bytes", "expected at least 1")
    return UploadRequest(
        name=reader.need("filename", str),
        media_type=reader.need("mime_type", str),
        purpose=check_purpose(reader.need("purpose", str)),
        size=size,
        seconds=decode_lifetime(reader.take_any("expires_after"), "$.expires_after"),
    )


def decode_completion(body: JSON) -> UploadCompletion:
    """Return a request to complete an upload.

    Raises:
        WireError: it is none.
    """
    reader = Reader(body)
    parts, md5 = reader.need("part_ids", list), reader.take("md5", str)
    for index, part in enumerate(parts):
        if not isinstance(part, str):
            raise expected(f"$.part_ids[{index}]", "str", part)
        check_id(part, f"$.part_ids[{index}]")
    if not 0 < len(parts) <= MOST_PARTS or len(set(parts)) != len(parts):
        raise WireError("$.part_ids", f"expected 1 to {MOST_PARTS} ids, each once")
    if md5 is not None and _MD5.fullmatch(md5) is None:
        raise WireError("$.md5", "expected 32 hexadecimal digits")
    return UploadCompletion(parts=tuple(parts), md5=md5)


def encode_upload(upload: StoredFile, status: str, file: JSONObject | None) -> JSONObject:
    """Return an upload, with its file once it is complete."""
    return {
        "id": upload.id,
        "object": "upload",
        "bytes": upload.size,
        "created_at": int(upload.created),
        "filename": upload.name,
        "purpose": upload.purpose,
        "status": status,
        "expires_at": int(upload.created) + SECONDS,
        "file": file,
    }


def encode_part(part: StoredFile, upload: str) -> JSONObject:
    """Return a part of an upload."""
    return {"id": part.id, "object": "upload.part", "created_at": int(part.created), "upload_id": upload}


def _unknown(name: str) -> Failure:
    return refusal("not_found", f"No upload or part found with id '{name}'.", param="upload_id")


UPLOADS = UploadCodec(
    id_prefix="upload_",
    part_prefix="part_",
    part_field="data",
    decode=decode_upload,
    decode_completion=decode_completion,
    show=encode_upload,
    show_part=encode_part,
    unknown=_unknown,
)

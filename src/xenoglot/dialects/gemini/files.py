"""Google's Files API: files, their lists, and resumable uploads.

Source: https://ai.google.dev/api/files, `google/genai/files.py` and `_upload_fd` in `google/genai/_api_client.py`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.batch import (
    UNTYPED,
    UPLOADED,
    FileCodec,
    FileListQuery,
    FileUpload,
    ResumableCodec,
    UploadRequest,
    UploadStep,
)
from xenoglot.codec.features.file_query import id_of, page_limit
from xenoglot.codec.reader import Reader
from xenoglot.dialects.gemini.extras import NAME
from xenoglot.errors import WireError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.features.batch import StoredFile
    from xenoglot.model.json import JSON, JSONObject

PATH: Final = "/v1beta/files"
NAMES: Final = "files/"
"""Begins the name of a file."""

USUAL_PAGE, LONGEST_PAGE = 10, 100
LONGEST_NUMBER: Final = 15

COMMAND: Final = "x-goog-upload-command"
OFFSET: Final = "x-goog-upload-offset"
SIZE: Final = "x-goog-upload-header-content-length"
MEDIA_TYPE: Final = "x-goog-upload-header-content-type"
FILE_NAME: Final = "x-goog-upload-file-name"
_COMMANDS: Final = frozenset({"upload", "finalize", "query", "cancel"})


def encode_file(file: StoredFile, base: str) -> JSONObject:
    """Return a file; its URI is one of the gateway at `base`."""
    created = _time(file.created)
    shown: JSONObject = {
        "name": f"{NAMES}{file.id}",
        "displayName": file.name,
        "mimeType": file.media_type or UNTYPED,
        "sizeBytes": str(file.size),
        "createTime": created,
        "updateTime": created,
        "uri": f"{base}{PATH}/{file.id}",
        "state": "ACTIVE",
        "source": "UPLOADED",
    }
    if file.expires is not None:
        shown["expirationTime"] = _time(file.expires)
    return shown


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def decode_query(query: Mapping[str, Sequence[str]]) -> FileListQuery:
    """Return the page of files that a query asks for; the token of a page is the id before it.

    Raises:
        WireError: a parameter is not allowed.
    """
    limit = page_limit(query, "pageSize", USUAL_PAGE, LONGEST_PAGE)
    token = id_of(query, "pageToken") if query.get("pageToken", ("",))[-1] else None
    return FileListQuery(limit=limit, after=token)


def encode_page(items: Sequence[JSONObject], has_more: bool) -> JSONObject:  # noqa: FBT001  as the record has it
    """Return a page of a list."""
    page: JSONObject = {"files": list(items)}
    if has_more:
        page["nextPageToken"] = items[-1]["name"].removeprefix(NAMES)
    return page


def decode_start(headers: Mapping[str, str], body: JSON) -> UploadRequest:
    """Return the file whose upload begins.

    Raises:
        WireError: the request begins none, or names the file itself.
    """
    if headers.get("x-goog-upload-protocol") != "resumable" or headers.get(COMMAND) != "start":
        raise WireError("$", "expected `x-goog-upload-protocol: resumable` and `x-goog-upload-command: start`")
    file = Reader(body).object("file")
    name = media_type = None
    if file is not None:
        if file.take("name", str):
            raise WireError("$.file.name", "the gateway gives files their names: leave it out")
        name = file.take("displayName", str) or file.take("display_name", str)  # the SDK writes both forms
        media_type = file.take("mimeType", str) or file.take("mime_type", str)
    size = headers.get(SIZE)
    return UploadRequest(
        name=name or headers.get(FILE_NAME),
        media_type=headers.get(MEDIA_TYPE) or media_type,
        purpose=UPLOADED,
        size=None if size is None else _number(size, SIZE),
    )


def decode_step(headers: Mapping[str, str]) -> UploadStep:
    """Return what a request does to an upload that has begun.

    Raises:
        WireError: it is no such request.
    """
    commands = frozenset(piece.strip() for piece in headers.get(COMMAND, "").split(","))
    if not commands or not commands <= _COMMANDS:
        raise WireError("$", f"{COMMAND}: expected `upload`, `upload, finalize`, `finalize`, `query` or `cancel`")
    uploads = "upload" in commands
    return UploadStep(
        cancels="cancel" in commands,
        queries=not uploads,
        ends="finalize" in commands,
        offset=_number(headers.get(OFFSET, ""), OFFSET) if uploads else 0,
    )


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER):
        raise WireError("$", f"{name}: expected a number of bytes")
    return int(text)


def _started(url: str) -> list[tuple[str, str]]:
    return [("x-goog-upload-url", url), ("x-goog-upload-status", "active")]


def _progress(received: int, status: str) -> list[tuple[str, str]]:
    return [("x-goog-upload-status", status), ("x-goog-upload-size-received", str(received))]


def _upload(fields: Mapping[str, str]) -> FileUpload:  # noqa: ARG001  the record's form
    return FileUpload(purpose=UPLOADED)


def _deleted(name: str) -> JSONObject:  # noqa: ARG001  as above
    return {}


def _unknown(name: str) -> Failure:
    return Failure(kind="not_found", message=f"File {name} does not exist", dialect=NAME)


RESUMABLE = ResumableCodec(
    id_prefix="resumable-",
    decode_start=decode_start,
    decode_step=decode_step,
    started=_started,
    progress=_progress,
    show=lambda file: {"file": file},
)

FILES = FileCodec(
    show=encode_file,
    decode_query=decode_query,
    decode_upload=_upload,
    page=encode_page,
    deleted=_deleted,
    unknown=_unknown,
)

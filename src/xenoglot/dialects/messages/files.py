"""Anthropic's Files API: encodes and decodes files and their lists.

Source: `anthropic/types/file_metadata.py`, `file_upload_params.py`, `file_list_params.py`, `anthropic/pagination.py`.
The parameters `after_id` and `before_id` of earlier versions are accepted too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.batch import UNTYPED, UPLOADED, FileCodec, FileListQuery, FileUpload
from xenoglot.codec.features.file_query import LONGEST_NUMBER, check_id, id_of, page_limit
from xenoglot.dialects.messages.extras import NAME
from xenoglot.dialects.messages.rate_limits import timestamp
from xenoglot.errors import WireError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.features.batch import StoredFile
    from xenoglot.model.json import JSONObject

USUAL_PAGE, LONGEST_PAGE, MOST_IDS = 20, 1_000, 100
SHORTEST, LONGEST = 3_600, 7_776_000
"""Seconds after which a file may expire."""

PAGE: Final = "page_"
"""Begins a cursor; after it is the last id of the page before."""


def encode_file(file: StoredFile, base: str) -> JSONObject:  # noqa: ARG001  the record's form
    """Return the metadata of a file."""
    return {
        "id": file.id,
        "type": "file",
        "filename": file.name,
        "mime_type": file.media_type or UNTYPED,
        "size_bytes": file.size,
        "created_at": timestamp(file.created),
        "downloadable": True,
        "expires_at": None if file.expires is None else timestamp(file.expires),
    }


def decode_query(query: Mapping[str, Sequence[str]]) -> FileListQuery:
    """Return the page of files that a query asks for.

    Raises:
        WireError: a parameter is not allowed.
    """
    ids = tuple(dict.fromkeys([*query.get("ids", ()), *query.get("ids[]", ())]))
    if len(ids) > MOST_IDS:
        raise WireError("$.ids", f"expected at most {MOST_IDS} ids, got {len(ids)}")
    for name in ids:
        check_id(name, "$.ids")
    page = id_of(query, "page")
    if page is not None and not page.startswith(PAGE):
        raise WireError("$.page", "expected the `next_page` of an earlier list")
    return FileListQuery(
        limit=page_limit(query, "limit", USUAL_PAGE, LONGEST_PAGE),
        after=id_of(query, "after_id") if page is None else page.removeprefix(PAGE),
        before=id_of(query, "before_id"),
        ids=ids or None,
    )


def decode_upload(fields: Mapping[str, str]) -> FileUpload:
    """Return the lifetime of an uploaded file.

    Raises:
        WireError: it is not allowed.
    """
    value = fields.get("expires_in_seconds")
    if value is None:
        return FileUpload(purpose=UPLOADED)
    number = int(value) if value.isascii() and value.isdecimal() and len(value) <= LONGEST_NUMBER else 0
    if not SHORTEST <= number <= LONGEST:
        raise WireError("$.expires_in_seconds", f"expected {SHORTEST} to {LONGEST}")
    return FileUpload(purpose=UPLOADED, seconds=float(number))


def encode_page(items: Sequence[JSONObject], has_more: bool) -> JSONObject:  # noqa: FBT001  a field of the page
    """Return a page of a list, with the fields of earlier versions."""
    first, last = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    next_page = f"{PAGE}{last}" if has_more else None
    return {"data": list(items), "next_page": next_page, "has_more": has_more, "first_id": first, "last_id": last}


def _deleted(name: str) -> JSONObject:
    return {"id": name, "type": "file_deleted"}


def _unknown(name: str) -> Failure:
    return Failure(kind="not_found", message=f"File not found: {name}", dialect=NAME)


FILES = FileCodec(
    show=encode_file,
    decode_query=decode_query,
    decode_upload=decode_upload,
    page=encode_page,
    deleted=_deleted,
    unknown=_unknown,
)

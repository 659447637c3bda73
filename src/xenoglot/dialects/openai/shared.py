"""Values that the records of OpenAI's dialects share: API key header, marks and headers.

Endpoints that answer in one piece, in every dialect of OpenAI's servers.

Pages and failures of stored objects, which OpenAI's dialects share.

Source: `openai/pagination.py` (`SyncCursorPage`), and the errors that the servers give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.dialects.openai.embeddings import EMBEDDINGS
from xenoglot.dialects.openai.errors import FAMILY
from xenoglot.dialects.openai.rerank import FORMS as RERANK
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.dialect import Headers
    from xenoglot.codec.features.operation import AnyForm
    from xenoglot.model.failure import FailureKind
    from xenoglot.model.json import JSONObject


MARKS = ("openai-organization", "openai-project", "openai-beta")
FORWARD = ("openai-beta", "x-client-request-id", "http-referer", "x-title")


def authorize(key: str | None) -> Headers:
    """Return the header that carries the key, if there is one."""
    return () if key is None else (("authorization", f"Bearer {key}"),)


OPERATIONS: Final[tuple[AnyForm, ...]] = (EMBEDDINGS, *RERANK)


_STATUSES: dict[FailureKind, int] = {"invalid_request": 400, "not_found": 404}


def encode_page(items: Sequence[JSONObject], has_more: bool) -> JSONObject:  # noqa: FBT001  a field of the page
    """Return a page of a list; the id of its last item is where the next page begins."""
    return {
        "object": "list",
        "data": list(items),
        "first_id": items[0]["id"] if items else None,
        "last_id": items[-1]["id"] if items else None,
        "has_more": has_more,
    }


def refusal(kind: FailureKind, message: str, *, param: str | None = None, code: str | None = None) -> Failure:
    """Return the failure that reads as the servers' own."""
    details = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Failure(
        kind=kind, message=message, status=_STATUSES[kind], dialect=FAMILY, code=code, param=param, details=details
    )

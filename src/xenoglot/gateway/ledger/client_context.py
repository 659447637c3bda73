"""What the ledger knows of the client's side of a request: its session, and its tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.gateway.observability.request_tags import with_fields
from xenoglot.policy.affinity import session_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.model.request import Request


def note_client(record: RequestLog, request: Request, headers: Sequence[tuple[str, str]]) -> None:
    """Note the session of a request, as a digest, and its tags."""
    record.session = session_of(request, headers)
    if request.metadata is not None or request.user is not None:
        record.tags = with_fields(record.tags, request)

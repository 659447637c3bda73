"""What the ledger knows of the client's side of a request: its session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.policy.affinity import session_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.model.request import Request


def note_client(record: RequestLog, request: Request, headers: Sequence[tuple[str, str]]) -> None:
    """Note the session of a request, as a digest."""
    record.session = session_of(request, headers)

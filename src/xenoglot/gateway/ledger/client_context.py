"""What the ledger knows of the client's side of a request: its session and its trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.policy.affinity import session_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.model.request import Request

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
"""https://www.w3.org/TR/trace-context/#traceparent-header"""


def note_client(record: RequestLog, request: Request, headers: Sequence[tuple[str, str]]) -> None:
    """Note the session of a request, as a digest, and the id of its trace."""
    record.session = session_of(request, headers)
    for name, value in headers:
        if name == "traceparent" and (found := _TRACEPARENT.fullmatch(value.strip())):
            record.trace = found[1]

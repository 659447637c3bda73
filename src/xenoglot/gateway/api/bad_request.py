"""What a client is told whose bytes are no request, or one too many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot import dialect_registry as dialects
from xenoglot.gateway.endpoint.context import RequestContext
from xenoglot.gateway.endpoint.responses import fail, retry_headers, send
from xenoglot.gateway.endpoint.routes import USUAL_DIALECT
from xenoglot.http1.request_head import FIELDS_TOO_LARGE, UNAVAILABLE
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.gateway.endpoint.routes import Routes
    from xenoglot.gateway.http.exchange import Exchange
    from xenoglot.gateway.observability.request_log import RequestLogger
    from xenoglot.http1.request_head import InvalidHeadError
    from xenoglot.model.failure import FailureKind

TEXT: Final = "text/plain; charset=utf-8"
RETRY_SECONDS: Final = 1.0

_KINDS: Final[dict[int, FailureKind]] = {408: "timeout", FIELDS_TOO_LARGE: "too_large", UNAVAILABLE: "overloaded"}


async def refuse(exchange: Exchange, refused: InvalidHeadError, routes: Routes, observer: RequestLogger) -> None:
    """Answer in the dialect of the path that was requested; as plain text if the path belongs to none."""
    record = observer.record(exchange.method)
    kind = _KINDS.get(refused.status, "invalid_request")
    failure = Failure(
        kind=kind, message=str(refused), retry_after=RETRY_SECONDS if refused.status == UNAVAILABLE else None
    )
    rows = routes.find(exchange.path).rows if exchange.path else {}
    spoken = [row.dialect for row in rows.values() if row.dialect is not None]
    if not rows and (near := routes.nearest(exchange.path)):
        spoken.append(near)
    try:
        if spoken:
            record.dialect = spoken[0].name
            await fail(RequestContext(exchange, spoken[0], record), failure, status=refused.status)
        else:
            record.failed(failure)
            text = f"{refused}\n".encode()
            ctx = RequestContext(exchange, dialects.get(USUAL_DIALECT), record)
            await send(ctx, refused.status, text, media_type=TEXT, more=retry_headers(failure))
    finally:
        observer.write(record)

"""What a client is told whose bytes are no request, or one too many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.gateway.native_head import FIELDS_TOO_LARGE, UNAVAILABLE
from xenoglot.gateway.respond import advice, fail, send
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.gateway.exchange import Exchange
    from xenoglot.gateway.native_head import Refused
    from xenoglot.gateway.observe import Observer
    from xenoglot.gateway.routes import Routes
    from xenoglot.model.failure import FailureKind

TEXT: Final = "text/plain; charset=utf-8"
RETRY_SECONDS: Final = 1.0

_KINDS: Final[dict[int, FailureKind]] = {408: "timeout", FIELDS_TOO_LARGE: "too_large", UNAVAILABLE: "overloaded"}


async def refuse(exchange: Exchange, refused: Refused, routes: Routes, observer: Observer) -> None:
    """Answer in the dialect of the path that was requested; as plain text if the path belongs to none."""
    record = observer.record(exchange.method)
    kind = _KINDS.get(refused.status, "invalid_request")
    failure = Failure(
        kind=kind, message=str(refused), retry_after=RETRY_SECONDS if refused.status == UNAVAILABLE else None
    )
    rows = routes.find(exchange.path).rows if exchange.path else {}
    dialects = [row.dialect for row in rows.values() if row.dialect is not None]
    if not rows and (near := routes.nearest(exchange.path)):
        dialects.append(near)
    try:
        if dialects:
            record.dialect = dialects[0].name
            await fail(exchange, dialects[0], failure, record, status=refused.status)
        else:
            record.failed(failure)
            text = f"{refused}\n".encode()
            await send(exchange, record, refused.status, text, media_type=TEXT, more=advice(failure))
    finally:
        observer.write(record)

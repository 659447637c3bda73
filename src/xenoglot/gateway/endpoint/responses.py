"""Responses of the gateway itself: JSON, failures in each dialect, and replies to bytes that are no request."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline
from xenoglot.gateway.endpoint.request_context import RequestContext
from xenoglot.gateway.endpoint.routes import USUAL_DIALECT
from xenoglot.http1.request_head import FIELDS_TOO_LARGE, UNAVAILABLE
from xenoglot.model.events import Failed
from xenoglot.model.failure import Failure
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.endpoint.routes import Routes
    from xenoglot.gateway.http.application import Exchange
    from xenoglot.gateway.observability.request_log import RequestLogger
    from xenoglot.http1.request_head import InvalidHeadError
    from xenoglot.model.failure import FailureKind
    from xenoglot.model.json import JSON


Headers: TypeAlias = "list[tuple[str, str]]"

LONGEST_WAIT = 60
"""Seconds: clients sleep for any time that they receive, up to weeks."""

USUAL_WAIT = 5
"""Seconds sent where a rate limit came without any: some clients give the turn up without a value."""

FUTILE: frozenset[FailureKind] = frozenset(
    {
        "invalid_request",
        "context_overflow",
        "authentication",
        "billing",
        "permission",
        "not_found",
        "conflict",
        "too_large",
        "unsupported",
        "cancelled",
    }
)
"""Kinds that come again however often the request is sent."""


async def send(
    ctx: RequestContext, status: int, body: bytes, *, media_type: str, more: Sequence[tuple[str, str]] = ()
) -> None:
    """Send a whole answer."""
    exchange, record = ctx.exchange, ctx.record
    record.begin(status)
    length = ("content-length", str(len(body)))
    own = () if ctx.dialect.answer_headers is None else ctx.dialect.answer_headers(record.request_id)
    await exchange.start(status, [("content-type", media_type), length, *record.headers(), *own, *more])
    await exchange.end(body)


async def send_json(ctx: RequestContext, body: JSON, status: int = 200, more: Sequence[tuple[str, str]] = ()) -> None:
    """Send a JSON value."""
    await send(ctx, status, encode_json(body), media_type="application/json", more=more)


async def fail(
    ctx: RequestContext, failure: Failure, *, status: int | None = None, more: Sequence[tuple[str, str]] = ()
) -> None:
    """Send `failure` as the request's dialect writes it; `status` stands where HTTP has a word of its own for the case.

    Nothing may have been sent before; see `break_off` for the case that it was.
    """
    ctx.record.failed(failure)
    told = replace(failure, request_id=ctx.record.request_id, status=status or failure.status)
    usual, body = ctx.dialect.encode_error(told)
    own = () if ctx.dialect.error_headers is None else ctx.dialect.error_headers(body)
    await send_json(ctx, body, status or usual, (*retry_headers(failure), *own, *more))


async def abort_stream(ctx: RequestContext, failure: Failure) -> None:
    """Report a failure in the middle of a stream, in the dialect's own event, and end it as no complete answer ends."""
    exchange, dialect, record = ctx.exchange, ctx.dialect, ctx.record
    record.failed(failure)
    framing = dialect.framing
    encoder = Pipeline(dialect.stream_encoder(Request(model=record.model or ""), Losses()), framing.encoder())
    if framing.resume and record.framing is framing:
        frames = encoder.feed(Failed(failure=replace(failure, request_id=record.request_id)))
        await exchange.write((framing.resume if record.cut else b"") + b"".join(frames))
    exchange.abort()


def retry_headers(failure: Failure) -> Headers:
    """Return the headers that specify when a client is to retry, or not at all."""
    wait = failure.retry_after
    if wait is None and failure.kind == "rate_limit":
        wait = USUAL_WAIT
    told: Headers = [] if wait is None else [("retry-after", str(max(0, math.ceil(min(wait, LONGEST_WAIT)))))]
    comes_free = failure.kind == "conflict" and wait is not None
    if failure.non_retryable or (failure.kind in FUTILE and not comes_free):
        told.append(("x-should-retry", "false"))
    return told


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

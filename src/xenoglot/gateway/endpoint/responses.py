"""Answers that are no model's: JSON, and failures in the words of a dialect."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import Losses
from xenoglot.codec.stage import Pipeline
from xenoglot.model.events import Failed
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.endpoint.context import RequestContext
    from xenoglot.model.failure import Failure, FailureKind
    from xenoglot.model.json import JSON

Headers: TypeAlias = "list[tuple[str, str]]"

LONGEST_WAIT = 60
"""Seconds: clients sleep for whatever they are told, up to weeks."""

USUAL_WAIT = 5
"""Seconds said where a rate limit came without any: some clients give the turn up when nothing is said."""

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
    await exchange.start(status, [("content-type", media_type), length, *record.headers(), *more])
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
    await send_json(ctx, body, status or usual, (*retry_headers(failure), *more))


async def abort_stream(ctx: RequestContext, failure: Failure) -> None:
    """Say in the middle of a stream that it failed, in the dialect's own event, and end it as nothing whole ends."""
    exchange, dialect, record = ctx.exchange, ctx.dialect, ctx.record
    record.failed(failure)
    framing = dialect.framing
    encoder = Pipeline(dialect.stream_encoder(Request(model=record.model or ""), Losses()), framing.encoder())
    if framing.resume and record.framing is framing:
        frames = encoder.feed(Failed(failure=replace(failure, request_id=record.request_id)))
        await exchange.write((framing.resume if record.cut else b"") + b"".join(frames))
    exchange.abort()


def retry_headers(failure: Failure) -> Headers:
    """Return the headers that tell a client when to come again, or that it need not."""
    wait = failure.retry_after
    if wait is None and failure.kind == "rate_limit":
        wait = USUAL_WAIT
    told: Headers = [] if wait is None else [("retry-after", str(max(0, math.ceil(min(wait, LONGEST_WAIT)))))]
    comes_free = failure.kind == "conflict" and wait is not None
    if failure.non_retryable or (failure.kind in FUTILE and not comes_free):
        told.append(("x-should-retry", "false"))
    return told

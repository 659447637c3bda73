"""`/admin/v1/requests`: requests of the ledger, one by one, page by page, or as they end; and their captures."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import FailureError
from xenoglot.gateway.admin.route import (
    MOST_ROWS,
    AdminRequest,
    AdminRoute,
    EventStream,
    Page,
    decode_cursor,
    encode_cursor,
    not_found,
)
from xenoglot.gateway.admin.usage import moment
from xenoglot.model.failure import Failure
from xenoglot.store.ledger import bodies, queries
from xenoglot.store.ledger.queries import CapturePart, RequestFilter
from xenoglot.store.ledger.rows import RequestRow
from xenoglot.store.ledger.tail import POLL_SECONDS, RequestTail
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from xenoglot.gateway.admin.route import AdminResult
    from xenoglot.gateway.admin.services import AdminServices

MOST_STREAMS: Final = 32
"""Streams of requests at once."""
EVENT_STREAM: Final = "text/event-stream"

TOO_MANY: Final = Failure(
    kind="rate_limit",
    message=f"rate limit: {MOST_STREAMS} clients follow the requests already; end one of their streams",
    retry_after=5.0,
)


class RequestQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Which requests are meant. Times are durations ago, dates, times or Unix seconds.

    With `follow` the response is a stream of events: requests as they end, from now on or from `from`.
    """

    from_: str | None = None
    to: str | None = None
    tenant: str | None = None
    key: str | None = None
    model: str | None = None
    upstream: str | None = None
    dialect: str | None = None
    session: str | None = None
    trace: str | None = None
    status: int | None = None
    failed: bool | None = None
    losses: bool = False
    """Only requests that lost something in translation."""
    follow: bool = False
    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS - 1)] = 50
    after: str | None = None


class RequestDetails(Struct, frozen=True, kw_only=True):
    """One request, with the bodies that were captured of it."""

    request: RequestRow
    loss_kinds: dict[str, int]
    """How many losses there were of each kind."""
    capture: list[CapturePart]


class CapturedBody(Struct, frozen=True, kw_only=True):
    """A captured body of a request as text, redacted; `truncated` if it is only the beginning."""

    object: Literal["captured_body"] = "captured_body"
    request: str
    part: str
    media: str
    truncated: bool
    text: str
    expires: float


class RequestRoutes:
    """Routes for the requests of the ledger."""

    def __init__(self, services: AdminServices) -> None:
        self._services = services
        self._streams = 0

    def routes(self) -> tuple[AdminRoute, ...]:
        """Return the rows of the table."""
        return (
            AdminRoute(
                method="GET",
                path="/requests",
                handler=self.requests,
                summary="List requests, the newest first, or follow them as they end.",
                query=RequestQuery,
                returns=RequestRow,
                paged=True,
                media_types=(EVENT_STREAM,),
            ),
            AdminRoute(
                method="GET",
                path="/requests/{id}",
                handler=self.request,
                summary="Return one request, its losses by kind, and what was captured of it.",
                returns=RequestDetails,
            ),
            AdminRoute(
                method="GET",
                path="/requests/{id}/capture/{part}",
                handler=self.body,
                summary="Return a captured body of a request, or its details: losses, tries and times.",
                returns=CapturedBody,
            ),
        )

    async def requests(self, request: AdminRequest) -> AdminResult:
        """Return requests of the ledger.

        Raises:
            FailureError: the ledger is off, the store cannot be used, or too many clients follow already.
            WireError: a parameter is invalid.
        """
        query, services = request.query(RequestQuery), self._services
        await services.recorded()
        now = services.now()
        which = RequestFilter(
            since=0.0 if query.from_ is None else moment("$.from", query.from_, now),
            until=None if query.to is None else moment("$.to", query.to, now),
            tenant=query.tenant,
            key=query.key,
            model=query.model,
            upstream=query.upstream,
            dialect=query.dialect,
            session=query.session,
            trace=query.trace,
            status=query.status,
            failed=query.failed,
            lossy=query.losses,
            limit=query.limit + 1,
        )
        if query.follow:
            if self._streams >= MOST_STREAMS:
                raise FailureError(TOO_MANY)
            last = decode_cursor(request.ctx.exchange.header("last-event-id") or query.after, float, str)
            begin = (which.since or now, "") if last is None else (float(last[0]), str(last[1]))
            return EventStream(self._follow(RequestTail(which, begin), request.admitted))
        place = decode_cursor(query.after, float, str)
        if place is not None:
            which = replace(which, before=(float(place[0]), str(place[1])))
        rows = await services.read(queries.requests(which))
        return Page.of(rows, query.limit, lambda row: (row.at, row.id))

    async def request(self, request: AdminRequest) -> AdminResult:
        """Return one request.

        Raises:
            FailureError: it does not exist, the ledger is off, or the store cannot be used.
        """
        await self._services.recorded()
        name = request.variables["id"]
        row = await self._services.read(queries.request(name))
        if row is None:
            raise not_found("request", name)
        kinds = (one.partition(":") for one in (row.loss_kinds or "").split(",") if one)
        losses = {kind: int(count) for kind, _, count in kinds}
        return RequestDetails(request=row, loss_kinds=losses, capture=await self._services.read(queries.captured(name)))

    async def body(self, request: AdminRequest) -> AdminResult:
        """Return a captured body.

        Raises:
            FailureError: it does not exist, the ledger is off, or the store cannot be used.
        """
        await self._services.recorded()
        name, part = request.variables["id"], request.variables["part"]
        row = await self._services.read(bodies.captured_body(name, part))
        if row is None:
            raise not_found("captured body", f"{name}/{part}")
        try:
            text = await asyncio.to_thread(lambda: bodies.decompressed(row.body).decode("utf-8", "replace"))
        except StoreError as error:
            raise FailureError(Failure(kind="internal", message=str(error))) from None
        return CapturedBody(
            request=name,
            part=part,
            media=row.media.removesuffix(bodies.TRUNCATED),
            truncated=row.media.endswith(bodies.TRUNCATED),
            text=text,
            expires=row.expires,
        )

    async def _follow(self, tail: RequestTail, admitted: Callable[[], Awaitable[bool]]) -> AsyncGenerator[bytes]:
        """Yield an event for each request that ends, until the gateway stops or the client is not `admitted`."""
        services = self._services
        self._streams += 1
        quiet_since = time.monotonic()
        try:
            yield b": requests as they end\n\n"
            while not services.ended() and await admitted():
                polled = services.now()
                for row in tail.new(await services.read(tail.steps()), polled):
                    yield _event(row)
                    quiet_since = time.monotonic()
                if tail.full:
                    continue
                if time.monotonic() - quiet_since >= services.config.server.ping_interval:
                    quiet_since = time.monotonic()
                    yield b": ping\n\n"
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self._streams -= 1


def _event(row: RequestRow) -> bytes:
    return b"event: request\nid: %b\ndata: %b\n\n" % (encode_cursor((row.ended, row.id)).encode(), encode_json(row))

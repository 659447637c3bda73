"""Which endpoint serves a request, and whether it may enter: checked by its head alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xenoglot import dialect_registry as dialects
from xenoglot.backends.redaction import for_log
from xenoglot.backends.remote import request_heads
from xenoglot.errors import FailureError
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.auth.request_checks import Rejection, check_host, check_media, check_origin
from xenoglot.gateway.endpoint.request_context import Admission, RequestContext, shows_key
from xenoglot.gateway.endpoint.responses import fail
from xenoglot.gateway.endpoint.routes import USUAL_DIALECT, EndpointMatch
from xenoglot.gateway.observability.request_tags import read_tags
from xenoglot.gateway.observability.trace_context import read_trace_context
from xenoglot.gateway.upstream.call import passed_on
from xenoglot.model.failure import Failure
from xenoglot.policy.auth_throttle import source_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.api.idempotency import Idempotency
    from xenoglot.gateway.config.settings import ServerSettings
    from xenoglot.gateway.endpoint.request_context import AuthService
    from xenoglot.gateway.endpoint.routes import EndpointRow, Routes
    from xenoglot.gateway.http.application import Exchange, HeadState
    from xenoglot.gateway.observability.request_log import RequestLog

METHOD_NOT_ALLOWED = 405
UPGRADE_REQUIRED = 426
NO_CONTENT = 204

_HEADER_NAMES = re.compile(r"[A-Za-z0-9, _-]{1,1000}")


class RequestAdmission:
    """Finds the endpoint of a request and checks whether it may enter, by the settings of `server` and the keys."""

    def __init__(self, routes: Routes, server: ServerSettings, auth: AuthService, idempotency: Idempotency) -> None:
        self._routes = routes
        self._server = server
        self._auth = auth
        self._idempotency = idempotency
        self._learns = auth.stored is not None
        self._leave = object()
        """What entries bear that are still valid."""
        if auth.stored is not None:
            auth.stored.listeners.add(self)

    def forget(self) -> None:
        """Check every head again: keys have changed."""
        self._leave = object()

    def find(self, path: str, headers: Sequence[tuple[str, str]]) -> tuple[EndpointMatch, Dialect]:
        """Return what is served at `path`, and the dialect to answer in.

        That is the route's; that of the paths that begin alike; that of which the headers bear a mark; the usual one.
        A path that several dialects have is that of the dialect of which the headers bear a mark.
        """
        found = self._routes.find(path)
        if found.marked and (marked := _marked(headers)) and marked.name in found.marked:
            return EndpointMatch({**found.rows, **found.marked[marked.name]}, found.variables), marked
        for row in found.rows.values():
            if row.dialect is not None:
                return found, row.dialect
        near = None if found.rows else self._routes.nearest(path)
        return found, near or _marked(headers) or dialects.get(USUAL_DIALECT)

    async def serve(self, ctx: RequestContext, rows: Mapping[str, EndpointRow], seen: HeadState | None) -> None:
        """Check one request and hand it to its endpoint; if it may come in, that is noted in `seen`.

        Raises:
            FailureError: there is no answer, and nothing has been sent.
        """
        exchange, record = ctx.exchange, ctx.record
        method = exchange.method
        record.trace_context = read_trace_context(exchange.headers)
        row = rows.get(method) or (rows.get("GET") if method == "HEAD" else None)
        if row is not None:
            record.route = row.path
        record.dialect = ctx.dialect.name
        if self._learns and (row is None or row.policy != "open"):
            await self._learn(exchange)
        refusal = self._refusal(ctx, row)
        if refusal is not None:
            await fail(ctx, refusal.failure, status=refusal.status)
        elif method == "OPTIONS" and record.origin is not None:
            await _preflight(ctx, rows)
        elif _needs_upgrade(exchange) and not (row is not None and row.upgrade):
            problem = "the gateway speaks HTTP/1.1 alone: send the request by POST and without `upgrade`"
            await _refuse(ctx, problem, UPGRADE_REQUIRED, ("upgrade", "HTTP/1.1"))
        elif not rows:
            raise FailureError(Failure(kind="not_found", message=f"nothing is served at `{for_log(exchange.path)}`"))
        elif row is None:
            allowed = ", ".join(sorted({*rows, *(("HEAD",) if "GET" in rows else ())}))
            problem = f"`{for_log(method, 20)}` is not for this path: {allowed}"
            await _refuse(ctx, problem, METHOD_NOT_ALLOWED, ("allow", allowed))
        else:
            entry = self._entry(exchange, row, ctx.dialect, record.client, exchange.variables)
            if seen is not None:
                seen.entry = entry
            await entry.handler(admitted_context(entry, exchange, record))

    def known(self, seen: HeadState | None) -> Admission | None:
        """Return the entry of a request whose head was let in before, if it may come in again; it is counted then."""
        entry = None if seen is None else seen.entry
        return entry if isinstance(entry, Admission) and self._may_again(entry) else None

    def let_in(self, exchange: Exchange, seen: HeadState | None) -> Admission | None:
        """Return the entry of a request that may come in and means one row of a dialect; it is noted in `seen`.

        `None` where `serve` must check and report it: nothing is counted then.
        """
        known = None if seen is None else seen.entry
        if isinstance(known, Admission):
            return known if known.leave is self._leave and self._auth.is_let_in_again(known) else None
        found = self._routes.find(exchange.path)
        row = found.rows.get(exchange.method)
        if row is None or row.dialect is None or row.form or row.raw or found.marked:
            return None
        if not self._may_come(exchange):
            return None
        client = self._auth.keyring.admit(exchange.headers, row.policy)
        if not isinstance(client, Principal):
            return None
        try:
            entry = self._entry(exchange, row, row.dialect, client, found.variables)
        except FailureError:
            return None
        if seen is not None:
            seen.entry = entry
        return entry if self._may_again(entry) else None

    def _may_again(self, entry: Admission) -> bool:
        return entry.leave is self._leave and self._auth.is_let_in_again(entry)

    async def _learn(self, exchange: Exchange) -> None:
        if check_host(exchange.headers, self._server) is None:
            await self._auth.learn(exchange)

    def _may_come(self, exchange: Exchange) -> bool:
        """Whether nothing but its key could keep a request out."""
        headers, server = exchange.headers, self._server
        strange = check_host(headers, server) or check_origin(headers, server) or check_media(headers)
        return not (strange or _needs_upgrade(exchange) or shows_key(exchange.query))

    def _entry(
        self, exchange: Exchange, row: EndpointRow, dialect: Dialect, client: Principal, variables: Mapping[str, str]
    ) -> Admission:
        handler = self._idempotency.once(row.handler, exchange.headers) if row.once else row.handler
        return Admission(
            leave=self._leave,
            route=row.path,
            handler=handler,
            generates=row.generates and handler is row.handler and dialect.header_fields is None,
            variables=variables,
            dialect=dialect,
            client=client,
            origin=exchange.header("origin"),
            source=source_of(exchange.peer) if self._auth.keyring.needs_key(row.policy) else None,
            hops=request_heads.read_hops(exchange.headers),
            passed=passed_on(exchange.headers, dialect),
            trace=read_trace_context(exchange.headers),
            tags=read_tags(exchange.headers),
            credential=self._auth.credential_of(exchange.headers),
        )

    def _refusal(self, ctx: RequestContext, row: EndpointRow | None) -> Rejection | None:
        """Return why the request may not pass; paths that are not in the table need the key too."""
        exchange, record = ctx.exchange, ctx.record
        headers, server = exchange.headers, self._server
        refusal = check_host(headers, server) or check_origin(headers, server)
        if refusal is not None:
            return refusal
        record.origin = exchange.header("origin")
        preflight = exchange.method == "OPTIONS" and record.origin is not None
        if not preflight:
            client = self._auth.admitted(exchange, "key" if row is None else row.policy)
            if isinstance(client, Failure):
                if client.kind == "permission":
                    record.client = self._auth.keyring.identified(headers)  # for the log
                return Rejection(client)
            record.client = client
        if exchange.method != "POST" or row is None or row.raw:
            return None
        return check_media(headers, form=row.form)


def admitted_context(entry: Admission, exchange: Exchange, record: RequestLog) -> RequestContext:
    """Return the context of a request that may come in, all noted that is known by its head."""
    record.route = entry.route
    record.dialect = entry.dialect.name
    record.client = entry.client
    record.origin = entry.origin
    record.trace_context, record.tags = entry.trace, entry.tags
    exchange.variables = entry.variables
    request_heads.arrive(entry.hops)
    return RequestContext(exchange, entry.dialect, record, entry.hops, entry.credential)


def _marked(headers: Sequence[tuple[str, str]]) -> Dialect | None:
    """Return the dialect of which the headers bear a mark."""
    names = {name for name, _ in headers}
    return next((one for one in map(dialects.get, dialects.names()) if not names.isdisjoint(one.marks)), None)


def _needs_upgrade(exchange: Exchange) -> bool:
    """Return whether the request cannot be served without the other protocol that it proposes.

    A proposal may be passed over (RFC 9110 section 7.8), but some servers give out no body after one.
    """
    proposed = (exchange.header("upgrade") or "").strip().lower()
    bodiless = exchange.method == "POST" and not exchange.reads_behind_upgrade
    return proposed == "websocket" or (bool(proposed) and bodiless)


async def _refuse(ctx: RequestContext, problem: str, status: int, header: tuple[str, str]) -> None:
    failure = Failure(kind="invalid_request", message=problem)
    await fail(ctx, failure, status=status, more=[header])


async def _preflight(ctx: RequestContext, rows: Mapping[str, EndpointRow]) -> None:
    """Send a browser what a page of an allowed origin may send (https://fetch.spec.whatwg.org/#http-cors-protocol)."""
    wanted = ctx.exchange.header("access-control-request-headers") or ""
    allowed = [
        ("access-control-allow-methods", ", ".join(rows)),
        ("access-control-allow-headers", wanted if _HEADER_NAMES.fullmatch(wanted) else "content-type"),
        ("access-control-max-age", "600"),
    ]
    ctx.record.begin(NO_CONTENT)
    await ctx.exchange.start(NO_CONTENT, [*ctx.record.headers(), *allowed])
    await ctx.exchange.end()

"""Serves the table of the administration: finds the route, decodes the request, encodes the response."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote

from xenoglot import dialect_registry as dialects
from xenoglot.backends.offload import offload
from xenoglot.backends.redaction import for_log
from xenoglot.codec.json.json_io import encode_json
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.admin.openapi import openapi_document
from xenoglot.gateway.admin.route import ADMIN, AdminRequest, AdminRoute, EventStream, Page, RawBody
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.endpoint.responses import fail, send
from xenoglot.gateway.endpoint.routes import USUAL_DIALECT, VERSION
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.gateway.admin.route import AdminResult
    from xenoglot.gateway.endpoint.request_context import AuthService, BodyReader, RequestContext
    from xenoglot.gateway.endpoint.routes import EndpointRow
    from xenoglot.gateway.http.application import Exchange

METHOD_NOT_ALLOWED: Final = 405
NO_STORE: Final = ("cache-control", "no-store")
EVENT_STREAM: Final = "text/event-stream"
ROW_BYTES: Final = 500
"""About how many bytes a row of a page is; large pages are encoded in a thread."""


class AdminEndpoint:
    """Answers the requests below `/admin/v1`. Errors have the form of the Chat Completions API."""

    def __init__(
        self, routes: Sequence[AdminRoute], bodies: BodyReader, auth: AuthService, rows: Sequence[EndpointRow] = ()
    ) -> None:
        self.routes = tuple(routes)
        self._rows = rows
        """The route table of the whole gateway, for the document."""
        self._document: bytes | None = None
        self._bodies = bodies
        self._auth = auth
        self._dialect = dialects.get(USUAL_DIALECT)
        self._exact: dict[tuple[str, ...], dict[str, AdminRoute]] = {}
        self._templates: dict[tuple[str, ...], dict[str, AdminRoute]] = {}
        for route in self.routes:
            paths = self._templates if "{" in route.path else self._exact
            paths.setdefault(_segments(route.full_path), {})[route.method] = route

    async def serve(self, ctx: RequestContext) -> None:
        """Answer one request.

        Raises:
            FailureError: there is no result.
            WireError: a parameter or field is invalid.
        """
        ctx.dialect, ctx.record.dialect = self._dialect, None
        path = ctx.exchange.path
        found, variables = self.find(path if path.startswith((ADMIN, VERSION)) else VERSION + path)
        if not found:
            message = f"nothing is served at `{for_log(ctx.exchange.path)}`; /openapi.json lists what is"
            raise FailureError(Failure(kind="not_found", message=message))
        method = "GET" if ctx.exchange.method == "HEAD" else ctx.exchange.method
        route = found.get(method)
        if route is None:
            allowed = ", ".join(sorted({*found, *(("HEAD",) if "GET" in found else ())}))
            problem = f"`{for_log(ctx.exchange.method, 20)}` is not for this path: {allowed}"
            failure = Failure(kind="invalid_request", message=problem)
            await fail(ctx, failure, status=METHOD_NOT_ALLOWED, more=[("allow", allowed), NO_STORE])
            return
        ctx.record.route = route.full_path
        value = None
        if route.takes is not None and (data := await self._bodies.read(ctx.exchange)):
            value = await self._bodies.json(data)
            if not isinstance(value, dict):
                raise WireError("$", "expected an object")
        parameters = query_parameters(ctx.exchange.query)
        request = AdminRequest(
            ctx=ctx,
            admitted=partial(self._admitted, ctx.exchange),
            route=route,
            variables=variables,
            parameters=parameters,
            value=value,
        )
        request.query(route.query)
        await _answer(ctx, route, await route.handler(request))

    async def _admitted(self, exchange: Exchange) -> bool:
        """Return whether the key of a request that was let in may still read.

        Raises:
            FailureError: that cannot be found out now.
        """
        keyring = self._auth.keyring
        await keyring.learn(exchange.headers)
        return isinstance(keyring.admit(exchange.headers, "view"), Principal)

    async def serve_document(self, ctx: RequestContext) -> None:
        """Send the OpenAPI document, which is made once."""
        if self._document is None:
            self._document = await asyncio.to_thread(lambda: encode_json(openapi_document(self._rows, self.routes)))
        await send(ctx, 200, self._document, media_type="application/json")

    def find(self, path: str) -> tuple[Mapping[str, AdminRoute], Mapping[str, str]]:
        """Return the routes at a path by method, and its variables; a path without variables comes first."""
        segments = _segments(path)
        if (exact := self._exact.get(segments)) is not None:
            return exact, {}
        for template, routes in self._templates.items():
            pairs = list(zip(template, segments, strict=False))
            if len(template) == len(segments) and all(name == part or _is_variable(name) for name, part in pairs):
                return routes, {name[1:-1]: unquote(part) for name, part in pairs if _is_variable(name)}
        return {}, {}


def query_parameters(query: str) -> dict[str, list[str]]:
    """Return the values of each parameter in a query; `name[]` is another way to write `name`."""
    parameters: dict[str, list[str]] = {}
    for name, given in parse_qsl(query, keep_blank_values=True):
        parameters.setdefault(name.removesuffix("[]"), []).append(given)
    return parameters


async def _answer(ctx: RequestContext, route: AdminRoute, result: AdminResult) -> None:
    """Send the result of a handler."""
    match result:
        case EventStream():
            await _stream(ctx, result)
        case RawBody():
            await send(ctx, route.status, result.body, media_type=result.media_type, more=[NO_STORE])
        case _:
            size = len(result.data) * ROW_BYTES if isinstance(result, Page) else 0
            body = await offload(size, lambda: encode_json(result))
            await send(ctx, route.status, body, media_type="application/json", more=[NO_STORE])


async def _stream(ctx: RequestContext, stream: EventStream) -> None:
    exchange, record = ctx.exchange, ctx.record
    record.begin(200)
    await exchange.start(200, [("content-type", EVENT_STREAM), *record.headers(), NO_STORE])
    if exchange.method != "HEAD":
        async with aclosing(stream.frames) as frames:
            async for frame in frames:
                await exchange.write(frame)
    await exchange.end()


def _segments(path: str) -> tuple[str, ...]:
    return tuple(path.removesuffix("/").split("/")[1:])


def _is_variable(segment: str) -> bool:
    return segment.startswith("{")

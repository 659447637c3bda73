"""Serves the console: finds the page, checks the session and its token, renders what the handler returns."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, unquote

from xenoglot import dialect_registry as dialects
from xenoglot.backends.offload import offload
from xenoglot.backends.redaction import for_log
from xenoglot.errors import FailureError, WireError
from xenoglot.gateway.admin.endpoint import query_parameters
from xenoglot.gateway.admin.route import EventStream, RawBody
from xenoglot.gateway.auth.keys import NO_MANAGER
from xenoglot.gateway.console.render import SECURITY_HEADERS, Renderer
from xenoglot.gateway.console.route import CONSOLE, ConsoleRequest, ConsoleRoute, Page, Redirect, Session
from xenoglot.gateway.console.sessions import is_token_of
from xenoglot.gateway.endpoint.responses import send
from xenoglot.gateway.endpoint.routes import USUAL_DIALECT
from xenoglot.model.failure import STATUS, Failure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.gateway.console.route import ConsoleResult
    from xenoglot.gateway.console.sessions import Sessions
    from xenoglot.gateway.endpoint.request_context import BodyReader, RequestContext

HTML: Final = "text/html; charset=utf-8"
FORM: Final = "application/x-www-form-urlencoded"
SEE_OTHER: Final = 303
NO_CONTENT: Final = 204
NO_STORE: Final = ("cache-control", "no-store")
FOR_EVER: Final = ("cache-control", "public, max-age=31536000, immutable")
STATIC: Final = "/static/"
SIGN_IN: Final = "/sign-in"
MOST_FIELDS: Final = 200
ROW_BYTES: Final = 64 * 1024
"""Of templates: larger pages are rendered in a thread."""

OFF: Final = Failure(
    kind="not_found",
    message="the console is off: give an administrator a key (`admin_env` under [keys], or `xenoglot keys create "
    "--role admin`), or set `console = true` under [server] of a gateway that only this machine can reach",
)
NO_TOKEN: Final = Failure(
    kind="permission", message="the form does not belong to this session; reload the page and send it again"
)


class ConsoleEndpoint:
    """Answers the requests below `/console` by a table of `routes`."""

    def __init__(self, routes: Sequence[ConsoleRoute], sessions: Sessions, bodies: BodyReader) -> None:
        self._sessions = sessions
        self._bodies = bodies
        self._dialect = dialects.get(USUAL_DIALECT)
        self._routes = tuple((_segments(route.path), route) for route in routes)
        self._renderer = Renderer(frozenset(route.path for route in routes))

    async def serve(self, ctx: RequestContext) -> None:
        """Answer one request: by a page, whatever happens."""
        ctx.dialect, ctx.record.dialect = self._dialect, None
        path = ctx.exchange.path.removeprefix(CONSOLE) or "/"
        if path.startswith(STATIC):
            await self._static(ctx, path.removeprefix(STATIC))
            return
        session: Session | None = None
        try:
            session = await self._session(ctx)
            route, variables = self._find(ctx.exchange.method, path)
            ctx.record.route = CONSOLE + route.path
            if session is None and not route.public:
                await self._answer(ctx, None, path, Redirect(to=_sign_in(ctx)))
                return
            session = session or Session(client=ctx.record.client)
            ctx.record.client = session.client
            result = await route.handler(await self._request(ctx, route, session, variables))
        except (FailureError, WireError) as error:
            failure = _failure(error)
            ctx.record.failed(failure)
            values = {"title": "Error", "message": failure.message, "param": failure.param}
            result = Page(template="error.html", values=values, status=failure.status or STATUS[failure.kind])
        await self._answer(ctx, session, path, result)

    async def _session(self, ctx: RequestContext) -> Session | None:
        """Return the session of a request; `None` if its sender has to sign in.

        Raises:
            FailureError: the console is off, or the store cannot be used.
        """
        if not self._sessions.enabled:
            raise FailureError(OFF)
        return await self._sessions.find(ctx.exchange)

    def _find(self, method: str, path: str) -> tuple[ConsoleRoute, Mapping[str, str]]:
        segments = _segments(path)
        method = "GET" if method == "HEAD" else method
        for template, route in self._routes:
            if route.method != method or len(template) != len(segments):
                continue
            pairs = list(zip(template, segments, strict=True))
            if all(name == part or name.startswith("{") for name, part in pairs):
                return route, {name[1:-1]: unquote(part) for name, part in pairs if name.startswith("{")}
        message = f"the console has no page at `{for_log(CONSOLE + path)}`"
        raise FailureError(Failure(kind="not_found", message=message, status=404))

    async def _request(
        self, ctx: RequestContext, route: ConsoleRoute, session: Session, variables: Mapping[str, str]
    ) -> ConsoleRequest:
        """Return the request for a handler, once it may be answered.

        Raises:
            FailureError: it is not of this session, or the session may not do that.
        """
        exchange = ctx.exchange
        form: dict[str, str] = {}
        body = b""
        if route.method == "POST":
            body = await self._bodies.read(exchange)
            if (exchange.header("content-type") or "").partition(";")[0].strip().lower() == FORM:
                form = _fields(body)
            token = exchange.header("x-csrf-token") or form.pop("csrf", "")
            if session.signed_in and not is_token_of(session, token):
                raise FailureError(NO_TOKEN)
            if route.changes and not session.administers:
                raise FailureError(NO_MANAGER)
        return ConsoleRequest(
            ctx=ctx,
            admitted=partial(self._sessions.holds, exchange),
            session=session,
            variables=variables,
            parameters=query_parameters(exchange.query),
            form=form,
            body=body,
        )

    async def _answer(self, ctx: RequestContext, session: Session | None, path: str, result: ConsoleResult) -> None:
        headers = [*SECURITY_HEADERS, NO_STORE]
        match result:
            case Redirect(to=to, cookie=cookie):
                more = [("location", CONSOLE + to.removesuffix("/") if to != "/" else CONSOLE)]
                if cookie is not None:
                    more.append(("set-cookie", cookie))
                if ctx.exchange.header("hx-request") == "true":  # a script follows no redirect to another page
                    more = [("hx-redirect", more[0][1]), *more[1:]]
                status = NO_CONTENT if more[0][0] == "hx-redirect" else SEE_OTHER
                await send(ctx, status, b"", media_type=HTML, more=[*headers, *more])
            case Page(template=template, values=values, status=status, cookie=cookie):
                if cookie is not None:
                    headers.append(("set-cookie", cookie))
                size = sum(len(value) * ROW_BYTES // 100 for value in values.values() if isinstance(value, list))
                body = await offload(size, lambda: self._renderer.render(template, session, path, values))
                await send(ctx, status, body, media_type=HTML, more=headers)
            case RawBody(body=body, media_type=media_type):
                await send(ctx, 200, body, media_type=media_type, more=headers)
            case EventStream(frames=frames):
                await _stream(ctx, frames, headers)

    async def _static(self, ctx: RequestContext, name: str) -> None:
        ctx.record.route = f"{CONSOLE}{STATIC}{{name}}"
        found = self._renderer.files.get(name)
        if found is None:
            await send(ctx, 404, b"", media_type="text/plain", more=SECURITY_HEADERS)
            return
        await send(ctx, 200, found.body, media_type=found.media_type, more=[*SECURITY_HEADERS, FOR_EVER])


async def _stream(ctx: RequestContext, frames: object, headers: Sequence[tuple[str, str]]) -> None:
    exchange, record = ctx.exchange, ctx.record
    record.begin(200)
    await exchange.start(200, [("content-type", "text/event-stream"), *record.headers(), *headers])
    async with aclosing(frames) as pieces:  # type: ignore[type-var]
        async for piece in pieces:  # type: ignore[attr-defined]
            await exchange.write(piece)
    await exchange.end()


def _failure(error: FailureError | WireError) -> Failure:
    if isinstance(error, FailureError):
        return error.failure
    return Failure(kind="invalid_request", message=str(error), param=error.path, status=400)


def _fields(body: bytes) -> dict[str, str]:
    """Return the fields of a form.

    Raises:
        WireError: it is none.
    """
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise WireError("$", "this is not a form of the console") from None


def _sign_in(ctx: RequestContext) -> str:
    """Return the page to sign in at, which leads back to where the browser wanted to go."""
    exchange = ctx.exchange
    if exchange.method != "GET" or exchange.path.rstrip("/") == CONSOLE:
        return SIGN_IN
    query = f"?{exchange.query}" if exchange.query else ""
    return f"{SIGN_IN}?to={quote(exchange.path.removeprefix(CONSOLE) + query, safe='')}"


def _segments(path: str) -> tuple[str, ...]:
    return tuple(path.removesuffix("/").split("/")[1:])

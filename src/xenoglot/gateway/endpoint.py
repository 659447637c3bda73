"""What the gateway serves, apart from the answers of models: the table's rows, and who may pass to them."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.backends import hops
from xenoglot.codec.reader import expected
from xenoglot.errors import FailureError
from xenoglot.gateway import batches, relay, state, state_endpoints
from xenoglot.gateway.admission import Refusal, check_host, check_media, check_origin
from xenoglot.gateway.admit import admitted, is_let_in_again, shows_key
from xenoglot.gateway.asking import passed_on
from xenoglot.gateway.bodies import json_in
from xenoglot.gateway.counting import count
from xenoglot.gateway.embedding import embed
from xenoglot.gateway.entry import Entry
from xenoglot.gateway.idempotency import once
from xenoglot.gateway.keys import Client
from xenoglot.gateway.listing import available
from xenoglot.gateway.metrics import MEDIA_TYPE
from xenoglot.gateway.parse import PARSE
from xenoglot.gateway.parse import serve as parse
from xenoglot.gateway.printable import for_log
from xenoglot.gateway.respond import fail, send, send_json
from xenoglot.gateway.routes import NOTHING, Endpoint
from xenoglot.gateway.tokens import detokenize, tokenize, tokenizer_info
from xenoglot.model.failure import Failure
from xenoglot.policy.throttle import source_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping, Sequence

    from xenoglot.codec.dialect import Dialect, Inquiry
    from xenoglot.gateway.application import Seen
    from xenoglot.gateway.exchange import Exchange
    from xenoglot.gateway.gateway import Gateway
    from xenoglot.gateway.observe import Record
    from xenoglot.gateway.routes import Found
    from xenoglot.model.catalog import ModelInfo

MODELS = "/v1/models"
"""Where several dialects have their lists of models: marks tell which is meant."""

USUAL_DIALECT = "chat"
"""Whose errors and lists are written where nothing tells which a client speaks."""

METHOD_NOT_ALLOWED = 405
UPGRADE_REQUIRED = 426
NO_CONTENT = 204
SERVICE_UNAVAILABLE = 503
TEXT = "text/plain; charset=utf-8"
ABOUT = b"Xenoglot: any LLM client, any model. GET /v1/models says which models are here.\n"

_HEADER_NAMES = re.compile(r"[A-Za-z0-9, _-]{1,1000}")


def endpoints() -> tuple[Endpoint, ...]:
    """Return the rows of the route table: those of each dialect installed, and the few that belong to none."""
    rows = [
        Endpoint(method="GET", path="/", policy="key", handler=_about),
        Endpoint(method="HEAD", path="/", policy="open", handler=_nothing),
        Endpoint(method="HEAD", path="/api/hello", policy="open", handler=_nothing),
        Endpoint(method="GET", path="/health", policy="open", handler=_health),
        Endpoint(method="GET", path="/health/ready", policy="open", handler=_ready),
        Endpoint(method="GET", path="/metrics", policy="admin", handler=_metrics),
        Endpoint(method="GET", path=MODELS, policy="key", handler=_models),
        Endpoint(method="POST", path=PARSE, policy="key", handler=parse),
        Endpoint(method="GET", path=f"{MODELS}/{{model}}", policy="key", handler=_model),
    ]
    for dialect in map(dialects.get, dialects.names()):
        rows += _rows(dialect)
    by_place: dict[tuple[str, str], Endpoint] = {}  # dialects of one vendor may list their models at one place
    for row in rows:
        by_place.setdefault((row.method, row.path), row)
    return tuple(by_place.values())


def mirrors() -> dict[str, list[Endpoint]]:
    """Return what is served behind other beginnings: what the usual dialect and its family have, models included."""
    usual = dialects.get(USUAL_DIALECT)
    lists = (MODELS, f"{MODELS}/{{model}}")
    rows = [replace(row, dialect=usual) if row.path in lists else row for row in endpoints()]
    alike = [row for row in rows if row.dialect is not None and row.dialect.encode_error is usual.encode_error]
    return {beginning: alike for dialect in map(dialects.get, dialects.names()) for beginning in dialect.mirrors}


def _rows(dialect: Dialect) -> Iterator[Endpoint]:
    """Yield what is served to the clients of one dialect."""
    answer = relay.serve if dialect.state is None else state.serve
    for path in dict.fromkeys(filter(None, (dialect.path, dialect.stream_path, *dialect.aliases))):
        yield Endpoint(method="POST", path=path, policy="key", handler=answer, dialect=dialect, once=True)
    if dialect.decode_count is not None and dialect.encode_count is not None:
        counting = partial(count, dialect.decode_count, dialect.encode_count)
        for path in filter(None, (dialect.count_path, *dialect.count_aliases)):
            yield Endpoint(method="POST", path=path, policy="key", handler=counting, dialect=dialect)
    if dialect.models_path != MODELS:
        yield Endpoint(method="GET", path=dialect.models_path, policy="key", handler=_models, dialect=dialect)
    yield from state_endpoints.rows(dialect)
    yield from batches.rows(dialect)
    yield from _asides(dialect)
    for inquiry in dialect.inquiries:
        handler = partial(_inquire, inquiry)
        yield Endpoint(
            method=inquiry.method, path=inquiry.path, policy=inquiry.policy, handler=handler, dialect=dialect
        )


def _asides(dialect: Dialect) -> Iterator[Endpoint]:
    """Yield where a dialect's clients ask a model for something else than words."""
    for form in dialect.embeddings:
        handler = partial(embed, form)
        for path in (form.path, *form.aliases):
            yield Endpoint(method="POST", path=path, policy="key", handler=handler, dialect=dialect, once=True)
    if dialect.tokens is not None:
        to, back = partial(tokenize, dialect.tokens), partial(detokenize, dialect.tokens)
        yield Endpoint(method="POST", path=dialect.tokens.path, policy="key", handler=to, dialect=dialect)
        yield Endpoint(method="POST", path=dialect.tokens.back_path, policy="key", handler=back, dialect=dialect)
        info = partial(tokenizer_info, dialect.tokens)
        yield Endpoint(method="GET", path=dialect.tokens.info_path, policy="key", handler=info, dialect=dialect)


def find(path: str, headers: Sequence[tuple[str, str]], gateway: Gateway) -> tuple[Found, Dialect]:
    """Return what is served at `path`, and the dialect to answer in.

    That is the route's; that of the paths that begin alike; that of which the headers bear a mark; the usual one. What
    servers of the client's dialect have at a path, and the gateway has not, is not what others have there.
    """
    found = gateway.routes.find(path)
    if found.rows and (stranger := _stranger(path, headers)):
        return NOTHING, stranger
    for row in found.rows.values():
        if row.dialect is not None:
            return found, row.dialect
    near = None if found.rows else gateway.routes.nearest(path)
    return found, near or _marked(headers) or dialects.get(USUAL_DIALECT)


def _marked(headers: Sequence[tuple[str, str]]) -> Dialect | None:
    """Return the dialect of which the headers bear a mark."""
    names = {name for name, _ in headers}
    return next((one for one in map(dialects.get, dialects.names()) if not names.isdisjoint(one.marks)), None)


def _stranger(path: str, headers: Sequence[tuple[str, str]]) -> Dialect | None:
    """Return the client's dialect, where that means something at `path` that is not served."""
    if not any(path.startswith(dialect.unserved) for dialect in map(dialects.get, dialects.names())):
        return None
    marked = _marked(headers)
    return marked if marked is not None and path.startswith(marked.unserved) else None


async def serve(  # noqa: PLR0913, PLR0917  what is known of a request
    exchange: Exchange, rows: Mapping[str, Endpoint], dialect: Dialect, gateway: Gateway, record: Record, seen: Seen
) -> None:
    """Check one request and hand it to its endpoint; if it may come in, that is noted in `seen`.

    Raises:
        FailureError: there is no answer, and nothing has been sent.
    """
    method = exchange.method
    row = rows.get(method) or (rows.get("GET") if method == "HEAD" else None)
    if row is not None:
        record.route = row.path
    record.dialect = dialect.name
    refusal = _refusal(exchange, row, gateway, record)
    if refusal is not None:
        await fail(exchange, dialect, refusal.failure, record, status=refusal.status)
    elif method == "OPTIONS" and record.origin is not None:
        await _preflight(exchange, rows, record)
    elif _needs_upgrade(exchange):
        problem = "the gateway speaks HTTP/1.1 alone: send the request by POST and without `upgrade`"
        await _refuse(exchange, dialect, record, problem, UPGRADE_REQUIRED, ("upgrade", "HTTP/1.1"))
    elif not rows:
        raise FailureError(Failure(kind="not_found", message=f"nothing is served at `{for_log(exchange.path)}`"))
    elif row is None:
        allowed = ", ".join(sorted({*rows, *(("HEAD",) if "GET" in rows else ())}))
        problem = f"`{for_log(method, 20)}` is not for this path: {allowed}"
        await _refuse(exchange, dialect, record, problem, METHOD_NOT_ALLOWED, ("allow", allowed))
    else:
        seen.entry = entry = _entry(exchange, row, dialect, gateway, record.client, exchange.variables)
        await enter(entry, exchange, gateway, record)


def let_in(exchange: Exchange, gateway: Gateway, seen: Seen | None) -> Entry | None:
    """Return the entry of a request that may come in and means one row of a dialect; it is noted in `seen`.

    `None` where it is for `serve` to see, and to tell: nothing is counted then.
    """
    known = None if seen is None else seen.entry
    if isinstance(known, Entry):
        return known if is_let_in_again(known, gateway) else None
    found = gateway.routes.find(exchange.path)
    row = found.rows.get(exchange.method)
    if row is None or row.dialect is None or row.form or _stranger(exchange.path, exchange.headers):
        return None
    if not _may_come(exchange, gateway):
        return None
    client = gateway.keyring.admit(exchange.headers, row.policy)
    if not isinstance(client, Client):
        return None
    try:
        entry = _entry(exchange, row, row.dialect, gateway, client, found.variables)
    except FailureError:
        return None
    if seen is not None:
        seen.entry = entry
    return entry if is_let_in_again(entry, gateway) else None


def _may_come(exchange: Exchange, gateway: Gateway) -> bool:
    """Whether nothing but its key could keep a request out."""
    headers, server = exchange.headers, gateway.config.server
    strange = check_host(headers, server) or check_origin(headers, server) or check_media(headers)
    return not (strange or _needs_upgrade(exchange) or shows_key(exchange.query))


def _entry(  # noqa: PLR0913, PLR0917  what is known of a head
    exchange: Exchange, row: Endpoint, dialect: Dialect, gateway: Gateway, client: Client, variables: Mapping[str, str]
) -> Entry:
    return Entry(
        leave=gateway.leave,
        route=row.path,
        handler=once(row.handler, exchange.headers) if row.once else row.handler,
        variables=variables,
        dialect=dialect,
        client=client,
        origin=exchange.header("origin"),
        source=source_of(exchange.peer) if gateway.keyring.needs_key(row.policy) else None,
        hops=hops.told(exchange.headers),
        passed=passed_on(exchange.headers, dialect),
    )


def enter(entry: Entry, exchange: Exchange, gateway: Gateway, record: Record) -> Awaitable[None]:
    """Hand a request that may come in to its endpoint."""
    note(entry, exchange, record)
    return entry.handler(exchange, entry.dialect, gateway, record)


def note(entry: Entry, exchange: Exchange, record: Record) -> None:
    """Note of a request what is known by its head."""
    record.route = entry.route
    record.dialect = entry.dialect.name
    record.client = entry.client
    record.origin = entry.origin
    exchange.variables = entry.variables
    hops.arrive(entry.hops)


def _refusal(exchange: Exchange, row: Endpoint | None, gateway: Gateway, record: Record) -> Refusal | None:
    """Return why the request may not pass; what is not in the table is behind the key too."""
    headers, server = exchange.headers, gateway.config.server
    refusal = check_host(headers, server) or check_origin(headers, server)
    if refusal is not None:
        return refusal
    record.origin = exchange.header("origin")
    preflight = exchange.method == "OPTIONS" and record.origin is not None
    if not preflight:
        client = admitted(exchange, "key" if row is None else row.policy, gateway)
        if isinstance(client, Failure):
            return Refusal(client)
        record.client = client
    return check_media(headers, form=row.form) if exchange.method == "POST" and row is not None else None


def _needs_upgrade(exchange: Exchange) -> bool:
    """Return whether the request cannot be served without the other protocol that it proposes.

    A proposal may be passed over (RFC 9110 section 7.8), but some servers give out no body behind one.
    """
    proposed = (exchange.header("upgrade") or "").strip().lower()
    bodiless = exchange.method == "POST" and not exchange.reads_behind_upgrade
    return proposed == "websocket" or (bool(proposed) and bodiless)


async def _refuse(  # noqa: PLR0913, PLR0917  the parts of a refusal
    exchange: Exchange, dialect: Dialect, record: Record, problem: str, status: int, header: tuple[str, str]
) -> None:
    failure = Failure(kind="invalid_request", message=problem)
    await fail(exchange, dialect, failure, record, status=status, more=[header])


async def _preflight(exchange: Exchange, rows: Mapping[str, Endpoint], record: Record) -> None:
    """Tell a browser what a page of an allowed origin may send (https://fetch.spec.whatwg.org/#http-cors-protocol)."""
    wanted = exchange.header("access-control-request-headers") or ""
    allowed = [
        ("access-control-allow-methods", ", ".join(rows)),
        ("access-control-allow-headers", wanted if _HEADER_NAMES.fullmatch(wanted) else "content-type"),
        ("access-control-max-age", "600"),
    ]
    record.begin(NO_CONTENT)
    await exchange.start(NO_CONTENT, [*record.headers(), *allowed])
    await exchange.end()


async def _nothing(exchange: Exchange, _dialect: Dialect, _gateway: Gateway, record: Record) -> None:
    await send(exchange, record, 200, b"", media_type=TEXT)


async def _about(exchange: Exchange, _dialect: Dialect, _gateway: Gateway, record: Record) -> None:
    await send(exchange, record, 200, ABOUT, media_type=TEXT)


async def _health(exchange: Exchange, _dialect: Dialect, _gateway: Gateway, record: Record) -> None:
    await send_json(exchange, record, {"status": "ok"})


async def _ready(exchange: Exchange, _dialect: Dialect, gateway: Gateway, record: Record) -> None:
    if gateway.draining:
        await send_json(exchange, record, {"status": "draining"}, SERVICE_UNAVAILABLE)
    else:
        await send_json(exchange, record, {"status": "ready"})


async def _metrics(exchange: Exchange, _dialect: Dialect, gateway: Gateway, record: Record) -> None:
    if not gateway.config.server.tells_metrics:
        raise FailureError(Failure(kind="not_found", message="metrics are not told here; see `metrics` under [server]"))
    await send(exchange, record, 200, gateway.metrics(), media_type=MEDIA_TYPE)


async def _models(exchange: Exchange, dialect: Dialect, gateway: Gateway, record: Record) -> None:
    await send_json(exchange, record, dialect.encode_models(await _available(exchange, gateway, record)))


async def _model(exchange: Exchange, dialect: Dialect, gateway: Gateway, record: Record) -> None:
    name = unquote(exchange.variables["model"])
    for model in await _available(exchange, gateway, record):
        if model.id == name:
            await send_json(exchange, record, dialect.encode_model(model))
            return
    raise FailureError(gateway.unknown_model(name))


async def _inquire(inquiry: Inquiry, exchange: Exchange, _dialect: Dialect, gateway: Gateway, record: Record) -> None:
    """Answer what else a dialect's clients ask, from the list of models."""
    body = await exchange.read_body(gateway.config.server.body_limit)
    asked = await json_in(body, gateway) if body.strip() else {}
    if not isinstance(asked, dict):
        raise expected("$", "object", asked)
    said = asked | {name: unquote(value) for name, value in exchange.variables.items()}
    answer = inquiry.answer(said, await _allowed(gateway, record))
    if answer is None:
        name = said.get("model")
        raise FailureError(gateway.unknown_model(name if isinstance(name, str) else ""))
    await send_json(exchange, record, answer)


async def _available(exchange: Exchange, gateway: Gateway, record: Record) -> Sequence[ModelInfo]:
    await exchange.read_body(gateway.config.server.body_limit)  # nothing is in it; now the client's leaving is noticed
    return await _allowed(gateway, record)


async def _allowed(gateway: Gateway, record: Record) -> Sequence[ModelInfo]:
    """Return the models that the client may ask for."""
    models = await available(gateway.router, gateway.backends, gateway.config.upstreams)
    return [model for model in models if record.client.allows(model.id)]

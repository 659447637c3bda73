"""The rows of the route table, made from the endpoints of a gateway and the paths of each dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.errors import FailureError
from xenoglot.gateway.api.forward import ForwardEndpoint
from xenoglot.gateway.api.health import LIVE, READY, HealthEndpoint
from xenoglot.gateway.api.key_report import KEY, KeyEndpoint
from xenoglot.gateway.api.metrics import MEDIA_TYPE
from xenoglot.gateway.api.models import ModelsEndpoint
from xenoglot.gateway.api.operations import CountEndpoint, OperationEndpoint
from xenoglot.gateway.api.parse import PARSE, ParseEndpoint
from xenoglot.gateway.api.usage_report import USAGE, UsageEndpoint
from xenoglot.gateway.batches.routes import BatchEndpoints
from xenoglot.gateway.endpoint.request_context import Handler
from xenoglot.gateway.endpoint.responses import send
from xenoglot.gateway.endpoint.routes import USUAL_DIALECT, EndpointRow
from xenoglot.gateway.relay.task_driver import RelayEndpoint
from xenoglot.gateway.stored.compact import CompactEndpoint
from xenoglot.gateway.stored.endpoints import StoredEndpoints
from xenoglot.gateway.stored.intake import Intake
from xenoglot.gateway.web_socket.endpoint import WebSocketEndpoint
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.endpoint.request_context import RequestContext

MODELS = "/v1/models"
"""Where several dialects have their lists of models: marks show which is meant."""

ADMIN = "/admin/v1/{path}"
"""The administration, which has a table of its own: `gateway.admin.table`."""
OPENAPI = "/openapi.json"
CONSOLE = ("/console", "/console/{path}")
"""The web console, which has sessions and a table of its own: `gateway.console.table`."""
ORGANIZATION = ("/v1/organization/usage/completions", "/v1/organization/costs")
"""Paths of OpenAI's administration API, served by the same table."""
CHANGING_METHODS = ("POST", "PATCH", "DELETE")

TEXT = "text/plain; charset=utf-8"
ABOUT = b"Xenoglot: any LLM client, any model. GET /v1/models says which models are here.\n"


class StatusEndpoint(Struct, frozen=True):
    """Endpoints about the gateway itself. `metrics` is `None` where they are not exposed."""

    metrics: Callable[[], bytes] | None

    async def nothing(self, ctx: RequestContext) -> None:
        """Answer without a word."""
        await send(ctx, 200, b"", media_type=TEXT)

    async def about(self, ctx: RequestContext) -> None:
        """Send a line about this gateway."""
        await send(ctx, 200, ABOUT, media_type=TEXT)

    async def told_metrics(self, ctx: RequestContext) -> None:
        """Send the metrics."""
        if self.metrics is None:
            message = "metrics are not told here; see `metrics` under [server]"
            raise FailureError(Failure(kind="not_found", message=message))
        await send(ctx, 200, self.metrics(), media_type=MEDIA_TYPE)


class Endpoints(Struct, frozen=True, kw_only=True):
    """The endpoints of a gateway, each with the services that it needs."""

    relay: RelayEndpoint
    intake: Intake
    stored: StoredEndpoints
    batches: BatchEndpoints
    compact: CompactEndpoint
    web_socket: WebSocketEndpoint
    count: CountEndpoint
    operation: OperationEndpoint
    forwarding: ForwardEndpoint
    parse: ParseEndpoint
    models: ModelsEndpoint
    status: StatusEndpoint
    health: HealthEndpoint
    usage: UsageEndpoint
    key: KeyEndpoint
    admin: Handler
    openapi: Handler
    console: Handler

    def rows(self) -> tuple[EndpointRow, ...]:
        """Return the rows of the route table: those of each dialect installed, and the few that belong to none."""
        status, models, health = self.status, self.models, self.health
        rows = [
            EndpointRow(method="GET", path="/", policy="key", handler=status.about),
            EndpointRow(method="HEAD", path="/", policy="open", handler=status.nothing),
            EndpointRow(method="HEAD", path="/api/hello", policy="open", handler=status.nothing),
            EndpointRow(method="GET", path="/health", policy="open", handler=health.live),
            EndpointRow(method="GET", path="/health/ready", policy="open", handler=health.accepting),
            EndpointRow(method="GET", path=LIVE, policy="open", handler=health.live),
            EndpointRow(method="GET", path=READY, policy="open", handler=health.ready),
            EndpointRow(method="GET", path="/metrics", policy="admin", handler=status.told_metrics),
            EndpointRow(method="GET", path=MODELS, policy="key", handler=models.list_models),
            EndpointRow(method="GET", path=USAGE, policy="key", handler=self.usage.serve),
            EndpointRow(method="GET", path=KEY, policy="key", handler=self.key.serve),
            EndpointRow(method="POST", path=PARSE, policy="key", handler=self.parse.serve),
            EndpointRow(method="GET", path=f"{MODELS}/{{model}}", policy="key", handler=models.one_model),
            *(EndpointRow(method="GET", path=path, policy="view", handler=self.admin) for path in ORGANIZATION),
            EndpointRow(method="GET", path=OPENAPI, policy="open", handler=self.openapi),
            EndpointRow(method="GET", path=ADMIN, policy="view", handler=self.admin),
            *(EndpointRow(method=one, path=ADMIN, policy="manage", handler=self.admin) for one in CHANGING_METHODS),
            *(
                EndpointRow(method=method, path=path, policy="open", handler=self.console, raw=True)
                for path in CONSOLE
                for method in ("GET", "POST")
            ),
        ]
        for dialect in (*map(dialects.get, dialects.names()), *dialects.hosted_dialects()):
            rows += self._rows(dialect)
        by_place: dict[tuple[str, str, str], EndpointRow] = {}  # dialects of one vendor may list models at one place
        for row in rows:
            marked = row.dialect.name if row.marked and row.dialect is not None else ""
            by_place.setdefault((row.method, row.path, marked), row)
        return tuple(by_place.values())

    def _rows(self, dialect: Dialect) -> Iterator[EndpointRow]:
        """Yield what is served to the clients of one dialect."""
        answer = self.relay.serve if dialect.state is None else self.intake.serve
        for path in dict.fromkeys(filter(None, (dialect.path, dialect.stream_path, *dialect.aliases))):
            yield EndpointRow(
                method="POST", path=path, policy="key", handler=answer, dialect=dialect, once=True, generates=True
            )
        decode_count = dialects.count_decoder(dialect)
        if decode_count is not None and dialect.encode_count is not None:
            counting = partial(self.count.serve, decode_count, dialect.encode_count)
            for path in filter(None, (dialect.count_path, *dialect.count_aliases)):
                yield EndpointRow(method="POST", path=path, policy="key", handler=counting, dialect=dialect)
        if dialect.models_path != MODELS:
            handler = self.models.list_models
            yield EndpointRow(method="GET", path=dialect.models_path, policy="key", handler=handler, dialect=dialect)
        if dialect.compaction is not None:
            compacting = partial(self.compact.serve, dialect.compaction)
            path = dialect.compaction.path
            yield EndpointRow(method="POST", path=path, policy="key", handler=compacting, dialect=dialect, once=True)
        if dialect.web_socket is not None:
            opening = partial(self.web_socket.serve, dialect.web_socket)
            path = dialect.web_socket.path
            yield EndpointRow(method="GET", path=path, policy="key", handler=opening, dialect=dialect, upgrade=True)
        yield from self.stored.rows(dialect)
        yield from self.batches.rows(dialect)
        yield from self._operations(dialect)
        for forwarded in dialect.forwarded_paths:
            handler = partial(self.forwarding.serve, forwarded)
            yield EndpointRow(
                method="POST",
                path=forwarded.path,
                policy="key",
                handler=handler,
                dialect=dialect,
                form=forwarded.form,
            )
        for inquiry in dialect.inquiries:
            yield EndpointRow(
                method=inquiry.method,
                path=inquiry.path,
                policy=inquiry.policy,
                handler=partial(self.models.inquire, inquiry),
                dialect=dialect,
            )

    def _operations(self, dialect: Dialect) -> Iterator[EndpointRow]:
        """Yield the endpoints that answer in one piece."""
        for form in dialect.operations:
            handler, once = partial(self.operation.serve, form), form.operation.limited
            for path in form.paths:
                yield EndpointRow(
                    method=form.method, path=path, policy="key", handler=handler, dialect=dialect, once=once
                )


def mirrors(rows: tuple[EndpointRow, ...]) -> dict[str, list[EndpointRow]]:
    """Return the rows served under other prefixes: those of the usual dialect and its family, models included."""
    usual = dialects.get(USUAL_DIALECT)
    lists = (MODELS, f"{MODELS}/{{model}}")
    own = [replace(row, dialect=usual) if row.path in lists else row for row in rows]
    alike = [row for row in own if row.dialect is not None and row.dialect.encode_error is usual.encode_error]
    return {beginning: alike for dialect in map(dialects.get, dialects.names()) for beginning in dialect.mirrors}

"""Executes one request of a batch through the same endpoints, limits and targets as a posted request."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from xenoglot import dialect_registry as dialects
from xenoglot.backends.batch_lines import LineOutcome, encode_output, encode_result, one_line
from xenoglot.backends.offload import offload
from xenoglot.codec.invalid_request import invalid
from xenoglot.codec.json.json_io import MOST_NUMBERS, decode_answer
from xenoglot.errors import FailureError, WireError, whereabouts
from xenoglot.gateway.config.settings import BatchSettings
from xenoglot.gateway.endpoint.request_context import AuthService, BodyReader, RequestContext
from xenoglot.gateway.endpoint.routes import Routes
from xenoglot.gateway.http.application import BodyTooLargeError
from xenoglot.gateway.observability.request_log import RequestLogger
from xenoglot.gateway.routing.reservation import Dispatcher
from xenoglot.gateway.store_service import StoreService
from xenoglot.gateway.stored.background import BROKEN
from xenoglot.model.failure import Failure
from xenoglot.model.response import Usage
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.backends.batch_lines import Unanswered
    from xenoglot.codec.features.batch import Batch
    from xenoglot.gateway.endpoint.routes import EndpointRow
    from xenoglot.model.json import JSON
    from xenoglot.store.batches import BatchRow

REVOKED = Failure(kind="authentication", message="the API key that the batch was made with is not known any more")
GARBLED = Failure(kind="upstream", message="the answer of the server is not JSON")
NOT_SERVED = Failure(kind="not_found", message="nothing is served any more at the endpoint of the batch")

_WHOLE_ALONE = ("stream", "background")
"""What no request of a batch may want: its answer is one whole, and made when it is made."""

_logger = logging.getLogger("xenoglot.gateway")


class BatchServices(Struct, frozen=True, kw_only=True):
    """What it takes to have batches answered; after `drain_seconds` a gateway that stops waits no longer."""

    keeper: StoreService
    settings: BatchSettings
    drain_seconds: float
    dispatcher: Dispatcher
    bodies: BodyReader
    routes: Routes
    observer: RequestLogger
    auth: AuthService


class LineResult(Struct, frozen=True, kw_only=True):
    """What became of a request: `line` is the client's result line, `failure` why there is no answer.

    `asked`: a model was called.
    """

    line: bytes
    failure: Failure | None = None
    asked: bool = True
    usage: Usage = Usage()


class LineExchange:
    """A request of a batch as an exchange: what is written of its response is kept here."""

    method = "POST"
    query = ""
    peer = ""
    reads_behind_upgrade = True

    def __init__(self, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        self.path = path
        self.headers = headers
        self.variables: Mapping[str, str] = {}
        self.status = 0
        self.written: list[bytes] = []
        self._body = body

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name` (lower case)."""
        return next((value for field, value in self.headers if field == name), None)

    async def read_body(self, _limit: int) -> bytes:
        """Return the body."""
        return self._body

    async def start(self, status: int, _headers: Sequence[tuple[str, str]]) -> None:
        """Keep the status."""
        self.status = status

    async def write(self, data: bytes) -> None:
        """Keep a piece of the response."""
        self.written.append(data)

    async def end(self, data: bytes = b"") -> None:
        """Keep the last piece."""
        self.written.append(data)

    async def answer(self) -> JSON:
        """Return what was written.

        Raises:
            FailureError: it is no JSON; it came from a server as it is.
        """
        data = b"".join(self.written)
        try:
            return await offload(len(data), lambda: decode_answer(data, most=MOST_NUMBERS))
        except WireError:
            raise FailureError(GARBLED) from None

    def abort(self) -> None:
        """Nothing: the reason for the abort is known already."""


class _Named(Struct):
    model: str = ""


_decode_named = msgspec.json.Decoder(_Named).decode


def model_of(request: BatchRow) -> str:
    """Return the model that a request asks, as far as it names one."""
    try:
        return _decode_named(request.body).model
    except (UnicodeError, msgspec.MsgspecError, RecursionError):
        return ""


async def ask(services: BatchServices, batch: Batch, request: BatchRow) -> LineResult:
    """Answer one request of a batch as its client's; each outcome becomes an answer of the endpoint."""
    row = services.routes.find(batch.endpoint).rows.get("POST")
    record = services.observer.record("POST")
    dialect = dialects.get(batch.kind)
    if row is not None and row.dialect is not None:
        record.route, dialect = row.path, row.dialect
    record.dialect = dialect.name
    exchange = LineExchange(batch.endpoint, [("content-type", "application/json"), *batch.headers], request.body)
    try:
        outcome = await _answered(services, row, RequestContext(exchange, dialect, record), exchange, batch.owner)
        if isinstance(outcome, LineOutcome):
            size = sum(map(len, exchange.written))
            told = await offload(size, lambda: line(batch, request.number, request.name, outcome))
            return LineResult(line=told, usage=record.usage or Usage())
        status, body = dialect.encode_error(replace(outcome, request_id=record.request_id))
        record.begin(status)
        said = LineOutcome(status=status, body=body, request_id=record.request_id)
        return LineResult(line=line(batch, request.number, request.name, said), failure=outcome, asked=record.tries > 0)
    finally:
        services.observer.write(record)


def line(batch: Batch, number: int, name: str, outcome: LineOutcome) -> bytes:
    """Return the line of a result, its end included."""
    batching = dialects.get(batch.kind).batching
    if batching is not None and batching.files_path is not None:
        told = {"id": f"batch_req_{batch.id.rpartition('_')[2]}_{number}", "custom_id": name, **encode_output(outcome)}
    else:
        told = {"custom_id": name, "result": encode_result(outcome)}
    return one_line(told)


def left(batch: Batch, number: int, name: str, why: Unanswered) -> bytes:
    """Return the line of a request that was not sent before its batch was over."""
    return line(batch, number, name, LineOutcome(unanswered=why))


async def _answered(
    services: BatchServices, row: EndpointRow | None, ctx: RequestContext, exchange: LineExchange, owner: str
) -> LineOutcome | Failure:
    """Have an endpoint answer; return the answer, or why there is none."""
    record = ctx.record
    try:
        await _answer(services, row, ctx, owner)
        return LineOutcome(status=exchange.status, body=await exchange.answer(), request_id=record.request_id)
    except FailureError as error:
        failure = error.failure
    except WireError as error:
        failure = invalid(error)
    except BodyTooLargeError as error:
        failure = Failure(kind="too_large", message=str(error))
    except StoreError as error:
        _logger.error("request %s: the store fails: %s", record.request_id, error)  # noqa: TRY400  no texts
        failure = BROKEN
    except Exception as error:  # noqa: BLE001  the outermost shell of a task: nobody else would own up to a bug
        _logger.error("request %s failed: %s", record.request_id, whereabouts(error))  # noqa: TRY400  no texts
        failure = BROKEN
    record.failed(failure)
    return failure


async def _answer(services: BatchServices, row: EndpointRow | None, ctx: RequestContext, owner: str) -> None:
    auth = services.auth
    client = auth.keyring.client_of(owner)
    if client is None and auth.stored is not None:
        client = await auth.stored.client_of(owner)
    if client is None:
        raise FailureError(REVOKED)
    ctx.record.client = client
    if row is None or row.dialect is None:
        raise FailureError(NOT_SERVED)
    body = await services.bodies.request(await services.bodies.read(ctx.exchange))
    for field in _WHOLE_ALONE:
        if isinstance(body, dict) and body.get(field):
            raise WireError(f"$.{field}", "is not for a request of a batch: its answer is one whole")
    await row.handler(ctx)

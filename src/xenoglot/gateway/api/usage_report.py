"""`GET /v1/usage`: what a client has used, and what it cost, from the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qs

from msgspec import Struct

from xenoglot.errors import FailureError
from xenoglot.gateway.endpoint.responses import send_json
from xenoglot.gateway.observability.request_log import RequestSink
from xenoglot.gateway.store_service import StoreService
from xenoglot.model.failure import Failure
from xenoglot.store.ledger import queries
from xenoglot.store.ledger.interval import since

if TYPE_CHECKING:
    from xenoglot.gateway.endpoint.request_context import RequestContext
    from xenoglot.model.json import JSON
    from xenoglot.store.queries import Database

USAGE = "/v1/usage"
GROUPS = ("model", "dialect", "key", "hour", "day")
"""What a client can group its usage by."""
USUAL_PERIOD = "30d"

OFF = Failure(kind="not_found", message="the gateway records no usage: its ledger is off")


class UsageEndpoint(Struct, frozen=True):
    """Reports their usage to clients. It needs a `ledger`."""

    keeper: StoreService | None
    ledger: RequestSink | None

    async def serve(self, ctx: RequestContext) -> None:
        """Answer with the sums of the client's own requests: of its tenant, or of its key.

        Raises:
            FailureError: the ledger is off, or a parameter is invalid.
        """
        keeper, ledger, client = self.keeper, self.ledger, ctx.client
        if keeper is None or ledger is None:
            raise FailureError(OFF)
        given = {name: values[-1] for name, values in parse_qs(ctx.exchange.query).items()}
        now = keeper.now()
        by = [name for name in given.get("by", "model").split(",") if name]
        unknown = [name for name in by if name not in GROUPS]
        if unknown:
            raise _invalid("by", f"expected some of {', '.join(GROUPS)}, separated by commas")
        try:
            begin = since(given.get("since", USUAL_PERIOD), now)
            end = since(given["until"], now) if "until" in given else now + 1
        except ValueError as error:
            raise _invalid("since and until", str(error)) from None
        tenant, key = client.tenant, client.key
        which = queries.UsageFilter(
            since=begin // 3600 * 3600, until=end, tenant=tenant or "", key=None if tenant is not None else key or ""
        )
        await ledger.flush()
        sums = await keeper.need(cast("Database", keeper.store).read(queries.usage(by, which)))
        body: JSON = {"object": "usage", "since": which.since, "until": end, "by": by, "data": sums}
        await send_json(ctx, body)


def _invalid(name: str, problem: str) -> FailureError:
    return FailureError(Failure(kind="invalid_request", message=f"parameter {name}: {problem}"))

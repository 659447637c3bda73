"""One request as its handler sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from xenoglot.codec.dialect import Dialect
from xenoglot.gateway.http.exchange import Exchange
from xenoglot.gateway.observability.request_log import RequestLog

if TYPE_CHECKING:
    from xenoglot.gateway.auth.keys import Principal


class RequestContext(Struct):
    """A request that is being answered in `dialect`, and its line in the log, which names its client and its route.

    `hops` is how many gateways it has come through.
    """

    exchange: Exchange
    dialect: Dialect
    record: RequestLog
    hops: int = 0

    @property
    def client(self) -> Principal:
        """Who sent it."""
        return self.record.client

    @property
    def route(self) -> str:
        """The path in the route table; empty if there is none."""
        return self.record.route or ""


Handler: TypeAlias = Callable[[RequestContext], Awaitable[None]]

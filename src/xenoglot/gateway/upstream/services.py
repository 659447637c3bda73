"""Services that a call to an upstream needs, as one value."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from xenoglot.gateway.config.settings import ClientDialect
from xenoglot.gateway.routing.model_router import ModelRouter
from xenoglot.gateway.routing.reservation import Dispatcher
from xenoglot.gateway.store_service import StoreService


class UpstreamServices(Struct, frozen=True, kw_only=True):
    """Services of calls: model names, targets and limits, and the store for reasoning that clients strip.

    `clients` are the settings of clients by their dialect; `loopback` is whether only this machine reaches the gateway.
    """

    models: ModelRouter
    dispatcher: Dispatcher
    keeper: StoreService | None
    clients: Mapping[str, ClientDialect]
    loopback: bool

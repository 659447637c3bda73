"""What a call of a model needs of the gateway, as one value."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from xenoglot.gateway.hold import Dispatcher
from xenoglot.gateway.keeper import Keeper
from xenoglot.gateway.model_router import ModelRouter
from xenoglot.gateway.settings import ClientDialect


class UpstreamServices(Struct, frozen=True, kw_only=True):
    """Services of calls: model names, targets and limits, and the store for reasoning that clients strip.

    `clients` are the settings of clients by their dialect; `loopback` is whether only this machine reaches the gateway.
    """

    models: ModelRouter
    dispatcher: Dispatcher
    keeper: Keeper | None
    clients: Mapping[str, ClientDialect]
    loopback: bool

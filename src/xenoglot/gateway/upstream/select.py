"""Selects the backend of a route, or a scripted answer where the dialect needs no model for the request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot import dialect_registry as dialects
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.upstream.preserve_reasoning import preserving

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend
    from xenoglot.codec.dialect import Dialect
    from xenoglot.gateway.routing.router import Route
    from xenoglot.gateway.upstream.services import UpstreamServices
    from xenoglot.model.request import Request
    from xenoglot.model.response import Response


def answering(services: UpstreamServices, route: Route, dialect: Dialect, request: Request, owner: str) -> Backend:
    """Return who answers a `request` of `owner`'s, a client of `dialect`."""
    answer = _at_once(services, route, dialect, request)
    return preserving(services, route, dialect.name, owner) if answer is None else Scripted(answer, name=route.backend)


def _at_once(services: UpstreamServices, route: Route, dialect: Dialect, request: Request) -> Response | None:
    """Return the answer that needs no model; a server that knows such requests itself is to do what they say."""
    if dialect.answer_at_once is None:
        return None
    upstream = services.models.upstream(route)
    if upstream is not None and (
        upstream.speaks(dialect.name, route.model)
        or dialects.get(upstream.dialect).answer_at_once is dialect.answer_at_once
    ):
        return None
    return dialect.answer_at_once(request)

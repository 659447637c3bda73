"""Who answers on a route, with what is done here for a model or a server that cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.text.syntax import AUTO, OFF

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.routing import Route


def reading(backend: Backend, route: Route) -> Backend:
    """Return `backend` as `route` reads its answers; itself where they need no reading."""
    emulate = route.emulate
    textual = _textual(backend, route)
    if not emulate.acts:
        return textual
    from xenoglot.backends.structured import Structured  # noqa: PLC0415  few gateways need it

    return Structured(textual, emulate)


def _textual(backend: Backend, route: Route) -> Backend:
    emulate = route.emulate
    syntax = AUTO if route.text_syntax == OFF and emulate.tools else route.text_syntax
    if syntax == OFF:
        return backend
    from xenoglot.backends.textual import TextPolicy, Textual  # noqa: PLC0415  as above

    return Textual(backend, TextPolicy(syntax=syntax, tools=emulate.tools, repair=emulate.repair))

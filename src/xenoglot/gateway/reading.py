"""Who answers on a route, with what is done here for a model or a server that cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.backends.structured import Structured
from xenoglot.backends.textual import TextPolicy, Textual
from xenoglot.text.syntax import AUTO, OFF

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.routing import Route


def reading(backend: Backend, route: Route) -> Backend:
    """Return `backend` as `route` reads its answers; itself where they need no reading."""
    emulate = route.emulate
    textual = _textual(backend, route)
    return Structured(textual, emulate) if emulate.acts else textual


def _textual(backend: Backend, route: Route) -> Backend:
    emulate = route.emulate
    syntax = AUTO if route.text_syntax == OFF and emulate.tools else route.text_syntax
    if syntax == OFF:
        return backend
    return Textual(backend, TextPolicy(syntax=syntax, tools=emulate.tools, repair=emulate.repair))

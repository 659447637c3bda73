"""Wraps the backend of a route in the emulation that the route configures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.backends.wrappers.emulate import read_as

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend
    from xenoglot.gateway.routing.router import Route


def reading(backend: Backend, route: Route) -> Backend:
    """Return `backend` as `route` reads its answers; itself where they need no reading."""
    return read_as(backend, route.text_syntax, route.emulate)

"""Selects the stop strings that a request can hold, by the limits of its dialect and server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.requests.encode_context import came_from
from xenoglot.codec.target import Target

if TYPE_CHECKING:
    from xenoglot.codec.dialect import Dialect
    from xenoglot.model.request import Request

_UNKNOWN = Target().stop_limit
"""What stands where nothing is known of the server: then the dialect's own limit holds."""


def sendable_stops(request: Request, dialect: Dialect, target: Target) -> tuple[str, ...] | None:
    """Return those of the stop strings that can be sent to a server; `None` if all can, or there are none.

    A string that is empty ends nothing: it does not count. What came in the server's own dialect returns unchanged,
    unless `target` knows a limit.
    """
    if not request.sampling.stop:
        return None
    stops = [stop for stop in request.sampling.stop if stop]
    fit = _fit(request, stops, dialect, target)
    return None if len(fit) == len(stops) else tuple(fit)


def _fit(request: Request, stops: list[str], dialect: Dialect, target: Target) -> list[str]:
    if target.stops == "ours" or dialect.stop_limit == 0:
        return []
    if target.stop_limit != _UNKNOWN:
        limit = target.stop_limit
    elif came_from(request, dialect.name):
        return stops
    else:
        limit = dialect.stop_limit
    return [stop for stop in stops if dialect.blank_stops or stop.strip()][:limit]

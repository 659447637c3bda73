"""Reads, selects and writes stop strings, by the limits of dialect and server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.fields import Write
from xenoglot.codec.reader import Reader, expected
from xenoglot.codec.requests.encode_context import EncodeContext, came_from
from xenoglot.codec.target import Target
from xenoglot.errors import WireError
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Request

if TYPE_CHECKING:
    from xenoglot.codec.dialect import Dialect

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


def take_stop(reader: Reader, key: str, form: JSONObject) -> tuple[str, ...] | None:
    """Take the stop strings: one alone, or a list.

    Raises:
        WireError: it is of a wrong type.
    """
    alone = reader.take_if(key, str)
    if alone is not None:
        form["stop"] = "string"
        return (alone,)
    if key in reader and type(reader.peek(key)) is not list:
        raise expected(reader.at(key), "str or list", reader.peek(key))
    return reader.strings(key)


def stop_writer(most: int) -> Write:
    """Return what writes the stop strings to a dialect of at most `most`: one alone as it came, else a list."""

    def write(stop: tuple[str, ...], form: JSONObject, context: EncodeContext) -> JSON:
        limit = context.target.stop_limit
        if limit == _UNKNOWN:
            limit = None if context.home else most
        if limit is not None and len(stop) > limit:
            raise WireError("$.stop", f"the server takes at most {limit} stop strings")
        return stop[0] if "stop" in form and len(stop) == 1 else list(stop)

    return write

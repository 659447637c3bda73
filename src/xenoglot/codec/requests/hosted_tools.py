"""Fields of hosted tools that dialects write alike: where the user is, and what a dialect has no field for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader
from xenoglot.model.content import Extra
from xenoglot.model.hosted import HostedTool, Location

if TYPE_CHECKING:
    from collections.abc import Collection

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.target import Target
    from xenoglot.model.content import HostedKind
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import RequestTool

_PLACE = ("city", "region", "country", "timezone")
_SETTINGS = (
    "allowed_domains",
    "blocked_domains",
    "max_uses",
    "location",
    "context_size",
    "store_ids",
    "max_results",
    "metadata_filter",
    "cache",
)


def hosted_kinds(own: Collection[HostedKind], target: Target) -> Collection[HostedKind]:
    """Return the tools that a server runs: those that its facts name, else the `own` ones of its dialect."""
    return own if target.hosted_tools is None else target.hosted_tools


def take_location(reader: Reader, key: str, dialect: str) -> Location | None:
    """Take an `approximate` location, flat or in an object of that name; one of another form stays in the rest."""
    value = reader.peek(key)
    if not isinstance(value, dict) or value.get("type") != "approximate":
        return None
    outer = Reader(reader.take(key, dict), reader.at(key))
    outer.take("type", str)
    nested = isinstance(outer.peek("approximate"), dict)
    inner = (outer.object("approximate") or outer) if nested else outer
    said = {name: inner.take(name, str) for name in _PLACE}
    fields = {**inner.rest(), **outer.rest()}
    return Location(**said, extra=Extra(dialect=dialect, fields=fields) if fields else None)


def encode_location(location: Location, where: str, losses: Losses, dialect: str) -> JSONObject:
    """Return the fields of a location, without its `type`."""
    said = {name: value for name in _PLACE if (value := getattr(location, name)) is not None}
    return {**said, **losses.carry(location.extra, f"{where}.location", dialect)}


def note_settings(tool: HostedTool, where: str, losses: Losses, *written: str) -> None:
    """Report the settings of a tool that the dialect has no field for: all that are not `written`."""
    for name in _SETTINGS:
        if name not in written and getattr(tool, name) is not None:
            losses.dropped(where, name, f"the dialect's {tool.kind.replace('_', ' ')} has no such setting")


def is_own(tool: RequestTool, dialect: str) -> bool:
    """Return whether a hosted tool came in `dialect`."""
    return isinstance(tool, HostedTool) and tool.extra is not None and tool.extra.dialect == dialect

"""The name of the dialect, its unions and cache points, and its unknown fields in nested objects.

Many objects of the API are unions: they have one field, whose name is the kind of the value
(`"union": true` in `bedrock-runtime/2023-09-30/service-2.json` of botocore).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader
from xenoglot.codec.unknown_fields import merge_rest
from xenoglot.model.content import CacheMark

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import Extra
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Effort

NAME = "converse"
"""The name of this dialect in `Extra`, `Opaque`, `Finish` and `Origin`."""

EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
"""Values of `OutputConfig.effort`, which is a free text of 16 characters in the published model."""

CACHE_POINT = "cachePoint"
CACHE_TTLS = ("5m", "1h")
"""`CacheTTL` in the published model."""

_BESIDE = "/"
"""Begins the name of an unknown field that stands next to the only field of a union, not in it."""


def with_rest(own: JSONObject, extra: Extra | None, where: str, losses: Losses) -> JSONObject:
    """Return the fields `own` with those of `extra` that this dialect carries; objects that are in both are merged."""
    return merge_rest(own, extra, NAME, where, losses)


def with_said(own: JSONObject, **optional: JSON) -> JSONObject:
    """Return `own` with those of the `optional` fields that are set."""
    own.update({key: value for key, value in optional.items() if value is not None})
    return own


def take_member(union: JSON, name: str, path: str) -> Reader:
    """Return a reader of the object that is the field `name` of a union; it also has the fields next to it."""
    outer = Reader(union, path)
    inner = Reader(outer.need(name, dict), outer.at(name))
    inner.rest().update({_BESIDE + key: value for key, value in outer.rest().items()})
    return inner


def member(name: str, fields: JSONObject) -> JSONObject:
    """Return the union whose only field is `name`."""
    beside = {key.removeprefix(_BESIDE): value for key, value in fields.items() if key.startswith(_BESIDE)}
    if not beside:
        return {name: fields}
    return {name: {key: value for key, value in fields.items() if not key.startswith(_BESIDE)}, **beside}


def read_cache_point(block: JSON, path: str) -> CacheMark | None:
    """Return the mark of a cache point; `None` for any other block, and for a point of an unknown type."""
    point = block.get(CACHE_POINT) if isinstance(block, dict) else None
    if not isinstance(point, dict) or point.get("type") != "default":
        return None
    reader = take_member(block, CACHE_POINT, path)
    reader.take("type", str)
    return CacheMark(ttl=reader.take_if("ttl", str), extra=reader.extra(NAME))


def write_cache_point(mark: CacheMark, where: str, losses: Losses, *, home: bool) -> JSONObject:
    """Return the cache point for a mark; a time to live that the dialect does not have becomes the nearest."""
    ttl = mark.ttl
    if ttl is not None and ttl not in CACHE_TTLS and not home:
        ttl = CACHE_TTLS[ttl.endswith(("h", "d"))]
        losses.approximated(where, "cache.ttl", f"written as {ttl}")
    return member(CACHE_POINT, with_rest(with_said({"type": "default"}, ttl=ttl), mark.extra, where, losses))

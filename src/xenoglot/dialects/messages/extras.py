"""The name of the dialect, its cache marks, and its unknown fields in nested objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.model.content import CacheMark, Extra

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.codec.reader import Reader
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Effort

NAME = "messages"

EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
"""`BetaOutputConfigParam.effort` in the SDK."""

CACHE_TTLS = ("5m", "1h")
"""`CacheControlEphemeralParam.ttl` in the SDK."""


def keep_rest(parent: Reader, key: str, child: Reader, form: JSONObject, *, said: bool = True) -> None:
    """Put back the unknown fields of the object `child` under `key`; `form` gets it if it is empty.

    `said` is set if a taken field already brings the object back.

    An `Extra` belongs to a canonical value, and not every object of the wire has one: such an object's rest stays with
    the value around it, under its own key, and `with_rest` merges it there again.
    """
    rest = child.rest()
    if any(value is not None for value in rest.values()):
        parent.rest()[key] = rest
    elif rest or not said:
        form.setdefault("rests", {})[key] = rest


def with_rest(own: JSONObject, extra: Extra | None, where: str, losses: Losses) -> JSONObject:
    """Return the fields `own` with those of `extra` that this dialect carries; objects that are in both are merged."""
    if extra is None or not (extra.fields or "rests" in extra.form):
        return own
    rests: JSONObject = form_of(extra, NAME).get("rests", {})
    result: JSONObject = {**own}
    for carried in (rests, losses.carry(extra, where, NAME)):
        for key, value in carried.items():
            mine = result.get(key)
            if isinstance(mine, dict) and isinstance(value, dict):
                result[key] = {**value, **mine}
            elif mine is None:
                result[key] = value
    return result


def take_cache(reader: Reader, key: str = "cache_control") -> CacheMark | None:
    """Return the cache mark under `key`; one of a kind that we do not know is left where it is."""
    value = reader.peek(key)
    mark = reader.object(key)
    if mark is None:
        return None
    if mark.take_word("type", ("ephemeral",)) is None:
        reader.rest()[key] = value
        return None
    return CacheMark(ttl=mark.take("ttl", str), extra=mark.extra(NAME))


def encode_cache(mark: CacheMark, where: str, losses: Losses, *, home: bool) -> JSONObject:
    """Return `mark` as a `cache_control` object; a time to live that the dialect lacks becomes its nearest."""
    own: JSONObject = {"type": "ephemeral"}
    if mark.ttl is not None:
        own["ttl"] = mark.ttl
        if mark.ttl not in CACHE_TTLS and not home:
            own["ttl"] = CACHE_TTLS[mark.ttl.endswith(("h", "d"))]
            losses.approximated(where, "cache.ttl", f"written as {own['ttl']}")
    return with_rest(own, mark.extra, where, losses)


def with_said(own: JSONObject, **optional: JSON) -> JSONObject:
    """Return `own` with those of the `optional` fields that are set."""
    own.update({key: value for key, value in optional.items() if value is not None})
    return own

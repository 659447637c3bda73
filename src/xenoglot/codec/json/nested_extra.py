"""Keeps the unknown fields of nested objects as `Extra`, so that they return unchanged to the same dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject


_PLACES = ("type", "index")


def need_object(reader: Reader, key: str) -> Reader:
    """Return a reader of the object under `key`.

    Raises:
        WireError: it is missing, null or no object.
    """
    return Reader(reader.need(key, dict), reader.at(key))


def leave(outer: Reader, key: str, inner: Reader) -> JSON:
    """Put what is left of the object `key` back where it stood; return its nulls, which are form, or `True`."""
    if not inner.rest():
        return True
    rest = {name: value for name, value in inner.rest().items() if value is not None}
    if rest:
        outer.rest()[key] = rest
    return {name: None for name, value in inner.rest().items() if value is None} or True


def left(own: JSONObject, form: JSONObject, key: str) -> JSONObject:
    """Return what `leave` kept of the object `key`; it is taken out of `own`."""
    nulls = form.get(key)
    return {**(nulls if isinstance(nulls, dict) else {}), **own.pop(key, {})}


def is_placeholder(value: JSON) -> bool:
    """Whether `value` carries no information: null, zero, empty, or an object or list of such values.

    What an object is (`type`) and where it stands (`index`) says nothing by itself. Servers whose answers are structs
    without optional fields write these (Snowflake's Cortex: `"function_call": {"name": "", "arguments": ""}`).
    """
    if isinstance(value, dict):
        return all(key in _PLACES or is_placeholder(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(is_placeholder, value))
    return value is None or value == "" or (type(value) is int and value == 0)


def take_blanks(reader: Reader, *keys: str) -> JSONObject:
    """Take those of `keys` that are empty (`""`, `[]`), as spellings."""
    found = {key: value for key in keys if (value := reader.peek(key)) is not None and value in ("", [])}
    for key in found:
        reader.take_any(key)
    return found


def take_placeholders(reader: Reader, *keys: str) -> JSONObject:
    """Take those of `keys` that hold a placeholder, as spellings."""
    found = {key: value for key in keys if (value := reader.peek(key)) is not None and is_placeholder(value)}
    for key in found:
        reader.take_any(key)
    return found

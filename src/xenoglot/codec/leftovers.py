"""What nobody took of an inner object, kept so that it goes home as it came: fields that say something, and form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject


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


def take_blanks(reader: Reader, *keys: str) -> JSONObject:
    """Take those of `keys` that are there and empty (`""`, `[]`): a matter of form."""
    found = {key: value for key in keys if (value := reader.peek(key)) is not None and value in ("", [])}
    for key in found:
        reader.take_any(key)
    return found

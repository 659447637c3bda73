"""JSON that a model wrote badly, as it was meant, by `json-repair` (extra `structured`).

Single quotes, bare keys, Python's words, missing or surplus commas, line breaks in strings, brackets that are not
closed, a fence around it. What is mended is a guess: whoever uses it says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xenoglot.codec.wire import decode_json, to_text
from xenoglot.errors import ConfigurationError, WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.model.json import JSON

LONGEST: Final = 65_536
"""The most characters that are mended."""

MOST_WORK: Final = 131_072
"""The most characters times brackets within each other, for at each bracket all may be read anew: half a second."""

_BRACKET = re.compile(r"[\[\](){}]")

_BOOLEANS: Final = {"true": True, "false": False}


def require() -> None:
    """Make sure that texts can be mended.

    Raises:
        ConfigurationError: they cannot: the extra is not installed.
    """
    try:
        import json_repair  # noqa: F401, PLC0415  an extra
    except ImportError:
        raise ConfigurationError("arguments cannot be mended: install `xenoglot[structured]`") from None


def repaired(text: str, schema: JSON = None) -> str | None:
    """Return the JSON object or array that `text` was meant to be, as compact JSON; `None` where nobody can tell.

    Text that is JSON already is returned as it is. With a `schema`, strings become the numbers, words, arrays or
    objects that it wants in their place, and where it wants an object, nothing else is returned.

    Raises:
        ConfigurationError: the extra is not installed.
    """
    try:
        value = decode_json(text)
    except WireError:
        value = _guessed(text)
    else:
        if schema is None:
            return text if isinstance(value, dict | list) else None
        if value == (fitted := _fitted(value, schema)) and isinstance(fitted, dict):
            return text
    fitted = value if schema is None else _fitted(value, schema)
    wants_object = isinstance(schema, dict) and schema.get("type") == "object"
    if not isinstance(fitted, dict if wants_object else dict | list):
        return None
    return _written(fitted)


def _guessed(text: str) -> JSON:
    """Return what `json-repair` makes of `text`; `None` where that is nothing."""
    require()
    import json_repair  # noqa: PLC0415  an extra

    begin = min((place for place in (text.find("{"), text.find("[")) if place >= 0), default=-1)
    if begin < 0 or len(text) > LONGEST or len(text) * _depth(text) > MOST_WORK:
        return None
    try:
        return json_repair.loads(text[begin:], skip_json_loads=True)
    except (ValueError, RecursionError):  # nested too deeply
        return None


def _depth(text: str) -> int:
    """Return how many brackets are open at most, those in strings counted too: nobody knows yet which are strings."""
    deepest = depth = 0
    for found in _BRACKET.finditer(text):
        depth = depth + 1 if found[0] in "[({" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def _written(value: JSON) -> str | None:
    """Return `value` as JSON; `None` where it has something that JSON has not."""
    try:
        text = to_text(value)
        return text if decode_json(text) == value else None
    except (WireError, ValueError, TypeError, RecursionError):
        return None


def _fitted(value: JSON, schema: JSON) -> JSON:
    """Return `value` with the strings in it read as what `schema` wants in their place."""
    if not isinstance(schema, dict):
        return value
    kind = schema.get("type")
    if isinstance(value, str) and isinstance(kind, str) and kind in _READERS:
        value = _READERS[kind](value)
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(value, dict) and isinstance(properties, dict):
        return {key: _fitted(inner, properties.get(key)) for key, inner in value.items()}
    if isinstance(value, list) and isinstance(items, dict):
        return [_fitted(inner, items) for inner in value]
    return value


def _read_as(*kinds: type) -> Callable[[str], JSON]:
    """Return a reader of strings that hold JSON of one of `kinds`; any other string stays what it is."""

    def read(text: str) -> JSON:
        try:
            value = decode_json(text)
        except WireError:
            return text
        return value if type(value) in kinds else text

    return read


_READERS: Final[Mapping[str, Callable[[str], JSON]]] = {
    "integer": _read_as(int),
    "number": _read_as(int, float),
    "boolean": lambda text: _BOOLEANS.get(text.strip().lower(), text),
    "array": _read_as(list),
    "object": _read_as(dict),
}

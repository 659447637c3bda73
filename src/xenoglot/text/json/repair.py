"""Repairs malformed JSON with `json-repair` (extra `structured`).

Single quotes, bare keys, Python's words, missing or surplus commas, line breaks in strings, brackets that are not
closed, a fence around it. A repair is a guess: its users report it as a `Loss`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self, SupportsIndex

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.errors import ConfigurationError, WireError, missing_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xenoglot.model.json import JSON

LONGEST: Final = 65_536
"""The most characters that are repaired."""

MOST_LOOKS: Final = 1_000_000
"""How often the text may be looked at: the library reads parts of it again at each quote and each bracket."""

_PER_LOOK: Final = 64
"""Characters of a part that cost as much as one."""

_BOOLEANS: Final = {"true": True, "false": False}


def require() -> None:
    """Make sure that texts can be repaired.

    Raises:
        ConfigurationError: they cannot: the extra is not installed.
    """
    try:
        import json_repair  # noqa: F401, PLC0415  an extra
    except ImportError:
        raise ConfigurationError(missing_extra("json_repair")) from None


def repaired(text: str, schema: JSON = None) -> str | None:
    """Return the JSON object or array that `text` was meant to be, as compact JSON; `None` where that is unclear.

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
    if begin < 0 or len(text) > LONGEST:
        return None
    try:
        return _plain(json_repair.loads(_Metered(text[begin:], [MOST_LOOKS]), skip_json_loads=True))
    except (_TooLongError, ValueError, RecursionError):  # or nested too deeply
        return None


def _plain(value: JSON) -> JSON:
    """Return `value` with strings that are nothing more."""
    match value:
        case str():
            return str(value)
        case dict():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list():
            return [_plain(item) for item in value]
        case _:
            return value


class _TooLongError(Exception):
    """The text was looked at more often than is allowed."""


class _Metered(str):
    """A text that counts how often it is looked at, in what is `left`, for whatever is made of it too.

    The library cannot be interrupted, and may take a time quadratic in the length of the text or worse.
    """

    __slots__ = ("_left",)

    def __new__(cls, text: str, _left: list[int], /) -> Self:
        return super().__new__(cls, text)

    def __init__(self, _text: str, left: list[int], /) -> None:
        self._left = left

    def __getitem__(self, place: SupportsIndex | slice) -> str:
        found = super().__getitem__(place)
        left = self._left
        left[0] -= 1
        if isinstance(place, slice):
            left[0] -= len(found) // _PER_LOOK
            found = _Metered(found, left)
        if left[0] < 0:
            raise _TooLongError
        return found

    def __add__(self, other: str) -> str:
        return _Metered(super().__add__(other), self._left)

    def __radd__(self, other: str) -> str:
        return _Metered(other + str(self), self._left)


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

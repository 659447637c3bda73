"""Reads the fields of a JSON object, and keeps those that are not known as `Extra`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar, overload

from xenoglot.errors import WireError
from xenoglot.model.content import Extra

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from xenoglot.model.json import JSON, JSONObject


T = TypeVar("T")

_USUAL = 2**53
"""Counts below this are counts beyond doubt."""

_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    float: "number",
    str: "str",
    list: "list",
    dict: "object",
    type(None): "null",
}


def type_name(value: JSON) -> str:
    """Return what JSON calls the type of `value`."""
    return _NAMES.get(type(value), type(value).__name__)


def expected(path: str, wanted: str, value: JSON) -> WireError:
    """Return the error `path: expected wanted, got ...`."""
    return WireError(path, f"expected {wanted}, got {type_name(value)}")


class Reader:
    """One JSON object with the fields that are not taken yet.

    `take` removes a key and checks its type; `rest` returns the unknown fields. A `null` counts as not set: `take`
    returns `None` for it and leaves it in the rest, so that it returns unchanged to the same dialect.
    """

    __slots__ = ("_left", "path")

    def __init__(self, value: JSON, path: str = "$") -> None:
        if not isinstance(value, dict):
            raise expected(path, "object", value)
        self._left: JSONObject = value.copy()
        self.path = path

    def __contains__(self, key: str) -> bool:
        """Whether `key` exists, is not null, and is not taken."""
        return self._left.get(key) is not None

    def at(self, key: str) -> str:
        """Return the path of `key`."""
        return f"{self.path}.{key}"

    def peek(self, key: str) -> JSON:
        """Return the value of `key` without taking it; `None` if it is missing."""
        return self._left.get(key)

    @overload
    def take(self, key: str, kind: type[bool]) -> bool | None: ...
    @overload
    def take(self, key: str, kind: type[int]) -> int | None: ...
    @overload
    def take(self, key: str, kind: type[float]) -> float | None: ...
    @overload
    def take(self, key: str, kind: type[T]) -> T | None: ...
    def take(self, key: str, kind: type[T]) -> T | None:
        """Return the value of `key`, or `None` if it is missing or null.

        `bool` is no `int`; an `int` is a `float` too, and a whole float is an `int` (`1.0`: some clients compute).

        Raises:
            WireError: the value is of another type.
        """
        value = self._left.get(key)
        if value is None:
            return None
        actual = type(value)
        if actual is not kind:
            value = self._convert(key, value, kind)
        del self._left[key]
        return value  # type: ignore[no-any-return]

    def _convert(self, key: str, value: JSON, kind: type) -> JSON:
        if kind is float and type(value) is int:
            return value
        if kind is int and type(value) is float and math.isfinite(value) and value.is_integer():
            return int(value)
        raise expected(self.at(key), _NAMES[kind], value)

    def need(self, key: str, kind: type[T]) -> T:
        """Return the value of `key`.

        Raises:
            WireError: it is missing, null or of another type.
        """
        value = self.take(key, kind)
        if value is None:
            raise WireError(self.at(key), f"required, expected {_NAMES[kind]}")
        return value

    def take_any(self, key: str) -> JSON:
        """Return the value of `key` whatever its type, or `None`; a null remains in the rest."""
        return None if self._left.get(key) is None else self._left.pop(key)

    def take_if(self, key: str, kind: type[T]) -> T | None:
        """Return the value of `key` if it has the type; otherwise leave it in the rest and return `None`."""
        return self.take(key, kind) if type(self._left.get(key)) is kind else None

    def take_word(self, key: str, words: Collection[T]) -> T | None:
        """Return the value of `key` if it is one of `words`; an unknown value remains in the rest."""
        value = self._left.get(key)
        return self._left.pop(key) if isinstance(value, str) and value in words else None

    def count(self, key: str) -> int | None:
        """Return a count leniently: a number or numeric text, not negative; anything else stays in the rest.

        Servers write counts as `null`, `12.0` and `"12"`; none of it is worth failing an answer for.
        """
        value = self._left.get(key)
        if type(value) is int and 0 <= value < _USUAL:
            del self._left[key]
            return value
        try:
            number = None if isinstance(value, bool) or value is None else int(float(value))
        except (TypeError, ValueError, OverflowError):
            return None
        if number is None or number < 0:
            return None
        del self._left[key]
        return value if type(value) is int else number

    def object(self, key: str) -> Reader | None:
        """Return a reader of the object under `key`; the key is taken, so carry on the reader's own rest."""
        value = self.take(key, dict)
        return None if value is None else Reader(value, self.at(key))

    def objects(self, key: str) -> Iterator[Reader]:
        """Yield a reader for each object of the list under `key`."""
        for index, item in enumerate(self.take(key, list) or ()):
            yield Reader(item, f"{self.path}.{key}[{index}]")

    def strings(self, key: str) -> tuple[str, ...] | None:
        """Return the list of strings under `key`."""
        items = self.take(key, list)
        for index, item in enumerate(items or ()):
            if type(item) is not str:
                raise expected(f"{self.path}.{key}[{index}]", "str", item)
        return None if items is None else tuple(items)

    def rest(self) -> JSONObject:
        """Return the fields that were not taken, nulls included."""
        return self._left

    def extra(self, dialect: str, **form: JSON) -> Extra | None:
        """Return the rest as an `Extra`, with those spellings in `form` that are not `None`; `None` if it is empty."""
        spelled = {key: value for key, value in form.items() if value is not None} if form else form
        return Extra(dialect=dialect, fields=self._left, form=spelled) if self._left or spelled else None


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

    What an object is (`type`) and where it stands (`index`) has no information by itself. Servers whose answers are
    structs without optional fields write these (Snowflake's Cortex: `"function_call": {"name": "", "arguments": ""}`).
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

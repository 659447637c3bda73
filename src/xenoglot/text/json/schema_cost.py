"""Counts the steps of validating a value against a JSON Schema, before it is validated.

A schema whose parts refer to each other can ask for two to the power of its own length of steps, or of the value's
depth: `{"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}` looks at `a` twice, and `a` may do the same. A
validator that runs in one call cannot be stopped, so what would take too long is not begun.

Theory of operation. A step is a pair: a schema held against a value. It takes itself and the pairs that it leads to: of
the same value (`allOf`, `$ref`), or of its parts (`properties`, `items`). Each pair is counted once and remembered, so
the count is quick where the steps are not. Without references there is nothing to count: no pair is met twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON

MOST_STEPS: Final = 50_000
"""Steps allowed to every value, and a few more for each value in it: some tenths of a second."""

STEPS_EACH: Final = 50

MOST_PAIRS: Final = 500_000
"""The most pairs that are counted: what has more is not held against the schema either."""

_SAME_ONE: Final = frozenset({"not", "if", "then", "else"})
_SAME_LISTED: Final = frozenset({"allOf", "anyOf", "oneOf"})
_SAME_NAMED: Final = frozenset({"dependentSchemas", "dependencies"})
_EACH_ITEM: Final = frozenset({"items", "additionalItems", "contains", "unevaluatedItems"})
_EACH_PROPERTY: Final = frozenset({"additionalProperties", "unevaluatedProperties", "propertyNames"})
_REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})

_Pair: TypeAlias = "tuple[dict[str, JSON], JSON]"
_Key: TypeAlias = tuple[int, int]


def too_costly(schema: JSON, value: JSON) -> bool:
    """Whether it would take too long to hold `value` against `schema`."""
    if not isinstance(schema, dict) or not any(_REFERENCES & found.keys() for found in _objects(schema)):
        return False
    return _Steps(schema).exceed(value, MOST_STEPS + STEPS_EACH * _size(value))


def _size(value: JSON) -> int:
    """Return how many values there are in `value`, itself included."""
    size, waiting = 0, [value]
    while waiting:
        found = waiting.pop()
        size += 1
        waiting += _parts(found)
    return size


def _parts(value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _objects(value: JSON) -> Iterator[dict[str, JSON]]:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
        waiting += _parts(found)


class _Steps:
    """The count for one schema."""

    def __init__(self, root: dict[str, JSON]) -> None:
        self._root = root
        self._anchors = {said: found for found in _objects(root) if isinstance(said := found.get("$anchor"), str)}

    def exceed(self, value: JSON, most: int) -> bool:
        """Count, depth first and without recursion, for schemas and values may be deep; stop at `most`."""
        counts: dict[_Key, int] = {}
        waiting: list[tuple[_Pair, list[_Key] | None]] = [((self._root, value), None)]
        while waiting:
            pair, led_to = waiting.pop()
            key = _key(pair)
            if led_to is not None:
                counts[key] = 1 + sum(counts[inner] for inner in led_to)
                if counts[key] > most:
                    return True
            elif key not in counts:
                counts[key] = 0  # what leads back to itself at the same value goes no further
                pairs = list(self._leads_to(*pair))
                waiting.append((pair, [_key(inner) for inner in pairs]))
                waiting += [(inner, None) for inner in pairs]
                if len(waiting) + len(counts) > MOST_PAIRS:
                    return True
        return False

    def _leads_to(self, schema: dict[str, JSON], value: JSON) -> Iterator[_Pair]:
        for key, inner in schema.items():
            for child, part in self._under(key, inner, value):
                if isinstance(child, dict):
                    yield child, part

    def _under(self, key: str, inner: JSON, value: JSON) -> Iterator[tuple[JSON, JSON]]:
        """Yield what the keyword `key` holds against what."""
        if key in _REFERENCES and isinstance(inner, str):
            yield self._meant(inner), value
        elif key in _SAME_ONE:
            yield inner, value
        elif key in _SAME_LISTED and isinstance(inner, list):
            yield from ((child, value) for child in inner)
        elif key in _SAME_NAMED and isinstance(inner, dict):
            yield from ((child, value) for child in inner.values())
        elif isinstance(value, dict):
            yield from _under_object(key, inner, value)
        elif isinstance(value, list):
            yield from _under_list(key, inner, value)

    def _meant(self, reference: str) -> JSON:
        """Return what a reference leads to (RFC 6901); the whole where that is not seen at once."""
        pointer = unquote(reference.partition("#")[2])
        if not pointer.startswith("/"):
            return self._anchors.get(pointer, self._root)
        found: JSON = self._root
        for step in pointer[1:].split("/"):
            found = _child(found, step.replace("~1", "/").replace("~0", "~"))
        return self._root if found is None else found


def _under_object(key: str, inner: JSON, value: dict[str, JSON]) -> Iterator[tuple[JSON, JSON]]:
    if key == "properties" and isinstance(inner, dict):
        yield from ((child, value[name]) for name, child in inner.items() if name in value)
    elif key == "patternProperties" and isinstance(inner, dict):
        yield from ((child, part) for child in inner.values() for part in value.values())
    elif key in _EACH_PROPERTY:
        yield from ((inner, part) for part in value.values())


def _under_list(key: str, inner: JSON, value: list[JSON]) -> Iterator[tuple[JSON, JSON]]:
    if key in ("prefixItems", "items") and isinstance(inner, list):
        yield from zip(inner, value, strict=False)
    elif key in _EACH_ITEM:
        yield from ((inner, part) for part in value)


def _key(pair: _Pair) -> _Key:
    """Return what a pair is remembered by: all values without parts take the same steps."""
    schema, value = pair
    return id(schema), id(value) if isinstance(value, dict | list) else 0


def _child(value: JSON, step: str) -> JSON:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isdecimal() and len(step) < len("10000000") and int(step) < len(value):
        return value[int(step)]
    return None

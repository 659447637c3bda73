"""Reads and validates the keywords of JSON Schema; an error names the path of the invalid keyword."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final, NoReturn

from xenoglot.codec.invalid_request import refused
from xenoglot.codec.json.json_io import to_text
from xenoglot.engine.grammar.numbers import Interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.json import JSON, JSONObject

TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
OF: Final[dict[type, tuple[str, ...]]] = {
    dict: ("object",),
    list: ("array",),
    str: ("string",),
    int: ("integer", "number"),
    float: ("number",),
    bool: ("boolean",),
    type(None): ("null",),
}
HINTS: Final = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "patternProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "maxItems": "array",
    "pattern": "string",
    "format": "string",
    "minLength": "string",
    "maxLength": "string",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
}
"""What a schema without `type` is about, by the keywords it uses."""

LARGEST: Final = 10**30
"""No number in a schema is larger: its digits become rules."""
LONGEST_QUOTE: Final = 40


def wrong(path: str, found: JSON, expected: str) -> NoReturn:
    """Refuse what stands at `path`."""
    raise refused(path, f"found {to_text(found)[:LONGEST_QUOTE]}, expected {expected}")


def types(schema: JSONObject, path: str) -> list[str]:
    """Return the types that are allowed; `any` without a restriction."""
    if "type" not in schema:
        return next(([kind] for keyword, kind in HINTS.items() if keyword in schema), ["any"])
    said = schema["type"]
    kinds = said if isinstance(said, list) else [said]
    if not kinds or any(kind not in TYPES for kind in kinds):
        wrong(f"{path}.type", said, f"one of {', '.join(TYPES)}")
    nullable = "nullable" in schema and schema["nullable"] is True and "null" not in kinds  # OpenAPI 3.0's word
    return [*kinds, "null"] if nullable else kinds


def is_of(value: JSON, kind: str) -> bool:
    """Return whether a value is of a type; 2.0 is an integer too."""
    return kind in OF[type(value)] or (kind == "integer" and isinstance(value, float) and value.is_integer())


def properties(schema: JSONObject, path: str) -> JSONObject:
    """Return the schemas of the properties, in their order, without those that may not be there."""
    said = schema.get("properties", {})
    if not isinstance(said, dict):
        wrong(f"{path}.properties", said, "an object of schemas")
    return {name: value for name, value in said.items() if value is not False}


def required(schema: JSONObject, path: str) -> list[str]:
    """Return the names of the properties that must be there."""
    said = schema.get("required", [])
    if isinstance(said, bool):  # draft 3 wrote it into the property
        return []
    if not isinstance(said, list) or not all(isinstance(name, str) for name in said):
        wrong(f"{path}.required", said, "a list of names")
    return list(dict.fromkeys(said))


def schemas(schema: JSONObject, keyword: str, path: str) -> list[JSON]:
    """Return a list of schemas that has at least one."""
    said: JSON = schema[keyword]
    if not isinstance(said, list) or not said:
        wrong(f"{path}.{keyword}", said, "a list of at least one schema")
    return said


def text(schema: JSONObject, keyword: str, path: str) -> str | None:
    """Return a string, if the schema has it."""
    said = schema.get(keyword)
    if said is not None and not isinstance(said, str):
        wrong(f"{path}.{keyword}", said, "a string")
    return said


def bounds(schema: JSONObject, least: str, most: str, path: str) -> tuple[int, int | None]:
    """Return the least and the most, if the schema has them."""
    return _count(schema, least, path) or 0, _count(schema, most, path)


def interval(schema: JSONObject, path: str) -> Interval:
    """Return the bounds of a number."""
    low, above = _limit(schema, "minimum", "exclusiveMinimum", max, path)
    high, below = _limit(schema, "maximum", "exclusiveMaximum", min, path)
    return Interval(low=low, high=high, above=above, below=below)


def number(schema: JSONObject, keyword: str, path: str) -> Decimal | None:
    """Return a number, if the schema has it."""
    said = schema.get(keyword)
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int | float) or abs(said) > LARGEST:
        wrong(f"{path}.{keyword}", said, "a number")
    return Decimal(str(said))


def _limit(
    schema: JSONObject, keyword: str, exclusive: str, tighter: Callable[[Decimal, Decimal], Decimal], path: str
) -> tuple[Decimal | None, bool]:
    """Return a bound, and whether it is itself outside; draft 4 has a boolean for that."""
    bound = number(schema, keyword, path)
    if isinstance(schema.get(exclusive), bool):
        return bound, schema[exclusive] is True
    other = number(schema, exclusive, path)
    if other is None:
        return bound, False
    return (other, True) if bound is None or tighter(bound, other) == other else (bound, False)


def _count(schema: JSONObject, keyword: str, path: str) -> int | None:
    said = schema.get(keyword)
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int | float) or said < 0 or said % 1:
        wrong(f"{path}.{keyword}", said, "a whole number, 0 or more")
    return int(said)

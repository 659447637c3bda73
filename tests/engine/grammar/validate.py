"""JSON Schema, read once more and the other way round: is this value valid? Only what the tests need."""

import re
from decimal import Decimal
from fractions import Fraction

from xenoglot.model.json import JSON, JSONObject

KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def valid(value: JSON, schema: JSON, document: JSON) -> bool:
    """Return whether `value` is valid for `schema`, which stands in `document`."""
    if isinstance(schema, bool):
        return schema
    checks = (of_type, of_list, combined, text, number, array, members)
    return all(check(value, schema, document) for check in checks)


def of_type(value: JSON, schema: JSONObject, _document: JSON) -> bool:
    kinds = schema.get("type", list(KINDS))
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return any(isinstance(value, KINDS[kind]) and isinstance(value, bool) <= (kind == "boolean") for kind in kinds)


def of_list(value: JSON, schema: JSONObject, _document: JSON) -> bool:
    return value in schema.get("enum", [value]) and value == schema.get("const", value)


def combined(value: JSON, schema: JSONObject, document: JSON) -> bool:
    if "$ref" in schema:
        target = document
        for step in schema["$ref"].split("/")[1:]:
            target = target[step]
        if not valid(value, target, document):
            return False
    some: list[JSON] = schema.get("anyOf") or schema.get("oneOf") or [True]
    return any(valid(value, part, document) for part in some) and all(
        valid(value, part, document) for part in schema.get("allOf", [])
    )


def text(value: JSON, schema: JSONObject, _document: JSON) -> bool:
    if not isinstance(value, str):
        return True
    length = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
    return length and re.search(schema.get("pattern", ""), value) is not None


def number(value: JSON, schema: JSONObject, _document: JSON) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    exact, unit = Fraction(Decimal(str(value))), schema.get("multipleOf")
    return (
        schema.get("minimum", exact) <= exact <= schema.get("maximum", exact)
        and schema.get("exclusiveMinimum", exact - 1) < exact < schema.get("exclusiveMaximum", exact + 1)
        and (unit is None or (exact / Fraction(Decimal(str(unit)))).denominator == 1)
    )


def array(value: JSON, schema: JSONObject, document: JSON) -> bool:
    if not isinstance(value, list):
        return True
    heads, rest = schema.get("prefixItems", []), schema.get("items", True)
    return schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)) and all(
        valid(item, heads[index] if index < len(heads) else rest, document) for index, item in enumerate(value)
    )


def members(value: JSON, schema: JSONObject, document: JSON) -> bool:
    if not isinstance(value, dict):
        return True
    named, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    return (
        schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value))
        and set(schema.get("required", [])) <= set(value)
        and all(valid(item, named.get(name, rest), document) for name, item in value.items())
    )

"""Converts the OpenAPI subset of the dialect to JSON Schema.

Source: https://ai.google.dev/api/caching#Schema. Types are written in capitals there, counts may be texts, and
`nullable` stands for a type of two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.dialects.gemini.request.aliases import camel

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_ONE = frozenset({"items", "additionalProperties", "not"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "$defs", "definitions"})
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})

_DEEPEST = 64


def json_schema(value: JSON, depth: int = 0) -> JSON:
    """Return a schema of the dialect as JSON Schema; what is that already comes back as it is."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    result: JSONObject = {}
    for key, item in value.items():
        name = camel(key)
        result[name] = _keyword(name, item, depth + 1)
    if result.get("nullable") is True and isinstance(result.get("type"), str):
        del result["nullable"]
        result["type"] = [result["type"], "null"]
    return result


def _keyword(name: str, value: JSON, depth: int) -> JSON:
    if name == "type" and isinstance(value, str):
        return value.lower() if value.lower() in _TYPES else value
    if name in _ONE:
        return json_schema(value, depth)
    if name in _LISTED and isinstance(value, list):
        return [json_schema(item, depth) for item in value]
    if name in _NAMED and isinstance(value, dict):
        return {key: json_schema(item, depth) for key, item in value.items()}
    if name in _COUNTS and isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:18])
    return value


def as_spelled(schema: JSON, form: JSONObject) -> tuple[str, JSON]:
    """Return the suffix of the field that a schema stood in, and the schema as it stood there.

    `form` is that of the object around; what came from elsewhere is written as JSON Schema, which servers take too.
    """
    if "schema" not in form:
        return "JsonSchema", schema
    original = form["schema"]
    return "", original if json_schema(original) == schema else schema

"""JSON Schemas for structured output: what OpenAI and Anthropic require beyond JSON Schema itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import decode_json, encode_json, to_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON, JSONObject

_ONE = frozenset({"items", "not"})
_LISTED = frozenset({"anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"properties", "$defs", "definitions"})
"""The keywords that hold a schema, a list of schemas, and schemas by name. `allOf` is not among them: each branch sees
the properties of its own alone, so closing one would close out those of the others."""

_BOUNDS = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
    }
)
_LEAST_ITEMS = (0, 1)
"""The values of `minItems` that Anthropic's servers hold to."""


def is_strict(schema: JSON) -> bool:
    """Whether every object in `schema` takes no properties but those it names, and requires each of them.

    OpenAI refuses any other under `strict`
    (https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas).
    """
    return all(_requires_all(inner) for inner in _schemas(schema) if _is_object(inner))


def closed(schema: JSONObject) -> JSONObject:
    """Return `schema` in the form that Anthropic accepts: objects closed, bounds moved to the description.

    Anthropic refuses bounds, and objects that may have other properties
    (https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations). An object that
    is explicitly open, or has no properties, stays open: closed, it would be another answer.
    """
    copy: JSONObject = decode_json(encode_json(schema))
    for inner in _schemas(copy):
        if _is_object(inner) and "properties" in inner:
            inner.setdefault("additionalProperties", False)
        bounds = {key: inner.pop(key) for key in [key for key in inner if _is_bound(key, inner[key])]}
        if bounds:
            said = inner.get("description")
            inner["description"] = "\n\n".join([*([said] if isinstance(said, str) else []), to_text(bounds)])
    return copy


def _schemas(schema: JSON) -> Iterator[JSONObject]:
    """Yield every schema in `schema`, itself included."""
    waiting: list[JSON] = [schema]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
            for key, value in found.items():
                waiting += _held(key, value)


def _held(key: str, value: JSON) -> list[JSON]:
    if key in _ONE:
        return [value]
    if key in _LISTED and isinstance(value, list):
        return value
    return list(value.values()) if key in _NAMED and isinstance(value, dict) else []


def _is_object(schema: JSONObject) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _requires_all(schema: JSONObject) -> bool:
    named, required = schema.get("properties", {}), schema.get("required", [])
    known = isinstance(named, dict) and isinstance(required, list) and all(name in required for name in named)
    return known and schema.get("additionalProperties") is False


def _is_bound(key: str, value: JSON) -> bool:
    if isinstance(value, dict | list):  # a property of that name is no bound
        return False
    return key in _BOUNDS and not (key == "minItems" and value in _LEAST_ITEMS)

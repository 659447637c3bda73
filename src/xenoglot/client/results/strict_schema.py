"""Strict form of a JSON Schema, as servers require it: closed objects, every property required.

OpenAI's rules beyond JSON Schema: the top level is an object and not a reference, objects allow only the properties
they name and require each, a reference has no siblings, `default` and `oneOf` are not allowed
(https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import decode_json, encode_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.model.json import JSON, JSONObject

VALUE: Final = "value"
"""The property that wraps an answer that is not an object."""

_ONE: Final = frozenset({"items", "additionalProperties", "not"})
_LISTED: Final = frozenset({"anyOf", "allOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "$defs"})

_STRICT: Final = frozenset(
    {
        "$defs",
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "multipleOf",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    }
)
"""The keywords that are allowed in a strict schema."""

_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_NAMES: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}
_REFERENCE: Final = "#/$defs/"


def to_strict(schema: JSONObject) -> tuple[JSONObject, bool]:
    """Return the strict form of `schema`, and whether its top level was wrapped in an object, as its property `value`.

    Keywords that only narrow a value and are refused (`uniqueItems`, other formats) are left out: the parser of the
    type still checks them. Objects that are meant to be open stay open.
    """
    copy: JSONObject = decode_json(encode_json(schema))
    definitions = copy.pop("$defs", {})
    root: JSONObject = copy
    if set(root) == {"$ref"} and _name(root) in definitions:
        root = dict(definitions[_name(root)])
    if wrapped := not (root.get("type") == "object" and "properties" in root):
        root = {"type": "object", "properties": {VALUE: copy}, "required": [VALUE]}
    used = _used(root, definitions)
    if used:
        root["$defs"] = {name: definitions[name] for name in definitions if name in used}
    for inner in list(_schemas(root)):
        _close(inner)
    return root, wrapped


def is_strict(schema: JSONObject) -> bool:
    """Whether `schema`, a closed one, has no keyword that servers refuse under `strict`."""
    return all(inner.keys() <= _STRICT and _is_typed(inner) for inner in _schemas(schema))


def _close(schema: JSONObject) -> None:
    for word in ("default", "discriminator", "uniqueItems"):
        schema.pop(word, None)
    if "oneOf" in schema and "anyOf" not in schema:
        schema["anyOf"] = schema.pop("oneOf")
    if schema.get("format") not in _FORMATS:
        schema.pop("format", None)
    if "$ref" in schema and len(schema) > 1:
        schema["anyOf"] = [{"$ref": schema.pop("$ref")}]
    if "enum" in schema and "type" not in schema:
        kinds = {type(one) for one in schema["enum"]}
        if len(kinds) == 1 and (kind := kinds.pop()) in _NAMES:
            schema["type"] = _NAMES[kind]
    if schema.get("type") == "object" and "properties" in schema:
        schema.setdefault("additionalProperties", False)
        if schema["additionalProperties"] is False:
            schema["required"] = list(schema["properties"])


def _is_typed(schema: JSONObject) -> bool:
    if schema.get("type") == "object":
        return schema.get("additionalProperties") is False
    return any(word in schema for word in ("type", "anyOf", "$ref", "const"))


def _schemas(schema: JSON) -> Iterator[JSONObject]:
    """Yield every schema in `schema`, itself included."""
    waiting: list[JSON] = [schema]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
            for key, value in found.items():
                waiting += _copied(key, value)


def _copied(key: str, value: JSON) -> list[JSON]:
    if key in _ONE:
        return [value]
    if key in _LISTED or key == "oneOf":
        return list(value)
    return list(value.values()) if key in _NAMED else []


def _name(reference: JSONObject) -> str:
    return str(reference["$ref"]).removeprefix(_REFERENCE)


def _used(root: JSONObject, definitions: JSONObject) -> set[str]:
    """Return the names of the definitions that `root` needs."""
    used: set[str] = set()
    waiting: list[JSON] = [root]
    while waiting:
        for inner in _schemas(waiting.pop()):
            name = _name(inner) if "$ref" in inner else None
            if name in definitions and name not in used:
                used.add(name)
                waiting.append(definitions[name])
    return used

"""Resolves references in JSON Schema and merges schemas that must hold together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import unquote

from xenoglot.codec.invalid_request import refused
from xenoglot.engine.grammar.keywords import wrong

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject

Unheld: TypeAlias = Callable[[str, str], None]
"""Called for a keyword that the grammar does not enforce, with its path and its name."""

ANNOTATIONS: Final = frozenset(
    {
        "$anchor",
        "$comment",
        "$defs",
        "$id",
        "$schema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "example",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    }
)
"""Keywords without an effect on validity."""

LONGEST_CHAIN: Final = 32


def constraints(schema: JSONObject, *besides: str) -> JSONObject:
    """Return the keywords of a schema that restrict values, without `besides`."""
    return {key: value for key, value in schema.items() if key not in ANNOTATIONS and key not in besides}


def resolve(document: JSON, reference: JSON, path: str) -> JSON:
    """Return what a reference leads to: a JSON pointer into the same document (RFC 6901).

    Raises:
        FailureError: it leads nowhere, or elsewhere.
    """
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        wrong(path, reference, "a reference within the schema, like `#/$defs/name`")
    found: JSON = document
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            raise refused(path, f"`{reference[:60]}` leads nowhere in the schema")
    return found


def followed(document: JSON, schema: JSON, path: str, unheld: Unheld) -> JSON:
    """Return a schema with its reference resolved.

    Raises:
        FailureError: the chain of references does not end.
    """
    for _ in range(LONGEST_CHAIN):
        if not isinstance(schema, dict) or "$ref" not in schema:
            return schema
        target = resolve(document, schema["$ref"], f"{path}.$ref")
        schema = merged(target, constraints(schema, "$ref"), path, unheld)
    raise refused(path, "the schema refers to itself and to nothing else")


def merged(one: JSON, other: JSON, path: str, unheld: Unheld) -> JSON:
    """Return the schema of what is valid for both; if there is none, the first is used, and `unheld` is called."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other if one is True else one if other is True else False
    whole = dict(one)
    for key, value in _open(other, one).items():
        if key in ANNOTATIONS or (key in one and one[key] == value):
            continue
        whole[key] = _both(key, one[key], value, f"{path}.{key}", unheld) if key in one else value
    if "properties" in whole:
        whole["properties"] = _closed(_closed(whole["properties"], one), other)
    return whole


def _open(schema: JSONObject, other: JSONObject) -> JSONObject:
    """Return a schema without its `additionalProperties`, where the other forbids them anyway."""
    if "additionalProperties" in other and other["additionalProperties"] is False:
        return {key: value for key, value in schema.items() if key != "additionalProperties"}
    return schema


def _closed(properties: JSON, schema: JSONObject) -> JSON:
    """Return the properties, those forbidden that `schema` does not know and does not allow."""
    if not isinstance(properties, dict) or schema.get("additionalProperties", True) is not False:
        return properties
    known = schema.get("properties", {})
    return {name: value if name in known else False for name, value in properties.items()}


def _both(key: str, one: JSON, other: JSON, path: str, unheld: Unheld) -> JSON:
    """Return the value of a keyword that enforces both."""
    if key in ("items", "additionalProperties"):
        return merged(one, other, path, unheld)
    if key == "properties" and isinstance(one, dict) and isinstance(other, dict):
        names = dict.fromkeys((*one, *other))
        return {name: merged(one.get(name, True), other.get(name, True), f"{path}.{name}", unheld) for name in names}
    joined = JOINED[key](one, other) if key in JOINED and type(one) in JOINABLE and type(other) in JOINABLE else None
    if joined is None:
        unheld(path, key)
        return one
    return joined


def _shared(one: JSON, other: JSON) -> JSON:
    return [value for value in one if value in other] if isinstance(one, list) and isinstance(other, list) else None


def _all(one: JSON, other: JSON) -> JSON:
    return list(dict.fromkeys([*one, *other])) if isinstance(one, list) and isinstance(other, list) else None


def _shared_types(one: JSON, other: JSON) -> JSON:
    """Return the types that are of both; every integer is a number."""
    ones, others = (set(said) if isinstance(said, list) else {said} for said in (one, other))
    shared = ones & others
    if "integer" in ones | others and "number" in ones | others:
        shared.add("integer")
    return sorted(shared)


JOINABLE: Final = (list, str, int, float)
JOINED: Final[dict[str, Callable[[JSON, JSON], JSON]]] = {
    "enum": _shared,
    "required": _all,
    "type": _shared_types,
    **dict.fromkeys(("minimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "maxLength", "maxItems", "maxProperties"), min),
}
"""How the values of a keyword in two schemas are merged."""

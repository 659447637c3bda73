"""Converts the parameters of a tool: a flat list on the wire, a JSON Schema in the canonical model.

A parameter has a type, a description, a default, and is required unless it says otherwise (`ToolParamDefinition` in
`llama_stack/models/llama/datatypes.py`). A schema that says no more crosses exactly, falsy defaults included (L6). Of
any other the top is written, and the rest told in the descriptions, for the model to read (L-W11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "str": "string", "list": "array", "dict": "object"}
"""Python's names of types, which clients of the dialect write, as JSON Schema has them (L6)."""

_TOLD = {"type", "description", "default"}
_NOISE = {"title", "$schema", "$id", "additionalProperties"}
"""Keywords of which the model has nothing."""

SCHEMA = "JSON Schema: "
"""What stands in a description before the rest of a schema."""

_VALUES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
)


def schema_of(parameters: JSONObject, path: str = "$") -> JSONObject:
    """Return the schema of an object that has `parameters` as properties.

    Raises:
        WireError: one is no object, or has no type.
    """
    properties: JSONObject = {}
    required: list[str] = []
    for name, item in parameters.items():
        reader = Reader(item, f"{path}.{name}")
        kind = reader.need("param_type", str)
        if reader.take("required", bool) is not False:
            required.append(name)
        said = {key: value for key, value in reader.rest().items() if value is not None}
        properties[name] = {"type": _TYPES.get(kind, kind), **said}
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def parameters_of(schema: JSON, where: str, losses: Losses) -> tuple[JSONObject, str]:
    """Return the parameters that `schema` describes, and what is to be told of it as a whole."""
    known = schema if isinstance(schema, dict) else {}
    properties, required = known.get("properties"), known.get("required")
    named = properties if isinstance(properties, dict) else {}
    demanded = required if isinstance(required, list) else []
    parameters = {name: _parameter(item, demanded, name) for name, item in named.items()}
    if schema_of(parameters) != schema:
        losses.emulated(where, "parameters", "what the list of parameters does not hold is told in descriptions")
    rest = {key: value for key, value in known.items() if key not in {"type", "properties", "required", *_NOISE}}
    return parameters, _told("", rest)


def _parameter(schema: JSON, required: Sequence[JSON], name: str) -> JSONObject:
    known = schema if isinstance(schema, dict) else {}
    kind = _type(known)
    rest = {key: value for key, value in known.items() if key not in _TOLD | _NOISE}
    if "type" in known and known["type"] != kind:
        rest = {"type": known["type"], **rest}
    said = known.get("description")
    description = _told(said if isinstance(said, str) else "", rest)
    return {
        "param_type": kind,
        **({"description": description} if description or said == "" else {}),
        "required": name in required,
        **({"default": known["default"]} if known.get("default") is not None else {}),
    }


def _told(description: str, rest: JSONObject) -> str:
    """Return the description with the rest of a schema after it."""
    told = SCHEMA + to_text(rest) if rest else ""
    return "\n\n".join(text for text in (description, told) if text)


def _type(schema: JSONObject) -> str:
    """Return the type of a parameter: that of its schema, or of the first of its branches or values that has one."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return next((word for word in kind if isinstance(word, str) and word != "null"), "string")
    for key in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(key)
        for branch in branches if isinstance(branches, list) else ():
            if isinstance(branch, dict) and branch.get("type") != "null" and isinstance(branch.get("type"), str):
                return str(branch["type"])
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
    named = (word for value in values for plain, word in _VALUES if isinstance(value, plain))
    return next(named, "object" if "$ref" in schema else "string")

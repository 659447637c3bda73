"""Parsing and repair of the arguments of a tool call, by the tool's schema.

Models write a list as its JSON text, one value where a list is expected, or `null` for an omitted argument. These are
repaired by the schema; other errors are reported to the model, never guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.errors import WireError
from xenoglot.text.payloads.bare_values import item_schema, kinds, property_schema
from xenoglot.tools.tool_output import ToolError

if TYPE_CHECKING:
    from xenoglot.model.content import ToolCall
    from xenoglot.model.json import JSON, JSONObject

DEEPEST: Final = 32
"""Levels of a value that are coerced."""

_SHOWN: Final = 60
"""Characters of a wrong value that are quoted."""


def read_arguments(call: ToolCall, parameters: JSON) -> JSONObject:
    """Return the arguments of `call`; `parameters` is the tool's schema. Free text is the member `input`.

    Raises:
        ToolError: not a JSON object; the text describes the expected form.
    """
    if call.kind == "custom":
        return {"input": call.arguments}
    text = call.arguments.strip()
    if not text:
        return {}
    try:
        value = decode_json(text)
        if isinstance(value, str) and value.lstrip().startswith("{"):  # the object as its text
            value = decode_json(value)
    except WireError as error:
        raise ToolError(f"bad arguments: {error.problem}; write one JSON object") from None
    if isinstance(value, dict):
        return value
    if value is None:
        return {}
    names = _names(parameters)
    if len(names) == 1:  # it is clear what it is for
        return {names[0]: value}
    raise ToolError(f"bad arguments: found `{_shown(value)}`; expected one JSON object")


def coerce_arguments(arguments: JSONObject, schema: JSONObject) -> JSONObject:
    """Return the arguments, coerced to the schema, without members that are `null` and may not be."""
    made: JSONObject = {}
    required = schema.get("required", ())
    for name, value in arguments.items():
        inner = property_schema(schema, name, schema)
        taken = kinds(inner, schema)
        if value is None and name not in required and taken is not None and "null" not in taken:
            continue
        made[name] = _coerce(value, inner, schema, 0)
    return made


def _coerce(value: JSON, schema: JSON, root: JSONObject, depth: int) -> JSON:
    taken = kinds(schema, root)
    if taken is None or depth > DEEPEST:
        return value
    if isinstance(value, str) and "string" not in taken:
        value = _from_text(value, taken)
    elif taken <= {"string", "null"} and isinstance(value, int | float):
        return to_text(value)
    if "array" in taken and not isinstance(value, list) and _kind(value) not in taken and value is not None:
        value = [value]
    if isinstance(value, list):
        return [_coerce(item, item_schema(schema, root), root, depth + 1) for item in value]
    if isinstance(value, dict):
        return {key: _coerce(item, property_schema(schema, key, root), root, depth + 1) for key, item in value.items()}
    return value


def _from_text(text: str, taken: frozenset[str]) -> JSON:
    """Return the list or object in a string, if the schema expects one."""
    if text.lstrip()[:1] not in ("{", "[") or not taken & {"array", "object"}:
        return text
    try:
        value = decode_json(text)
    except WireError:
        return text
    return value if _kind(value) in taken else text


def _kind(value: JSON) -> str:  # noqa: PLR0911  one for each kind
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"


def _names(parameters: JSON) -> list[str]:
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    return list(properties) if isinstance(properties, dict) else []


def _shown(value: JSON) -> str:
    text = to_text(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."

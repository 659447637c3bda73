"""Renders a tool as a Python signature with a docstring, for models trained on that form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import to_text

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Tool

_TYPES: Final = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}


def signature(tool: Tool, name: str) -> str:
    """Return `tool`, called `name`, as a function without a body; required parameters come first."""
    schema: JSONObject = tool.parameters if isinstance(tool.parameters, dict) else {}
    found = schema.get("properties")
    properties: JSONObject = found if isinstance(found, dict) else {}
    wanted = schema.get("required")
    required = [key for key in wanted if isinstance(key, str)] if isinstance(wanted, list) else []
    ordered = sorted(properties, key=lambda key: key not in required)
    parameters = ", ".join(_parameter(key, properties[key], required=key in required) for key in ordered)
    return "\n".join([f"def {name}({parameters}):", *_documentation(tool.description, properties, ordered)])


def _parameter(name: str, schema: JSON, *, required: bool) -> str:
    return f"{name}: {_type(schema)}" + ("" if required else " = None")


def _type(schema: JSON) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kind, list):
        return " | ".join(_TYPES.get(one, "object") for one in kind if isinstance(one, str)) or "object"
    return _TYPES.get(kind, "object") if isinstance(kind, str) else "object"


def _documentation(description: str | None, properties: JSONObject, names: list[str]) -> list[str]:
    told = [f"        {name}: {said}" for name in names if (said := _said(properties[name]))]
    arguments = ["    Args:", *told] if told else []
    return ['    """', *(f"    {line}" for line in (description or "").splitlines()), *arguments, '    """']


def _said(schema: JSON) -> str:
    if not isinstance(schema, dict):
        return ""
    description, values = schema.get("description"), schema.get("enum")
    said = [" ".join(description.split())] if isinstance(description, str) else []
    return " ".join([*said, *([f"One of {to_text(values)}."] if isinstance(values, list) else [])])

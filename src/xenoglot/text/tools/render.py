"""Renders tools as Python signatures, and tool calls in the text form of a model family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.json.json_io import to_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Tool
    from xenoglot.text.syntax import CallSyntax, Syntax


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


def written(syntax: Syntax, calls: Sequence[tuple[str, str]]) -> str:
    """Return `calls` (name, arguments as JSON) as a model of `syntax` writes them, in the first form of its row."""
    if syntax.write is not None:
        return syntax.write(calls)
    return in_form(syntax.calls[0], calls)


def in_form(form: CallSyntax, calls: Sequence[tuple[str, str]]) -> str:
    """Return `calls` in `form`."""
    begin, end, opened, closed = (
        spelled[0] if spelled else "" for spelled in (form.begin, form.end, form.open, form.close)
    )
    between = form.between[0] if form.between else form.joint
    if form.open or form.close:
        opened, closed = f"{opened}{form.padding}", f"{form.padding}{closed}"
    else:
        begin, end = f"{begin}{form.padding}", f"{form.padding}{end}"
    return begin + between.join(f"{opened}{said}{closed}" for said in form.payload.write(calls)) + end

"""Encodes and decodes tools, their parameters and tool choice.

Source: `ToolDefinition` and `BuiltinTool` in `llama_stack/models/llama/datatypes.py`, `ToolConfig` in
`llama_stack/apis/inference/inference.py`.

A parameter has a type, a description, a default, and is required unless it specifies otherwise (`ToolParamDefinition`
in `llama_stack/models/llama/datatypes.py`). A schema with no more than that is translated exactly, falsy defaults
included (L6). Of any other the top is written, and the rest added to the descriptions, for the model to read (L-W11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import note_left_out
from xenoglot.codec.reader import Reader, leave
from xenoglot.codec.requests.custom_tools import as_function
from xenoglot.codec.requests.names import fit, namespace_of, qualified
from xenoglot.codec.requests.provider_tools import note_lacking
from xenoglot.dialects.llama_stack.extras import NAME, own_fields, rest_of
from xenoglot.errors import WireError
from xenoglot.model.request import RequestTool, Tool, ToolChoice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request


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
    """Return the parameters that `schema` describes, and its description as a whole."""
    known = schema if isinstance(schema, dict) else {}
    properties, required = known.get("properties"), known.get("required")
    named = properties if isinstance(properties, dict) else {}
    demanded = required if isinstance(required, list) else []
    parameters = {name: _parameter(item, demanded, name) for name, item in named.items()}
    if schema_of(parameters) != schema:
        losses.emulated(where, "parameters", "what the list of parameters does not hold is written in descriptions")
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


NAME_LIMIT = 64
"""The longest name of a tool: that of the servers after most of the dialect's."""

_MODES: dict[str, Literal["auto", "required", "none"]] = {"auto": "auto", "required": "required", "none": "none"}

_BUILTIN = {"brave_search": "query", "wolfram_alpha": "query", "photogen": "query", "code_interpreter": "code"}
"""Tools that Llama models know by name, and the one argument each takes: their definitions leave it out."""


def decode_tools(reader: Reader) -> tuple[Tool, ...]:
    """Take `tools`."""
    return tuple(_decode_tool(tool) for tool in reader.objects("tools"))


def _decode_tool(reader: Reader) -> Tool:
    name = reader.need("tool_name", str)
    description = reader.take("description", str)
    wire = reader.take("parameters", dict)
    builtin = wire is None and name in _BUILTIN
    if wire is not None:
        parameters: JSONObject | None = schema_of(wire, reader.at("parameters"))
    else:
        parameters = schema_of({_BUILTIN[name]: {"param_type": "string"}}) if builtin else None
    extra = reader.extra(NAME, parameters=wire, builtin=builtin or None)
    return Tool(name=name, description=description, parameters=parameters, extra=extra)


def tool_name(name: str, namespace: str | None, where: str, crossing: EncodeContext) -> str:
    """Return the name under which the server knows a tool."""
    if crossing.home and namespace is None:
        return name
    fitted = fit(qualified(name, namespace), crossing.target.tool_name_limit or NAME_LIMIT)
    if fitted != name:
        crossing.losses.emulated(where, "name", "fitted to what servers take; the answer's calls get it back")
    return fitted


def encode_tools(request: Request, crossing: EncodeContext) -> list[JSONObject]:
    """Return the tools; only those allowed, where the choice allows some that it cannot name."""
    allowed = _narrowed(request.tool_choice)
    if allowed and not crossing.home:
        crossing.losses.emulated("$.tool_choice", "names", "only the tools allowed are sent")
        crossing.losses.emulated("$", "tools", "only those allowed by `tool_choice` are sent")
    tools: list[JSONObject] = []
    for index, tool in enumerate(request.tools):
        where = f"$.tools[{index}]"
        if not isinstance(tool, Tool):
            note_left_out(tool, where, crossing.losses)
        elif not allowed or tool.name in allowed:
            tools.append(_encode_tool(tool, where, crossing))
    return tools


def _encode_tool(tool: Tool, where: str, crossing: EncodeContext) -> JSONObject:
    losses = crossing.losses
    if tool.kind == "custom":
        tool = as_function(tool, where, losses)
    form, own = form_of(tool.extra, NAME), own_fields(tool.extra, where, losses)
    note_lacking(tool, where, losses)
    for field in ("strict", "cache"):
        if getattr(tool, field) is not None:
            losses.dropped(where, field, "a tool of the dialect has no such field")
    body: JSONObject = {"tool_name": tool_name(tool.name, tool.namespace, where, crossing)}
    description = tool.description
    wire = form.get("parameters")
    if isinstance(wire, dict) and schema_of(wire) == tool.parameters:
        body["parameters"] = wire
    elif tool.parameters is not None and "builtin" not in form:
        body["parameters"], told = parameters_of(tool.parameters, where, losses)
        description = "\n\n".join(text for text in (description, told) if text) if told else description
    if description is not None:
        body["description"] = description
    return body | own


def take_choice(reader: Reader, tools: Sequence[RequestTool], form: JSONObject) -> ToolChoice | None:
    """Take `tool_config`, and `tool_choice`, which is its older name.

    Raises:
        WireError: they contradict each other, or name a tool that does not exist (as the server has it).
    """
    older = reader.take("tool_choice", str)
    word = _take_config(reader, form)
    if older is not None and older not in _MODES:
        raise WireError(reader.at("tool_choice"), f"expected one of {', '.join(_MODES)}")
    if older is not None and word not in (None, older):
        raise WireError(reader.at("tool_choice"), "must match `tool_config.tool_choice`")
    form["choice"] = None if older is None else "older" if word is None else "both"
    chosen = older if word is None else word
    if chosen is None:
        return None
    if chosen in _MODES:
        return ToolChoice(mode=_MODES[chosen])
    if not any(isinstance(tool, Tool) and tool.name == chosen for tool in tools):
        raise WireError(f"{reader.at('tool_config')}.tool_choice", "is none of the tools")
    return ToolChoice(mode="required", names=(chosen,))


def _take_config(reader: Reader, form: JSONObject) -> str | None:
    config = reader.object("tool_config")
    if config is None:
        return None
    word = config.take("tool_choice", str)
    if config.take_word("system_message_behavior", ("append",)) is not None:  # what is done anyway
        form["append"] = True
    form["tool_config"] = leave(reader, "tool_config", config)
    return word


def encode_choice(request: Request, own: JSONObject, crossing: EncodeContext, *, tools: bool) -> JSONObject:
    """Return the fields with the tools that may be called, and how they are shown to the model."""
    form = form_of(request.extra, NAME)
    config = rest_of(own, form, "tool_config")
    if form.get("append"):
        config["system_message_behavior"] = "append"
    fields: JSONObject = {}
    word = _word(request, crossing, tools=tools)
    if word is not None:
        if form.get("choice") in ("older", "both"):
            fields["tool_choice"] = word
        if form.get("choice") != "older":
            config["tool_choice"] = word
    return fields | ({"tool_config": config} if config or "tool_config" in form else {})


def _word(request: Request, crossing: EncodeContext, *, tools: bool) -> str | None:
    choice = request.tool_choice
    if choice is None:
        return None
    own_fields(choice.extra, "$.tool_choice", crossing.losses)
    if not tools and not crossing.home:
        crossing.losses.dropped("$", "tool_choice", "there are no tools to call")
        return None
    if choice.kind == "custom":
        crossing.losses.emulated("$.tool_choice", "kind", "a custom tool is written as a function of one string")
    if choice.mode == "required" and choice.names and not _narrowed(choice):
        name = choice.names[0]
        return tool_name(name, namespace_of(name, request.tools), "$.tool_choice", crossing)
    return choice.mode


def _narrowed(choice: ToolChoice | None) -> frozenset[str]:
    """Return the names of the only tools that may be called, if that can be expressed only by sending no others."""
    if choice is None or choice.mode == "none":
        return frozenset()
    named = choice.mode == "required" and len(choice.names) == 1 and choice.names[0] not in _MODES
    return frozenset() if named else frozenset(choice.names)

"""Encodes and decodes tools and tool choice.

Source: `Tool` and `FunctionCallingConfig` (https://ai.google.dev/api/caching#Tool). One tool of the wire holds any
number of functions, and tools that the server runs itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import note_left_out
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.custom_tools import as_function
from xenoglot.codec.requests.names import namespaces_of
from xenoglot.codec.requests.provider_tools import note_lacking
from xenoglot.codec.unknown_fields import keep_rest
from xenoglot.dialects.gemini.extras import NAME, with_rest
from xenoglot.dialects.gemini.request.computer_use import KIND as COMPUTER_USE
from xenoglot.dialects.gemini.request.computer_use import predefined_functions
from xenoglot.dialects.gemini.request.hosted_tools import KINDS, add_tool, decode_hosted_tools, encode_hosted_tool
from xenoglot.dialects.gemini.schemas import as_spelled, json_schema
from xenoglot.dialects.google.shared import with_said
from xenoglot.model.content import Extra, Opaque
from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import RequestTool, Tool, ToolChoice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.dialects.gemini.parts.encoder import PartEncoder
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import ProviderDefinition, Request

_FUNCTIONS = "functionDeclarations"
_CONFIG = "toolConfig"
_CALLING = "functionCallingConfig"

_MODES: dict[str, Literal["auto", "required", "none"]] = {
    "AUTO": "auto",
    "VALIDATED": "auto",
    "ANY": "required",
    "NONE": "none",
}
_WORDS = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_NARROWED = "VALIDATED"
"""The mode that leaves it to the model and still narrows the choice to `allowedFunctionNames`."""


def take_tools(reader: Reader, form: JSONObject) -> tuple[RequestTool, ...]:
    """Take the tools, each function by itself; `form` gets how they stood together where that is not the usual way."""
    tools: list[RequestTool] = []
    layout: list[list[JSON]] = []
    if reader.peek("tools") == []:
        form["tools"] = "empty"
    entries = list(reader.objects("tools"))
    declared = _declared(entries) if any(COMPUTER_USE in entry for entry in entries) else set()
    for entry in entries:
        path = entry.at(_FUNCTIONS)
        functions = (entry.take_if(_FUNCTIONS, list) or []) if entry.peek(_FUNCTIONS) else []
        tools += [_decode_function(Reader(item, f"{path}[{index}]")) for index, item in enumerate(functions)]
        hosted = decode_hosted_tools(entry)
        beside = len(hosted) if hosted is not None else bool(entry.rest()) or not functions
        if hosted is not None:
            tools += hosted
        elif beside:
            predefined = predefined_functions(entry.rest(), declared)
            declared.update(tool.name for tool in predefined)
            tools += predefined or [Opaque(dialect=NAME, data=entry.rest())]
        layout.append([len(functions), beside])
    if layout != _usual(_written(tools)):
        form["layout"] = layout
    return tuple(tools)


def _declared(entries: Iterable[Reader]) -> set[str]:
    """Return the names of the functions that the client declares itself."""
    listed = (entry.peek(_FUNCTIONS) for entry in entries)
    functions = [function for found in listed if isinstance(found, list) for function in found]
    names = (function.get("name") for function in functions if isinstance(function, dict))
    return {name for name in names if isinstance(name, str)}


def _written(tools: Sequence[RequestTool]) -> list[RequestTool]:
    """Return the tools, of those with one definition the first: they are written as one."""
    kept: list[RequestTool] = []
    before: ProviderDefinition | None = None
    for tool in tools:
        definition = tool.definition if isinstance(tool, Tool) else None
        if definition is None or definition is not before:
            kept.append(tool)
        before = definition
    return kept


def _is_beside(tool: RequestTool) -> bool:
    """Whether a tool is written next to the functions of an entry."""
    return not isinstance(tool, Tool) or _is_predefined(tool)


def _is_predefined(tool: Tool) -> bool:
    return tool.definition is not None and tool.definition.dialect == NAME


def _decode_function(reader: Reader) -> Tool:
    form: JSONObject = {}
    parameters = reader.take_any("parametersJsonSchema")
    if parameters is None and "parameters" in reader:
        form["schema"] = reader.take_any("parameters")
        parameters = json_schema(form["schema"])
    output = reader.take_any("responseJsonSchema")
    if output is None and "response" in reader:
        form["response"] = reader.take_any("response")
        output = json_schema(form["response"])
    return Tool(
        name=reader.need("name", str),
        description=reader.take("description", str),
        parameters=parameters,
        output_schema=output,
        extra=reader.extra(NAME, **form),
    )


def _usual(tools: Sequence[RequestTool]) -> list[list[JSON]]:
    """Return the layout of tools that came without one: functions that follow each other stand together."""
    layout: list[list[JSON]] = []
    for tool in tools:
        if _is_beside(tool):
            layout.append([0, True])
        elif layout and not layout[-1][1]:
            layout[-1][0] += 1
        else:
            layout.append([1, False])
    return layout


def encode_tools(request: Request, parts: PartEncoder, crossing: EncodeContext) -> list[JSONObject]:
    """Return the tools."""
    known: list[RequestTool] = []
    encoded: list[JSONObject] = []
    before: ProviderDefinition | None = None
    for index, tool in enumerate(request.tools):
        where = f"$.tools[{index}]"
        if isinstance(tool, Tool) and tool.definition is not None and _is_predefined(tool):
            if tool.definition is not before:
                encoded.append(tool.definition.fields)
                known.append(tool)
        elif isinstance(tool, Tool):
            encoded.append(_encode_function(tool, where, parts, crossing))
            known.append(tool)
        elif isinstance(tool, Opaque) and tool.dialect == NAME and isinstance(tool.data, dict):
            encoded.append(tool.data)
            known.append(tool)
        elif isinstance(tool, HostedTool) and tool.kind in KINDS:
            if (entry := encode_hosted_tool(tool, where, crossing)) is not None:
                encoded.append(entry)
                known.append(tool)
        else:
            note_left_out(tool, where, crossing.losses)
        before = tool.definition if isinstance(tool, Tool) else None
    layout = form_of(request.extra, NAME).get("layout", [])
    if [flag for count, beside in layout for flag in [*[False] * count, *[True] * beside]] != [
        _is_beside(tool) for tool in known
    ]:
        layout = _usual(known)
    return _laid_out(encoded, layout)


def _laid_out(encoded: list[JSONObject], layout: list[list[JSON]]) -> list[JSONObject]:
    entries: list[JSONObject] = []
    start = 0
    for count, beside in layout:
        entry: JSONObject = {_FUNCTIONS: encoded[start : start + count]} if count else {}
        start += count
        for more in encoded[start : start + beside]:
            add_tool(entry, more)
        start += beside
        entries.append(entry)
    return entries


def _encode_function(tool: Tool, where: str, parts: PartEncoder, crossing: EncodeContext) -> JSONObject:
    losses = crossing.losses
    if tool.kind == "custom":
        tool = as_function(tool, where, losses)
    own: JSONObject = {"name": parts.tool_name(tool.name, tool.namespace, where)}
    with_said(own, description=tool.description)
    if tool.parameters is not None:
        suffix, schema = as_spelled(tool.parameters, form_of(tool.extra, NAME))
        own[f"parameters{suffix}"] = schema
    if tool.output_schema is not None:
        suffix, schema = as_spelled(tool.output_schema, _spelled_output(tool))
        own[f"response{suffix}"] = schema
    note_lacking(tool, where, losses, "output_schema")
    if tool.strict is not None:
        losses.dropped(where, "strict", "the dialect has no such field")
    if tool.cache is not None:
        losses.dropped(where, "cache", "the server decides what it caches")
    return with_rest(own, tool.extra, where, losses)


def _spelled_output(tool: Tool) -> JSONObject:
    """Return how the schema of a result was spelled, in the form of that of the arguments."""
    form = form_of(tool.extra, NAME)
    return {"schema": form["response"]} if "response" in form else {}


def take_choice(reader: Reader, form: JSONObject) -> ToolChoice | None:
    """Take `toolConfig`; a mode that we do not know stays where it was."""
    config = reader.object(_CONFIG)
    if config is None:
        return None
    choice: ToolChoice | None = None
    value = config.peek(_CALLING)
    calling = config.object(_CALLING)
    if calling is not None:
        mode = calling.take_if("mode", str)
        if mode in _MODES:
            names = calling.strings("allowedFunctionNames")
            spelled: JSONObject = {"names": "empty"} if names == () else {}
            fields = calling.rest()
            if mode == _NARROWED:  # that calls are held to their schemas no other dialect says of all tools at once
                fields["mode"] = mode
            choice = ToolChoice(
                mode=_MODES[mode],
                names=names or (),
                extra=Extra(dialect=NAME, fields=fields, form=spelled) if fields or spelled else None,
            )
        else:
            config.rest()[_CALLING] = value
    keep_rest(reader, _CONFIG, config, form, said=choice is not None)
    return choice


def encode_choice(request: Request, parts: PartEncoder, crossing: EncodeContext, *, tools: bool) -> JSONObject:
    """Return `toolConfig`, in the field of its name."""
    choice, losses, where = request.tool_choice, crossing.losses, "$.tool_choice"
    if request.parallel_tool_calls is not None:
        losses.dropped("$", "parallel_tool_calls", "the dialect has no such field")
    if choice is None:
        return {}
    if not tools and not crossing.home:
        losses.dropped("$", "tool_choice", "there are no tools to call")
        return {}
    if choice.kind == "custom":
        losses.emulated(where, "kind", "a custom tool is written as a function of one string")
    form = form_of(choice.extra, NAME)
    said = choice.extra is not None and choice.extra.dialect == NAME and "mode" in choice.extra.fields
    mode = _NARROWED if said else _WORDS[choice.mode]
    if choice.names and choice.mode == "auto" and mode != _NARROWED and not crossing.home:
        mode = _NARROWED
        losses.approximated(where, "mode", "calls among some of the tools are held to their schemas too")
    own: JSONObject = {"mode": mode}
    if choice.names or "names" in form:
        spaces = namespaces_of(request.tools)
        own["allowedFunctionNames"] = [parts.tool_name(name, spaces.get(name), where) for name in choice.names]
    return {_CONFIG: {_CALLING: with_rest(own, choice.extra, where, losses)}}

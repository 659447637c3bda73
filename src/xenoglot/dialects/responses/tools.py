"""Encodes and decodes tools and tool choice.

A function lies flat here, and is strict unless `strict` is set (pitfall-65); a `namespace` holds tools that are
called by its name and theirs (pitfall-63). Source: `openai/types/responses/tool_param.py` of the official SDK.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.json.json_io import encode_json
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import note_left_out
from xenoglot.codec.reader import Reader, expected
from xenoglot.codec.requests.provider_tools import DIRECT, note_lacking, searches_tools
from xenoglot.codec.schemas import is_strict
from xenoglot.dialects.responses.client_calls import ALIASES, CHOSEN, client_names, decode_client_tool, tool_kind
from xenoglot.dialects.responses.extras import NAME, extra_of, own_fields
from xenoglot.dialects.responses.fast.frequent_shapes import plain_tool
from xenoglot.dialects.responses.hosted.tools import TYPES, decode_hosted_tool, encode_hosted_tools, hosted_names
from xenoglot.dialects.responses.item_encoder import fitted_name
from xenoglot.model.content import Extra, Opaque
from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import Request, RequestTool, Tool, ToolChoice

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
    from typing import Literal

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject

_MODES: dict[str, Literal["auto", "required", "none"]] = {"auto": "auto", "none": "none", "required": "required"}
_KINDS: dict[str, Literal["function", "custom"]] = {"function": "function", "custom": "custom"}

_SPACE = "namespace."
"""Prefix of the names under which the first tool of a namespace carries the fields of the namespace itself."""

_CALLERS = frozenset({DIRECT, "programmatic"})
"""The callers of a tool here: the model, and programs that it writes."""

_NO_PARAMETERS: JSONObject = {"type": "object", "properties": {}}


def decode_tools(reader: Reader) -> tuple[RequestTool, ...]:
    """Take `tools`; one of a kind that we do not know is the server's own.

    Raises:
        WireError: a tool has no type, or lacks what its type needs.
    """
    path = reader.at("tools")
    tools: list[RequestTool] = []
    for index, item in enumerate(reader.take("tools", list) or ()):
        plain = plain_tool(item)
        tools += (plain,) if plain is not None else _decode_entry(Reader(item, f"{path}[{index}]"))
    return tuple(tools)


def identity(tool: RequestTool) -> Hashable:
    """Return what makes a tool the same as another: how it is called, or all of it."""
    if isinstance(tool, Tool):
        return tool.namespace, tool.name, tool.definition is not None
    return encode_json(tool.data if isinstance(tool, Opaque) else tool)


def placed(tools: Iterable[RequestTool]) -> tuple[RequestTool, ...]:
    """Return tools that came inside the input, with a note that they are returned there."""
    return tuple(_noted(tool, "placed") if isinstance(tool, Tool) else tool for tool in tools)


def decode_choice(reader: Reader, tools: Sequence[RequestTool]) -> ToolChoice | None:
    """Take `tool_choice` among `tools`; a tool that the server runs has the name of its kind.

    A choice that is not understood, such as one tool of an MCP server, stays in the rest.

    Raises:
        WireError: it is neither a word nor an object, or names no tool.
    """
    value = reader.peek("tool_choice")
    if value is None:
        return None
    if isinstance(value, str):
        word = reader.take_word("tool_choice", _MODES)
        return None if word is None else ToolChoice(mode=_MODES[word])
    choice = Reader(value, reader.at("tool_choice"))
    kind = choice.take("type", str) or ""
    if kind in _KINDS:
        reader.take("tool_choice", dict)
        named = choice.need("name", str)
        return ToolChoice(mode="required", names=(named,), kind=_KINDS[kind], extra=extra_of(choice, {}))
    names = {ours: name for name, ours in client_names(tools).items()}
    hosted = hosted_names(tools)
    if (tool := ALIASES.get(kind, "")) in names or TYPES.get(kind) in hosted:
        reader.take("tool_choice", dict)
        name = names[tool] if tool in names else TYPES[kind]
        form: JSONObject = {CHOSEN: tool, "type": kind} if tool in names else {"type": kind}
        return ToolChoice(mode="required", names=(name,), extra=extra_of(choice, form))
    if kind == "allowed_tools" and (decoded := _decode_allowed(choice, names, hosted)) is not None:
        reader.take("tool_choice", dict)
        return decoded
    return None


def encode_tools(request: Request, crossing: EncodeContext, inside: Sequence[JSON] = ()) -> list[JSONObject]:
    """Return the tools that can be sent to the server; `inside` are those that the input itself defines."""
    tools: list[tuple[str | None, int, JSONObject]] = []
    told = {encode_json(tool) for tool in inside}
    run = 0
    hosted = encode_hosted_tools(request.tools, crossing)
    late = crossing.home or searches_tools(request.tools)
    for index, tool in enumerate(request.tools):
        where = f"$.tools[{index}]"
        if isinstance(tool, Tool):
            form = form_of(tool.extra, NAME)
            run += "namespace" in form
            if not ("placed" in form and crossing.home):
                tools.append((tool.namespace, run, _encode_tool(tool, where, crossing, late=late)))
        elif isinstance(tool, HostedTool):
            entry = hosted.get(index)
            if entry is not None and entry not in inside:
                tools.append((None, run, entry))
        elif tool.dialect != NAME:
            note_left_out(tool, where, crossing.losses)
        elif encode_json(tool.data) not in told:
            tools.append((None, run, tool.data))
    return _gathered(tools)


def encode_choice(choice: ToolChoice, request: Request, crossing: EncodeContext) -> JSON:
    """Return the value of `tool_choice`."""
    where = "$.tool_choice"
    form, own = form_of(choice.extra, NAME), own_fields(choice.extra, where, crossing.losses)
    if not choice.names or choice.mode == "none":
        return choice.mode
    names = [fitted_name(name, where, crossing) for name in choice.names]
    ours = {**client_names(request.tools), **hosted_names(request.tools)}
    if choice.mode == "required" and len(names) == 1 and "tools" not in form:
        if (kind := ours.get(choice.names[0])) is not None:
            return {"type": form.get("type", kind), **own}
        return {"type": choice.kind, "name": names[0], **own}
    kinds = {tool.name: tool.kind for tool in request.tools if isinstance(tool, Tool)}
    listed = [
        {"type": ours[name]} if name in ours else {"type": kinds.get(name, choice.kind), "name": fitted}
        for name, fitted in zip(choice.names, names, strict=True)
    ]
    return {"type": "allowed_tools", "mode": choice.mode, "tools": form.get("tools", listed), **own}


def _decode_entry(reader: Reader) -> list[RequestTool]:
    kind = reader.need("type", str)
    whole: JSONObject = {"type": kind, **reader.rest()}
    if kind in _KINDS:
        return [_decode_tool(reader, _KINDS[kind])]
    if (ours := decode_client_tool(whole)) is not None:
        return [ours]
    if kind in TYPES:
        return [decode_hosted_tool(reader, kind)]
    tools = _decode_namespace(reader) if kind == "namespace" else None
    return [Opaque(dialect=NAME, data=whole)] if tools is None else tools


def _decode_tool(reader: Reader, kind: Literal["function", "custom"]) -> Tool:
    defer, callers = reader.take("defer_loading", bool), reader.strings("allowed_callers")
    tool = _decode_kind(reader, kind)
    if callers == (DIRECT,):  # the default
        tool, callers = _noted(tool, DIRECT), None
    return tool if defer is None and callers is None else replace(tool, defer_loading=defer, allowed_callers=callers)


def _decode_kind(reader: Reader, kind: Literal["function", "custom"]) -> Tool:
    name, description = reader.need("name", str), reader.take("description", str)
    if kind == "custom":
        shape = _nested_format(reader.take("format", dict))
        return Tool(name=name, description=description, kind=kind, format=shape, extra=extra_of(reader, {}))
    parameters, strict = reader.take_any("parameters"), reader.take("strict", bool)
    assumed = strict is None and is_strict(parameters) and isinstance(parameters, dict)
    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        output_schema=reader.take_any("output_schema"),
        strict=True if assumed else strict,
        extra=extra_of(reader, {"assumed": assumed}),
    )


def _decode_namespace(reader: Reader) -> list[RequestTool] | None:
    """Return the tools of a namespace; `None` if it holds none, or some that we do not know."""
    items = reader.peek("tools")
    if not isinstance(items, list) or not items:
        return None
    if not all(isinstance(item, dict) and item.get("type") in tuple(_KINDS) for item in items):
        return None
    name = reader.need("name", str)
    readers = list(reader.objects("tools"))
    tools = [replace(_decode_tool(item, _KINDS[item.need("type", str)]), namespace=name) for item in readers]
    first = _noted(tools[0], "namespace")
    fields = {f"{_SPACE}{key}": value for key, value in reader.rest().items()}
    extra = first.extra or Extra(dialect=NAME)
    return [replace(first, extra=replace(extra, fields={**extra.fields, **fields})), *tools[1:]]


def _noted(tool: Tool, note: str) -> Tool:
    extra = tool.extra or Extra(dialect=NAME)
    return replace(tool, extra=replace(extra, form={**extra.form, note: True}))


def _decode_allowed(choice: Reader, ours: Mapping[str, str], hosted: Collection[str]) -> ToolChoice | None:
    """Return the choice among some tools; `None` if some of them are not understood.

    `ours` are the names of the tools that a provider defines and the client runs, by their types; `hosted` those of
    tools that the server runs.
    """
    mode, items = choice.take_word("mode", ("auto", "required")), choice.peek("tools")
    if mode is None or not isinstance(items, list) or not items:
        return None
    names: list[str] = []
    kinds: set[JSON] = set()
    for item in items:
        if not isinstance(item, dict):
            raise expected(choice.at("tools"), "list of objects", item)
        name, kind = item.get("name"), item.get("type")
        if isinstance(kind, str) and ALIASES.get(kind) in ours:
            name, kind = ours[ALIASES[kind]], "function"
        if isinstance(kind, str) and TYPES.get(kind) in hosted:
            name, kind = TYPES[kind], "function"
        if kind not in tuple(_KINDS) or not isinstance(name, str):
            return None
        names.append(name)
        kinds.add(kind)
    choice.take("tools", list)
    kind = "custom" if kinds == {"custom"} else "function"
    return ToolChoice(
        mode=_MODES[mode], names=tuple(names), kind=_KINDS[kind], extra=extra_of(choice, {"tools": items})
    )


def _encode_tool(tool: Tool, where: str, crossing: EncodeContext, *, late: bool) -> JSONObject:
    if tool.definition is not None and tool_kind(tool) is not None:
        return tool.definition.fields
    form, own = form_of(tool.extra, NAME), own_fields(tool.extra, where, crossing.losses)
    if tool.cache is not None:
        crossing.losses.dropped(where, "cache", "a tool takes no cache mark")
    encoded: JSONObject = {"type": tool.kind, "name": fitted_name(tool.name, where, crossing)}
    if tool.description is not None:
        encoded["description"] = tool.description
    encoded |= _late(tool, where, crossing, late=late)
    if tool.kind == "custom":
        if tool.format is not None:
            encoded["format"] = _flat_format(tool.format)
        return encoded | own
    return encoded | _function(tool, form, where, crossing) | own


def _late(tool: Tool, where: str, crossing: EncodeContext, *, late: bool) -> JSONObject:
    """Return when the model learns of a tool and who may call it.

    Unless it may be found `late`, it is described at once: a server refuses tools that no search can find.
    """
    known = ["output_schema"] if tool.kind == "function" else []
    fields: JSONObject = {"allowed_callers": [DIRECT]} if DIRECT in form_of(tool.extra, NAME) else {}
    if tool.defer_loading is not None and late:
        fields["defer_loading"] = tool.defer_loading
        known.append("defer_loading")
    if tool.allowed_callers is not None and (crossing.home or _CALLERS.issuperset(tool.allowed_callers)):
        fields["allowed_callers"] = [*tool.allowed_callers]
        known.append("allowed_callers")
    note_lacking(tool, where, crossing.losses, *known)
    return fields


def _function(tool: Tool, form: JSONObject, where: str, crossing: EncodeContext) -> JSONObject:
    fields: JSONObject = {"parameters": tool.parameters, "strict": None if "assumed" in form else tool.strict}
    fields["output_schema"] = tool.output_schema
    if tool.strict and not crossing.target.strict_tools:
        crossing.losses.dropped(where, "strict", "the server does not hold to schemas")
        fields["strict"] = False
    if not crossing.home:
        fields["strict"] = bool(fields["strict"])  # elsewhere nobody is strict unless it is said
        if tool.parameters is None:
            fields["parameters"] = _NO_PARAMETERS
    return {key: value for key, value in fields.items() if value is not None}


def _gathered(tools: Sequence[tuple[str | None, int, JSONObject]]) -> list[JSONObject]:
    """Return the tools, those of one namespace in it."""
    gathered: list[JSONObject] = []
    for (name, _), members in groupby(tools, key=lambda entry: entry[:2] if entry[0] is not None else (None, 0)):
        inner = [tool for _, _, tool in members]
        gathered += inner if name is None else [_namespace(name, inner)]
    return gathered


def _namespace(name: str, tools: list[JSONObject]) -> JSONObject:
    first = tools[0]
    said = {key: first[key] for key in first if key.startswith(_SPACE)}
    bare = {key: value for key, value in first.items() if key not in said}
    space = {key.removeprefix(_SPACE): value for key, value in said.items()}
    return {"type": "namespace", "name": name, "description": "", **space, "tools": [bare, *tools[1:]]}


def _nested_format(shape: JSONObject | None) -> JSON:
    """Return the format of free text as the model holds it: what a grammar is lies in an object of its own."""
    if shape is None or shape.get("type") != "grammar" or "grammar" in shape:
        return shape
    return {"type": "grammar", "grammar": {key: value for key, value in shape.items() if key != "type"}}


def _flat_format(shape: JSON) -> JSON:
    if isinstance(shape, dict) and isinstance(shape.get("grammar"), dict) and shape.get("type") == "grammar":
        return {"type": "grammar", **shape["grammar"]}
    return shape

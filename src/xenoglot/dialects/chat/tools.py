"""Encodes and decodes tools and tool choice, also as deprecated `functions` and `function_call`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import note_left_out
from xenoglot.codec.reader import Reader, expected, leave, left, need_object
from xenoglot.codec.requests.names import fit, namespaces_of, qualified
from xenoglot.codec.requests.provider_tools import note_lacking
from xenoglot.dialects.chat.extras import NAME, extra_of, own_fields
from xenoglot.dialects.chat.fast.frequent_shapes import plain_tool
from xenoglot.dialects.chat.parts import encode_cache, take_cache
from xenoglot.dialects.chat.request.fields import NAME_LIMIT
from xenoglot.dialects.chat.request.web_search import searches
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Opaque
from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import Request, RequestTool, Tool, ToolChoice

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from xenoglot.codec.requests.encode_context import EncodeContext
    from xenoglot.model.json import JSON, JSONObject

_MODES: dict[str, Literal["auto", "required", "none"]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",  # Mistral's word
}


def decode_tools(reader: Reader) -> tuple[RequestTool, ...]:
    """Take `tools`; a tool of a kind that we do not know is the server's own."""
    path = reader.at("tools")
    return tuple(
        plain_tool(item) or _decode_tool(Reader(item, f"{path}[{index}]"))
        for index, item in enumerate(reader.take("tools", list) or ())
    )


def decode_functions(reader: Reader) -> tuple[RequestTool, ...]:
    """Take the deprecated `functions`."""
    return tuple(_decode_function(item, item) for item in reader.objects("functions"))


def decode_choice(reader: Reader) -> ToolChoice | None:
    """Take `tool_choice`; a word that we do not know stays in the rest.

    Raises:
        WireError: it is neither a word nor an object, or names no tool.
    """
    value = reader.peek("tool_choice")
    if value is None:
        return None
    if isinstance(value, str):
        word = reader.take_word("tool_choice", _MODES)
        return None if word is None else ToolChoice(mode=_MODES[word], extra=_word(word))
    if not isinstance(value, dict):
        raise expected(reader.at("tool_choice"), "str or object", value)
    kind = value.get("type")
    choice = Reader(value, reader.at("tool_choice"))
    decoded = _decode_choice_object(choice, kind) if isinstance(kind, str) else None
    if decoded is not None:
        reader.take("tool_choice", dict)
    return decoded


def decode_function_call(reader: Reader) -> ToolChoice | None:
    """Take the deprecated `function_call` of a request."""
    value = reader.peek("function_call")
    if isinstance(value, str):
        word = reader.take_word("function_call", _MODES)
        return None if word is None else ToolChoice(mode=_MODES[word], extra=_word(word))
    named = reader.object("function_call")
    if named is None:
        return None
    return ToolChoice(mode="required", names=(named.need("name", str),), extra=extra_of(named, {}))


def encode_tools(request: Request, crossing: EncodeContext) -> list[JSONObject]:
    """Return the tools that can be sent to the server."""
    tools = []
    for index, tool in enumerate(request.tools):
        where = f"$.tools[{index}]"
        if isinstance(tool, Tool):
            tools.append(_encode_tool(tool, where, crossing))
        elif isinstance(tool, Opaque) and tool.dialect == NAME:
            tools.append(tool.data)
        elif not (isinstance(tool, HostedTool) and searches(tool, crossing)):
            note_left_out(tool, where, crossing.losses)
    return tools


def encode_functions(request: Request, crossing: EncodeContext) -> list[JSONObject]:
    """Return the tools in the deprecated form they came in."""
    return [
        _definition(tool, f"$.tools[{index}]", crossing) | own_fields(tool.extra, "$.tools", crossing.losses)
        for index, tool in enumerate(request.tools)
        if isinstance(tool, Tool)
    ]


def encode_choice(choice: ToolChoice, tools: Sequence[RequestTool], crossing: EncodeContext) -> JSON:
    """Return the value of `tool_choice`, a choice among `tools`."""
    where = "$.tool_choice"
    form, own = form_of(choice.extra, NAME), own_fields(choice.extra, where, crossing.losses)
    if "type" in form:
        return {"type": form["type"], **own}
    if not choice.names:
        return form.get("word", choice.mode)
    spaces = namespaces_of(tools)
    names = [tool_name(name, spaces.get(name), where, crossing) for name in choice.names]
    key = choice.kind
    if choice.mode == "required" and len(names) == 1 and "allowed_tools" not in form:
        return {"type": key, key: {"name": names[0], **left(own, form, key)}, **own}
    if "allowed_tools" in form:
        listed: list[JSONObject] = form["tools"]
    else:
        listed = [{"type": key, key: {"name": name}} for name in names]
    allowed = {"mode": choice.mode, "tools": listed, **left(own, form, "allowed_tools")}
    return {"type": "allowed_tools", "allowed_tools": allowed, **own}


def encode_function_call(choice: ToolChoice, crossing: EncodeContext) -> JSON:
    """Return the value of the deprecated `function_call` of a request."""
    if choice.names:
        return {"name": choice.names[0], **own_fields(choice.extra, "$.tool_choice", crossing.losses)}
    return form_of(choice.extra, NAME).get("word", choice.mode)


def tool_name(name: str, namespace: str | None, where: str, crossing: EncodeContext) -> str:
    """Return the name of a tool as it is sent to the server; `RestoreNames` restores it in the answer."""
    limit = crossing.target.tool_name_limit
    if crossing.home and limit is None:
        return name
    fitted = fit(qualified(name, namespace), limit or NAME_LIMIT)
    if fitted != name:
        crossing.losses.emulated(where, "name", "fitted to what the server takes")
    return fitted


def _decode_tool(reader: Reader) -> RequestTool:
    kind = reader.peek("type")
    if kind == "custom":
        return _decode_custom(reader)
    if kind == "function" or (kind is None and "function" in reader):
        typed = reader.take_word("type", ("function",)) is not None
        inner = need_object(reader, "function")
        return _decode_function(inner, reader, typed=typed)
    if not isinstance(kind, str):
        raise WireError(reader.at("type"), "required, expected str")
    return Opaque(dialect=NAME, data=reader.rest())


def _decode_function(inner: Reader, outer: Reader, *, typed: bool = True) -> Tool:
    name, description = inner.need("name", str), inner.take("description", str)
    parameters, strict = inner.take_any("parameters"), inner.take("strict", bool)
    nested = inner is not outer
    cache = take_cache(outer) if nested else None
    nulls = leave(outer, "function", inner) if nested else None
    form = {"untyped": not typed, "function": None if nulls is True else nulls}
    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        strict=strict,
        cache=cache,
        extra=extra_of(outer, form),
    )


def _decode_custom(reader: Reader) -> Tool:
    reader.take("type", str)
    inner = need_object(reader, "custom")
    name, description, shape = inner.need("name", str), inner.take("description", str), inner.take("format", dict)
    nulls = leave(reader, "custom", inner)
    return Tool(
        name=name,
        description=description,
        kind="custom",
        format=shape,
        extra=extra_of(reader, {"custom": None if nulls is True else nulls}),
    )


def _encode_tool(tool: Tool, where: str, crossing: EncodeContext) -> JSONObject:
    if tool.extra is None and tool.cache is None:  # nearly all: nothing to merge
        return {"type": tool.kind, tool.kind: _definition(tool, where, crossing)}
    form, own = form_of(tool.extra, NAME), own_fields(tool.extra, where, crossing.losses)
    definition = {**_definition(tool, where, crossing), **left(own, form, tool.kind)}
    cache: JSONObject = {}
    if tool.cache is not None and form_of(tool.cache.extra, NAME):
        cache = encode_cache(tool.cache, where, crossing)
    elif tool.cache is not None:
        crossing.losses.dropped(where, "cache", "a tool takes no cache mark")
    kind = {} if "untyped" in form else {"type": tool.kind}
    return {**kind, tool.kind: definition, **cache, **own}


def _definition(tool: Tool, where: str, crossing: EncodeContext) -> JSONObject:
    note_lacking(tool, where, crossing.losses)
    definition: JSONObject = {"name": tool_name(tool.name, tool.namespace, where, crossing)}
    if tool.description is not None:
        definition["description"] = tool.description
    if tool.kind == "custom":
        return definition if tool.format is None else definition | {"format": tool.format}
    if tool.parameters is not None:
        definition["parameters"] = _schema(tool.parameters, where, crossing)
    if tool.strict is not None:
        if crossing.target.strict_tools:
            definition["strict"] = tool.strict
        else:
            crossing.losses.dropped(where, "strict", "the server does not take it")
    return definition


def _schema(parameters: JSON, where: str, crossing: EncodeContext) -> JSON:
    """Return the schema; servers require the type `object`, which is optional in Messages."""
    if crossing.home or not isinstance(parameters, dict) or "type" in parameters:
        return parameters
    crossing.losses.approximated(where, "parameters", "the type `object` is added")
    return {"type": "object", **parameters}


def _word(word: str) -> Extra | None:
    return None if word == _MODES[word] else Extra(dialect=NAME, form={"word": word})


def _decode_choice_object(reader: Reader, kind: str) -> ToolChoice | None:
    if kind in _MODES:  # some clients write Messages' shape: {"type": "auto"}
        reader.take("type", str)
        return ToolChoice(mode=_MODES[kind], extra=extra_of(reader, {"type": kind}))
    if kind == "allowed_tools":
        return _decode_allowed(reader)
    if kind not in ("function", "custom"):
        return None
    reader.take("type", str)
    inner = need_object(reader, kind)
    name = inner.need("name", str)
    nulls = leave(reader, kind, inner)
    extra = extra_of(reader, {kind: None if nulls is True else nulls})
    return ToolChoice(mode="required", names=(name,), kind="custom" if kind == "custom" else "function", extra=extra)


def _decode_allowed(reader: Reader) -> ToolChoice | None:
    reader.take("type", str)
    inner = need_object(reader, "allowed_tools")
    mode = inner.take_word("mode", ("auto", "required"))
    tools = inner.need("tools", list)
    names = [_allowed_name(tool, f"{inner.at('tools')}[{index}]") for index, tool in enumerate(tools)]
    if mode is None:
        raise WireError(inner.at("mode"), "required, expected 'auto' or 'required'")
    nulls = leave(reader, "allowed_tools", inner)
    form = {"allowed_tools": nulls, "tools": tools}
    known = tuple(name for name in names if name is not None)
    return ToolChoice(mode=_MODES[mode], names=known, extra=extra_of(reader, form))


def _allowed_name(tool: JSON, path: str) -> str | None:
    reader = Reader(tool, path)
    kind = reader.need("type", str)
    return need_object(reader, kind).need("name", str) if kind in ("function", "custom") else None

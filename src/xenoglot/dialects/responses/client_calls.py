"""Calls of the tools that the client runs, and their outputs: calls and results of functions for every other model.

`TABLE` has the kinds. A tool, a call and an output are marked with their kind, and written as that kind again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeGuard

from msgspec.structs import replace

from xenoglot.codec.data_url import data_url
from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.codec.loss import form_of
from xenoglot.codec.opaque import name_of
from xenoglot.codec.requests.names import qualified
from xenoglot.codec.requests.provider_tools import DIRECT
from xenoglot.dialects.responses.client_tools import (
    APPLY_PATCH,
    COMPUTER,
    COMPUTER_PREVIEW,
    LOCAL_SHELL,
    SHELL,
    described,
)
from xenoglot.dialects.responses.extras import NAME
from xenoglot.dialects.responses.tool_search import TOOL_SEARCH
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Image, Inline, Remote, Stored, Text, ToolCall, ToolResult
from xenoglot.model.request import Message, ProviderDefinition, Request, RequestTool, Tool

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from xenoglot.codec.loss import Losses
    from xenoglot.dialects.responses.client_tools import ClientTool
    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject

TABLE: Final[Mapping[str, ClientTool]] = {
    kind.tool: kind for kind in (SHELL, LOCAL_SHELL, APPLY_PATCH, COMPUTER_PREVIEW, COMPUTER, TOOL_SEARCH)
}
"""The kinds of tools by their types."""

ALIASES: Final[Mapping[str, str]] = {**{kind: kind for kind in TABLE}, "computer_use": "computer"}
"""What a choice may call a tool."""

CALLS: Final[Mapping[str, ClientTool]] = {kind.call: kind for kind in TABLE.values()}
OUTPUTS: Final[Mapping[str, ClientTool]] = {kind.output: kind for kind in TABLE.values()}
"""The kinds by the types of their calls and outputs; `computer` stands for both of its kinds."""

_KIND: Final = "client_tool"
"""Marks a call with the type of its tool."""

_REST: Final = "client_fields"
"""The fields of an item that our part has no place for; for an output, the whole item."""

CHOSEN: Final = "client_choice"
"""Marks a choice with the type of the tool that it forces."""

_FAILED: Final = True
_CALL_FIELDS: Final = frozenset({"type", "call_id", "action", "actions", "operation", "arguments"})


def tool_kind(tool: RequestTool) -> ClientTool | None:
    """Return which kind of tool this is; `None` for any other."""
    definition = tool.definition if isinstance(tool, Tool) else None
    return None if definition is None or definition.dialect != NAME else TABLE.get(definition.kind)


def call_kind(part: Part) -> ClientTool | None:
    """Return which kind of tool a part calls; `None` for any other."""
    return TABLE.get(form_of(part.extra, NAME).get(_KIND, "")) if isinstance(part, ToolCall) else None


def decode_client_tool(item: JSONObject) -> Tool | None:
    """Return the function that a tool of the client is; `None` for any other tool."""
    kind = TABLE.get(item.get("type", ""))
    if kind is None or not kind.is_ours(item):
        return None
    description, parameters = item.get("description"), item.get("parameters")
    callers, environment = item.get("allowed_callers"), item.get("environment")
    skills = environment.get("skills") if isinstance(environment, dict) else None
    return Tool(
        name=kind.name,
        description=description if isinstance(description, str) else described(kind, item) or None,
        parameters=kind.parameters or parameters,
        definition=ProviderDefinition(dialect=NAME, kind=kind.tool, fields=item),
        allowed_callers=tuple(callers) if _are_callers(callers) else None,
        extra=Extra(dialect=NAME, fields={"skills": skills}) if skills else None,
    )


def _are_callers(value: JSON) -> TypeGuard[list[str]]:
    """Return whether `value` names other callers than the model."""
    return isinstance(value, list) and value != [DIRECT] and all(isinstance(one, str) for one in value)


def _caller(item: JSONObject) -> JSONObject:
    """Return the `caller` of an item, if that is a program that the model wrote."""
    caller = item.get("caller")
    return {"caller": caller} if isinstance(caller, dict) and caller.get("type") != DIRECT else {}


def decode_client_call(item: JSONObject) -> ToolCall | None:
    """Return the call that an item is; `None` for any other item, and one that lacks what a call needs."""
    call, kind = opened_call(item), CALLS.get(item.get("type", ""))
    arguments = None if call is None or kind is None else kind.read(item)
    if call is None or arguments is None:
        return None
    if kind is COMPUTER and "actions" not in arguments:
        call = _marked(call, COMPUTER_PREVIEW)
    return replace(call, arguments=to_text(arguments))


def opened_call(item: JSONObject) -> ToolCall | None:
    """Return the call that an item is before its arguments are known; `None` as `decode_client_call`."""
    kind = CALLS.get(item.get("type", ""))
    call_id, item_id = item.get("call_id"), item.get("id")
    if kind is None or not kind.is_ours(item) or not isinstance(call_id, str) or not call_id:
        return None
    rest = {key: value for key, value in item.items() if key not in _CALL_FIELDS or value is None}
    call = ToolCall(
        id=call_id,
        name=kind.name,
        item_id=item_id if isinstance(item_id, str) else None,
        extra=Extra(dialect=NAME, fields=_caller(item), form={"item": {"type": True}, _REST: rest}),
    )
    return _marked(call, kind)


def _marked(call: ToolCall, kind: ClientTool) -> ToolCall:
    extra = call.extra or Extra(dialect=NAME)
    return replace(call, extra=replace(extra, form={**extra.form, _KIND: kind.tool}))


def encode_client_call(call: ToolCall, kind: ClientTool, call_id: str, where: str, losses: Losses) -> JSONObject | None:
    """Return the item of a call; `None` if its arguments are no action of its kind, so that it can only be a function.

    A stranger's arguments are brought into the form of the action.
    """
    rest = form_of(call.extra, NAME).get(_REST)
    value = _value_of(call.arguments)
    fields = kind.write(value, rest is not None)
    if fields is None:
        losses.approximated(where, "arguments", f"no action of a `{kind.call}`: written as a call of a function")
        return None
    if rest is None and _set(kind.read({"type": kind.call, **fields})) != _set(value):
        losses.approximated(where, "arguments", f"brought into the form of a `{kind.call}`")
    return {"type": kind.call, "call_id": call_id, **fields, **(rest or {})}


def _value_of(arguments: str) -> JSON:
    try:
        return decode_json(arguments or "{}")
    except WireError:
        return arguments


def _set(value: JSON) -> JSON:
    """Return `value` without fields that are null or empty objects: they mean nothing."""
    if isinstance(value, dict):
        return {key: _set(inner) for key, inner in value.items() if inner is not None and inner != {}}
    return value


def decode_client_output(item: JSONObject, ids: Mapping[str, str]) -> Message | None:
    """Return the result that an item is; `None` for any other item, and one that belongs to no call.

    `ids` are the ids of the calls so far, by those of their items.
    """
    kind = OUTPUTS.get(item.get("type", ""))
    if kind is None:
        return None
    named, said = item.get("call_id", item.get(kind.id_key)), kind.said(item)
    if said is None or not isinstance(named, str) or not named:
        return None
    content, is_error = said
    extra = Extra(dialect=NAME, fields=_caller(item), form={_KIND: kind.tool, _REST: item})
    result = ToolResult(call_id=ids.get(named, named), content=content, is_error=is_error, extra=extra)
    return Message(role="tool", content=(result,))


def output_of(result: ToolResult) -> JSONObject | None:
    """Return the item that was decoded to `result`, if that is unchanged; `None` for any other."""
    form = form_of(result.extra, NAME)
    item: JSONObject | None = form.get(_REST)
    kind = TABLE.get(form.get(_KIND, ""))
    same = item is not None and kind is not None and kind.said(item) == (result.content, result.is_error)
    return item if same else None


def encode_client_output(result: ToolResult, kind: ClientTool, call_id: str, where: str, losses: Losses) -> JSONObject:
    """Return the output of a call of `kind`: its item as it was decoded, or one made of the result."""
    before: JSONObject | None = form_of(result.extra, NAME).get(_REST)
    if (kept := output_of(result)) is not None:
        return kept if call_id == result.call_id else {**kept, kind.id_key: call_id}
    texts: list[str] = []
    image: JSONObject | None = None
    for part in result.content:
        if kind.holds == "text" and isinstance(part, Text):
            texts.append(part.text)
        elif kind.holds == "image" and image is None and (shown := _image_of(part)) is not None:
            image = shown
        else:
            losses.dropped(where, name_of(part), f"a `{kind.output}` has no place for it")
    fields = kind.result("\n".join(texts), image, bool(result.is_error))
    return {**(before or {}), "type": kind.output, kind.id_key: call_id, **fields}


def told(item: JSONObject) -> tuple[Part, ...]:
    """Return the parts of an output, for a message."""
    kind = OUTPUTS.get(item["type"])
    said = None if kind is None else kind.said(item)
    return () if said is None else said[0]


def answered_id(item: JSONObject) -> JSON:
    """Return the id of the call to which an item belongs, which it is or answers."""
    kind = OUTPUTS.get(item["type"])
    return item.get("call_id" if kind is None else kind.id_key, item.get("call_id"))


def missing_output(call: JSONObject, text: str) -> JSONObject:
    """Return an output with an error for a call of the wire."""
    kind = CALLS[call["type"]]
    return {"type": kind.output, kind.id_key: call["call_id"], **kind.result(text, None, _FAILED)}


def result_kind(result: ToolResult) -> ClientTool | None:
    """Return which kind of output a result came as; `None` for any other."""
    return TABLE.get(form_of(result.extra, NAME).get(_KIND, ""))


def _image_of(part: Part) -> JSONObject | None:
    match part:
        case Image(source=Inline() as source):
            return {"image_url": data_url(source)}
        case Image(source=Remote(url=url)):
            return {"image_url": url}
        case Image(source=Stored(id=file_id)):
            return {"file_id": file_id}
        case _:
            return None


def client_names(tools: Iterable[RequestTool]) -> dict[str, str]:
    """Return the names of the functions that stand for tools of the client, with the types of these."""
    defined = (tool for tool in tools if type(tool) is Tool and tool.definition is not None)
    return {tool.name: kind.tool for tool in defined if (kind := tool_kind(tool)) is not None}


def as_client_call(part: Part, names: Mapping[str, str]) -> Part:
    """Return a part of an answer; a call of one of `names` is marked with its kind."""
    if not isinstance(part, ToolCall) or part.name not in names or part.namespace is not None:
        return part
    if form_of(part.extra, NAME):
        return part
    return replace(part, extra=Extra(dialect=NAME, form={_KIND: names[part.name]}))


def with_names_apart(request: Request) -> Request:
    """Return the request with each tool of the client under a name that no other tool has, in its history too."""
    ours = client_names(request.tools)
    if not ours:
        return request
    taken = {
        qualified(tool.name, tool.namespace)
        for tool in request.tools
        if isinstance(tool, Tool) and tool_kind(tool) is None
    }
    names: dict[str, str] = {}  # by the types of the tools
    tools: list[RequestTool] = []
    for tool in request.tools:
        kind = tool_kind(tool)
        if kind is not None and isinstance(tool, Tool):
            if kind.tool not in names:
                names[kind.tool] = _free(tool.name, taken)
                taken.add(names[kind.tool])
            tools.append(replace(tool, name=names[kind.tool]))
        else:
            tools.append(tool)
    changed = {kind: name for kind, name in names.items() if TABLE[kind].name != name}
    return _renamed(replace(request, tools=tuple(tools)), changed) if changed else request


def _free(name: str, taken: Container[str]) -> str:
    """Return a name like `name` that is not taken."""
    free, number = name, 1
    while free in taken:
        free, number = f"client_{name}" if number == 1 else f"client_{name}_{number}", number + 1
    return free


def _renamed(request: Request, names: Mapping[str, str]) -> Request:
    messages = tuple(
        replace(message, content=tuple(_named(part, names) for part in message.content)) for message in request.messages
    )
    choice = request.tool_choice
    forced = "" if choice is None else form_of(choice.extra, NAME).get(CHOSEN, "")
    if choice is not None and forced in names:
        choice = replace(choice, names=(names[forced],))
    return replace(request, messages=messages, tool_choice=choice)


def _named(part: Part, names: Mapping[str, str]) -> Part:
    kind = call_kind(part)
    return replace(part, name=names[kind.tool]) if kind is not None and kind.tool in names else part

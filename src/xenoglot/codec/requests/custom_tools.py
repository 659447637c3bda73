"""Emulates free-text tools for targets without them: wraps each in a function of one string, and unwraps calls."""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, TypeGuard

from msgspec.structs import replace

from xenoglot.codec.json.json_io import decode_json, to_text
from xenoglot.errors import WireError
from xenoglot.model.content import Part, ToolCall, ToolResult
from xenoglot.model.events import ArgumentsDelta, BlockEnded, BlockStarted
from xenoglot.model.request import Message, RequestTool, Tool, ToolChoice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Request

WRAPPED = "input"
"""The one argument of the function that stands for a free-text tool."""

_CALLS = frozenset({ToolCall, ToolResult})

_content = attrgetter("content")

PARAMETERS: JSONObject = {"type": "object", "properties": {WRAPPED: {"type": "string"}}, "required": [WRAPPED]}


def wrap_custom(request: Request, losses: Losses) -> Request:
    """Return `request` with every free-text tool as a function of one string, in its history and its choice too."""
    if not _has_custom(request):
        return request
    return replace(
        request,
        tools=tuple(_wrap_tool(tool, f"$.tools[{index}]", losses) for index, tool in enumerate(request.tools)),
        tool_choice=_wrap_choice(request.tool_choice, losses),
        messages=tuple(
            _wrap_message(message, f"$.messages[{index}]", losses) for index, message in enumerate(request.messages)
        ),
    )


def _has_custom(request: Request) -> bool:
    choice = request.tool_choice
    if choice is not None and choice.kind == "custom":
        return True
    for tool in request.tools:
        if type(tool) is Tool and tool.kind == "custom":
            return True
    parts = [*chain.from_iterable(map(_content, request.messages))]
    return not _CALLS.isdisjoint(map(type, parts)) and "custom" in [part.kind for part in parts if type(part) in _CALLS]


def _wrap_tool(tool: RequestTool, where: str, losses: Losses) -> RequestTool:
    return as_function(tool, where, losses) if isinstance(tool, Tool) and tool.kind == "custom" else tool


def as_function(tool: Tool, where: str, losses: Losses) -> Tool:
    """Return a free-text tool as a function of one string; its grammar is written into the description."""
    losses.emulated(where, "kind", "a custom tool is written as a function of one string")
    description, grammar = tool.description, _grammar(tool.format)
    if grammar is not None:
        losses.emulated(where, "description", "the grammar of the tool's text is described in it")
        losses.approximated(where, "format", "described in the description, and not enforced")
        description = grammar if description is None else f"{description}\n\n{grammar}"
    elif tool.format is not None:
        losses.dropped(where, "format", "a function is restricted by no grammar")
    return replace(tool, kind="function", description=description, parameters=PARAMETERS, format=None)


def _grammar(form: JSON) -> str | None:
    """Return in words what a `grammar` demands of the text; `None` if it is no grammar that we know."""
    match form:
        case {"grammar": {"definition": str(definition), "syntax": str(syntax)}}:
            return f"The argument `{WRAPPED}` is plain text, and follows this {syntax} grammar:\n{definition}"
        case _:
            return None


def _wrap_choice(choice: ToolChoice | None, losses: Losses) -> ToolChoice | None:
    if choice is None or choice.kind != "custom":
        return choice
    losses.emulated("$.tool_choice", "kind", "a custom tool is written as a function of one string")
    return replace(choice, kind="function")


def _wrap_message(message: Message, where: str, losses: Losses) -> Message:
    content = [_wrap_part(part, f"{where}.content[{index}]", losses) for index, part in enumerate(message.content)]
    return replace(message, content=tuple(content))


def _wrap_part(part: Part, where: str, losses: Losses) -> Part:
    if isinstance(part, ToolResult) and part.kind == "custom":
        return replace(part, kind="function")
    if not isinstance(part, ToolCall) or part.kind != "custom":
        return part
    losses.emulated(where, "kind", f"the free text of a custom tool is written as `{WRAPPED}`")
    return replace(part, kind="function", arguments=to_text({WRAPPED: part.arguments}))


class UnwrapCustom:
    """A stage that turns calls of wrapper functions back into calls of the request's `custom` tools.

    The text of such a call is held until it is complete: only then is it known to be the wrapping and nothing else.
    What is not the wrapping stays as the model wrote it.
    """

    __slots__ = ("_held", "_names")

    def __init__(self, request: Request) -> None:
        self._names = {tool.name for tool in request.tools if isinstance(tool, Tool) and tool.kind == "custom"}
        self._held: dict[int, list[str]] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to unwrap."""
        return bool(self._names)

    def feed(self, event: Event, /) -> Sequence[Event]:
        """Return the event, or what the end of a block makes of the text held back."""
        if isinstance(event, BlockStarted) and self._stands_for_custom(event.part):
            self._held[event.candidate] = [event.part.arguments]
            return (replace(event, part=replace(event.part, kind="custom", arguments="")),)
        if isinstance(event, ArgumentsDelta) and event.candidate in self._held:
            self._held[event.candidate].append(event.text)
            return ()
        if isinstance(event, BlockEnded) and event.candidate in self._held:
            return self._end(event)
        return (event,)

    def close(self) -> Sequence[Event]:
        """Nothing: a block that never ended is no call."""
        return ()

    def _stands_for_custom(self, part: object) -> TypeGuard[ToolCall]:
        return isinstance(part, ToolCall) and part.kind == "function" and part.name in self._names

    def _end(self, event: BlockEnded) -> Sequence[Event]:
        wrapped = "".join(self._held.pop(event.candidate))
        whole = event.part
        if isinstance(whole, ToolCall):
            return (replace(event, part=replace(whole, kind="custom", arguments=unwrap(whole.arguments))),)
        return (ArgumentsDelta(text=unwrap(wrapped), candidate=event.candidate), event)


def unwrap(arguments: str) -> str:
    """Return the free text in `arguments`, or `arguments` where they are not the wrapping."""
    try:
        value = decode_json(arguments)
    except WireError:
        return arguments
    text = value.get(WRAPPED) if isinstance(value, dict) and len(value) == 1 else None
    return text if isinstance(text, str) else arguments

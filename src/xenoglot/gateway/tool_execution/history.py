"""Calls and results of executed tools in a history, as the model sees them: calls of functions, and messages of tools.

A client sends back what it was given: calls and results stand in one message of the assistant's. Models expect the
results in a message after it, so the message is divided there. A result that the client did not send back is replaced
by a text about that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.gateway.tool_execution.outcome import ToolOutcome, model_text
from xenoglot.model.content import HostedCall, HostedResult, Image, SearchResult, Text, ToolCall, ToolResult
from xenoglot.model.request import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from xenoglot.gateway.tool_execution.request_tools import HostedFunction, RequestTools
    from xenoglot.model.content import Part

    _Key = tuple[str, str | None, str | None]

NOT_KEPT: Final = "The result of this call is not in the conversation any more."


def function_result(call_id: str, name: str, outcome: ToolOutcome, first: int) -> ToolResult:
    """Return the result of a call as the model gets it; its search results are numbered from `first` on."""
    text = Text(text=model_text(outcome, first))
    images = tuple(part for part in outcome.content if isinstance(part, Image))
    return ToolResult(call_id=call_id, content=(text, *images), is_error=outcome.error is not None or None, name=name)


def function_history(messages: Sequence[Message], tools: RequestTools) -> tuple[Message, ...]:
    """Return a history in which calls of executed tools are calls of functions; their sources are numbered."""
    functions: dict[_Key, str] = {}
    for name, function in tools.functions.items():
        functions.setdefault(_key(function), name)
    return tuple(one for message in messages for one in _divided(message, tools, functions))


def _key(of: HostedCall | HostedFunction) -> _Key:
    """Return what a call and its function have in common: the kind, and of MCP the server and the tool."""
    return (of.kind, of.server, of.name) if of.kind == "mcp" else (of.kind, None, None)


def _divided(message: Message, tools: RequestTools, functions: Mapping[_Key, str]) -> Iterator[Message]:
    """Yield a message of the assistant's and those of tools that it is divided into; others unchanged."""
    results = {part.call_id: part for part in message.content if isinstance(part, HostedResult)}
    calls = (part for part in message.content if isinstance(part, HostedCall))
    names = {call.id: name for call in calls if (name := functions.get(_key(call))) is not None}
    if not names:
        yield message
        return
    content: list[Part] = []
    waiting: list[ToolResult] = []
    for part in message.content:
        if isinstance(part, HostedResult) and part.call_id in names:
            continue
        call = isinstance(part, (ToolCall, HostedCall))
        if waiting and not call:
            yield replace(message, content=tuple(content))
            yield Message(role="tool", content=tuple(waiting))
            content, waiting = [], []
        if isinstance(part, HostedCall) and part.id in names:
            content.append(ToolCall(id=part.id, name=names[part.id], arguments=part.arguments or "{}"))
            waiting.append(_result(part, names[part.id], results.get(part.id), tools))
        else:
            content.append(part)
    yield replace(message, content=tuple(content))
    if waiting:
        yield Message(role="tool", content=tuple(waiting))


def _result(call: HostedCall, name: str, result: HostedResult | None, tools: RequestTools) -> ToolResult:
    if result is None:
        return ToolResult(call_id=call.id, content=(Text(text=NOT_KEPT),), name=name)
    first = len(tools.sources) + 1
    tools.sources += [part for part in result.content if isinstance(part, SearchResult)]
    outcome = ToolOutcome(result.content, result.error, "it failed" if result.error else "")
    return function_result(call.id, name, outcome, first)

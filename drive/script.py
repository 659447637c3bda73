"""Turns of a scripted model: calls of the tools that a client offers, under whichever name they arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from xenoglot.codec.json.json_io import encode_json
from xenoglot.model.content import Text, ToolCall
from xenoglot.model.json import JSON
from xenoglot.model.request import Request, Tool
from xenoglot.model.response import Candidate, Finish, Response, Usage

Turn: TypeAlias = Callable[[Request], Response]


class Wanted(Struct, frozen=True):
    """A call of the tool called `name`, whatever is before it; free text where `arguments` are a text."""

    name: str
    arguments: JSON


def text_turn(text: str, tokens: int = 100) -> Turn:
    """Return a turn of words alone."""
    return lambda _: _response((Text(text=text),), "stop", tokens)


def calls(*wanted: Wanted, text: str = "", tokens: int = 100) -> Turn:
    """Return a turn that calls tools, after some words."""

    def turn(request: Request) -> Response:
        said = (Text(text=text),) if text else ()
        asked = len(request.messages)
        made = tuple(_call(request, one, f"call_{asked}_{index}") for index, one in enumerate(wanted))
        return _response((*said, *made), "tool_calls", tokens)

    return turn


def _response(content: tuple[Text | ToolCall, ...], reason: str, tokens: int) -> Response:
    finish = Finish(reason="tool_calls" if reason == "tool_calls" else "stop")
    usage = Usage(input_tokens=tokens, output_tokens=10)
    return Response(id="answer_1", created=1, candidates=(Candidate(content=content, finish=finish),), usage=usage)


def _call(request: Request, wanted: Wanted, call_id: str) -> ToolCall:
    tool = _find(request, wanted.name)
    custom = isinstance(wanted.arguments, str)
    arguments = wanted.arguments if custom and tool.kind == "custom" else None
    if arguments is None:
        arguments = encode_json({"input": wanted.arguments} if custom else wanted.arguments).decode()
    return ToolCall(id=call_id, name=tool.name, namespace=tool.namespace, kind=tool.kind, arguments=arguments)


def _find(request: Request, name: str) -> Tool:
    tools = [tool for tool in request.tools if isinstance(tool, Tool)]
    found = [tool for tool in tools if tool.name == name or tool.name.endswith(f"__{name}")]
    assert found, f"no tool `{name}` among {[tool.name for tool in tools]}"
    return found[0]

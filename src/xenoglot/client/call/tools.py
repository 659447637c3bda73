"""Tools as callers pass them: canonical tools, decorated functions, or JSON of any dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from xenoglot.dialect_registry import get
from xenoglot.errors import WireError
from xenoglot.model.content import Opaque
from xenoglot.model.hosted import HostedTool
from xenoglot.model.request import RequestTool, Tool, ToolChoice

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request

AnyTool: TypeAlias = Any
"""A `Tool`, an object whose `spec` is one (a decorated function), or a dict as in any dialect."""

Choice: TypeAlias = ToolChoice | str | Mapping[str, Any]
"""A `ToolChoice`; `auto`, `required` (`any`) or `none`; the name of the tool to call; or a dict as in OpenAI's dialects
or in messages."""

_TURNS: dict[str, JSONObject] = {
    "chat": {"messages": [{"role": "user", "content": "?"}]},
    "messages": {"messages": [{"role": "user", "content": "?"}], "max_tokens": 1},
    "responses": {"input": "?"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "?"}]}]},
}
"""The smallest valid request of each dialect, around its tools."""


def tools_of(said: Sequence[AnyTool], dialect: str) -> tuple[RequestTool, ...]:
    """Return the tools; a type that no dialect has as a function is a built-in tool of the upstream, of `dialect`.

    Raises:
        WireError: a tool is not valid; the error has its path.
    """
    if isinstance(said, str | Mapping) or not isinstance(said, Sequence):
        raise WireError("$.tools", f"found a `{type(said).__name__}`; expected a list")
    return tuple(tool for index, one in enumerate(said) for tool in _tools(one, index, dialect))


def tool_choice_of(said: Choice) -> ToolChoice:
    """Return the tool choice.

    Raises:
        WireError: not a valid tool choice.
    """
    match said:
        case ToolChoice():
            return said
        case "auto" | "none" | "required":
            return ToolChoice(mode=said)
        case "any":
            return ToolChoice(mode="required")
        case str():
            return ToolChoice(mode="required", names=(said,))
        case Mapping():
            choice = decode_tools(_dialect_of_choice(said), {"tool_choice": dict(said)}).tool_choice
            if choice is not None:
                return choice
        case _:
            pass
    raise WireError("$.tool_choice", "expected `auto`, `required`, `none`, the name of a tool, or a dict")


def _dialect_of_choice(said: Mapping[str, Any]) -> str:
    kind = said.get("type")
    if kind in ("auto", "any", "tool", "none"):
        return "messages"
    return "chat" if "function" in said or "custom" in said or "allowed_tools" in said else "responses"


def _tools(one: AnyTool, index: int, dialect: str) -> Sequence[RequestTool]:
    spec = one if isinstance(one, Tool | Opaque | Mapping) else getattr(one, "spec", None)
    match spec:
        case Tool() | HostedTool() | Opaque():
            return (spec,)
        case Mapping():
            bare = "parameters" in spec and "type" not in spec  # one of the `functions` that there were before `tools`
            told = {"type": "function", "function": dict(spec)} if bare else dict(spec)
            try:
                return decode_tools(_dialect(told, dialect), {"tools": [told]}).tools
            except WireError as error:
                raise WireError(error.path.replace("tools[0]", f"tools[{index}]"), error.problem) from None
        case _:
            pass
    problem = f"found a `{type(one).__name__}`; expected a `Tool`, a function made one by `@tool`, or a dict"
    raise WireError(f"$.tools[{index}]", problem)


def _dialect(spec: Mapping[str, Any], usual: str) -> str:
    if "function" in spec:
        return "chat"
    if "input_schema" in spec:
        return "messages"
    if "functionDeclarations" in spec or "function_declarations" in spec:
        return "gemini"
    if spec.get("type") in ("function", "custom"):
        return "responses" if "name" in spec else "chat"
    return usual if usual in _TURNS else "chat"


def decode_tools(style: str, fields: JSONObject) -> Request:
    """Return a request of a dialect that has these fields.

    Raises:
        WireError: one of them is none of it.
    """
    return get(style).decode_request({"model": "any", **_TURNS[style], **fields})

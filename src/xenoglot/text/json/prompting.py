"""Structured output by prompting: how JSON is requested of models without support for it, and read back.

As a *tool*: the schema becomes that of a tool which must be called, and the arguments of the call are the answer. In
the *prompt*: a system turn has the schema, and the answer loses the code fence that models put around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.requests.names import fit
from xenoglot.codec.stage import Pipeline
from xenoglot.errors import WireError
from xenoglot.model.content import Text
from xenoglot.model.request import Message, Request, Tool, ToolChoice
from xenoglot.text.json.code_fence import StripCodeFence
from xenoglot.text.json.envelope import enveloped
from xenoglot.text.json.unwrap import UnwrapToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.codec.loss import Losses
    from xenoglot.codec.stage import Stage
    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON
    from xenoglot.model.request import OutputFormat

WHERE: Final = "$.output"

DEEPEST_SCHEMA: Final = 128
"""The most levels of a schema; validators and servers take no more."""

_LONGEST_NAME: Final = 48
"""Short enough for every server's tool names, so that the answer has the requested name."""

_NOBODY: Final = ""
"""The dialect that receives fields that only one dialect understands."""

_USUAL_NAME: Final = "final_answer"
_TOOL_SAYS: Final = "Give the final answer by calling this tool: its arguments are the answer."
_PROMPT_SCHEMA: Final = (
    "Answer with one JSON value that is valid under the JSON Schema below, and with nothing else: "
    "no words around it, no code fence."
)
_PROMPT_JSON: Final = "Answer with one JSON object, and with nothing else: no words around it, no code fence."


class JSONPrompt(Struct, frozen=True, kw_only=True):
    """A request for an answer in JSON, in a form that any model understands.

    `tool` is the name of the tool whose arguments are the answer, `envelope` whether they are an object around it.
    `unfenced` is whether the answer may have a fence, `judged` whether the request wants JSON at all. `moved` shows
    where the parts of the request stood, for `Losses.moved`.
    """

    request: Request
    tool: str | None = None
    envelope: bool = False
    unfenced: bool = False
    judged: bool = True
    moved: Mapping[str, str | None] = {}

    def reading(self, losses: Losses) -> Stage[Event, Event]:
        """Return the stage that turns the answer to this request into the answer to the original request."""
        stages: list[Stage[Event, Event]] = []
        if self.tool is not None:
            stages.append(UnwrapToolCall(self.tool, losses, envelope=self.envelope))
        if self.unfenced:
            stages.append(StripCodeFence(losses))
        return Pipeline(*stages)


def wants_json(request: Request) -> bool:
    """Whether the answer must be JSON."""
    return request.output is not None and request.output.kind != "text"


def check_depth(schema: JSON) -> None:
    """Refuse a schema that is nested too deeply.

    Raises:
        WireError: it is.
    """
    waiting: list[tuple[JSON, int]] = [(schema, 1)]
    while waiting:
        found, depth = waiting.pop()
        if depth > DEEPEST_SCHEMA:
            raise WireError(f"{WHERE}.schema", f"nested too deeply, expected at most {DEEPEST_SCHEMA} levels")
        waiting += [(inner, depth + 1) for inner in _within(found)]


def _within(value: JSON) -> list[JSON]:
    match value:
        case dict():
            return list(value.values())
        case list():
            return value
        case _:
            return []


def as_tool(request: Request, losses: Losses) -> JSONPrompt:
    """Request the answer as a tool call, in addition to the request's own tools (pitfall-28, pitfall-47).

    A client that demands a call of a tool of its own gets no other: then no JSON is requested.
    """
    output = request.output
    if output is None or _demands_a_call(request):
        losses.emulated(WHERE, "kind", "the request demands a tool call, so no JSON answer is requested")
        return JSONPrompt(request=replace(request, output=None), judged=False)
    tool, envelope = _tool(output, request)
    losses.carry(output.extra, WHERE, _NOBODY)
    losses.emulated(WHERE, "kind", "requested as a tool call")
    asked = replace(
        request,
        output=None,
        tools=(*request.tools, tool),
        tool_choice=_choice(request, tool.name),
        parallel_tool_calls=request.parallel_tool_calls if request.tools else False,
    )
    return JSONPrompt(request=asked, tool=tool.name, envelope=envelope, unfenced=True)


def _demands_a_call(request: Request) -> bool:
    return request.tool_choice is not None and request.tool_choice.mode == "required"


def _tool(output: OutputFormat, request: Request) -> tuple[Tool, bool]:
    """Return the tool whose arguments are the answer, and whether they are an envelope."""
    schema = {"type": "object"} if output.schema is None else output.schema
    envelope = not (isinstance(schema, dict) and schema.get("type") == "object")
    tool = Tool(
        name=_name(output.name or _USUAL_NAME, request),
        description=f"{_TOOL_SAYS}\n\n{output.description}" if output.description else _TOOL_SAYS,
        parameters=enveloped(schema) if envelope else schema,
        strict=output.strict,
    )
    return tool, envelope


def _name(wanted: str, request: Request) -> str:
    """Return a name that no tool of the client has."""
    taken = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    name, number = fit(wanted, _LONGEST_NAME), 2
    while name in taken:
        name, number = fit(f"{wanted}_{number}", _LONGEST_NAME), number + 1
    return name


def _choice(request: Request, name: str) -> ToolChoice:
    """Return the demand for a call: to the answer's tool, or to any of the client's tools that may be called."""
    choice = request.tool_choice
    if not request.tools or (choice is not None and choice.mode == "none"):
        return ToolChoice(mode="required", names=(name,))
    if choice is not None and choice.names:
        return replace(choice, mode="required", names=(*choice.names, name))
    return ToolChoice(mode="required")


def as_prompt(request: Request, losses: Losses) -> JSONPrompt:
    """Request the answer in a system turn, after those that the request begins with."""
    output = request.output
    if output is None:
        return JSONPrompt(request=request)
    losses.carry(output.extra, WHERE, _NOBODY)
    losses.emulated(WHERE, "kind", "requested in the prompt")
    told = Text(text=_instruction(output))
    messages, moved = _with_system(request.messages, told)
    return JSONPrompt(request=replace(request, output=None, messages=messages), unfenced=True, moved=moved)


def _instruction(output: OutputFormat) -> str:
    if output.schema is None:
        return _PROMPT_JSON
    about = [said for said in (output.name, output.description) if said]
    return "\n\n".join([_PROMPT_SCHEMA, *([": ".join(about)] if about else []), to_text(output.schema)])


def _with_system(messages: tuple[Message, ...], told: Text) -> tuple[tuple[Message, ...], dict[str, str | None]]:
    """Return the messages with one more system text, and where the parts of all had stood."""
    leading = _leading(messages)
    if leading:
        last = messages[leading - 1]
        place = f"$.messages[{leading - 1}].content[{len(last.content)}]"
        last = replace(last, content=(*last.content, told))
        return (*messages[: leading - 1], last, *messages[leading:]), {place: None}
    moved: dict[str, str | None] = dict(_one_later(messages))
    return (Message(role="system", content=(told,)), *messages), {**moved, "$.messages[0].content[0]": None}


def _leading(messages: tuple[Message, ...]) -> int:
    """Return how many system turns stand before all others."""
    for index, message in enumerate(messages):
        if message.role not in ("system", "developer"):
            return index
    return len(messages)


def _one_later(messages: tuple[Message, ...]) -> Iterator[tuple[str, str]]:
    for index, message in enumerate(messages):
        for place in range(len(message.content)):
            yield f"$.messages[{index + 1}].content[{place}]", f"$.messages[{index}].content[{place}]"

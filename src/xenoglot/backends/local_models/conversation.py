"""Converts a request to chat template messages: text by role, and tool calls if the template supports them.

Templates differ in what they take, and many leave out in silence what they do not know. So there are several forms of
one conversation, from the richest to the plainest, and the renderer uses the first one that is rendered completely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from xenoglot.backends.local_models.unsupported import NAME, report_tool
from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.requests.adapt_request import fold_system
from xenoglot.codec.requests.names import qualified
from xenoglot.errors import WireError
from xenoglot.model.content import (
    Reasoning,
    ToolCall,
    ToolResult,
)
from xenoglot.model.request import Tool
from xenoglot.text.chat_template import TextReader, arguments_object, call_message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Message, Request, Role

_ROLES: Final[dict[Role, str]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
}


class ConversationFormat(Struct, frozen=True, kw_only=True):
    """Form of a conversation for a template.

    `calls` has calls and results in fields of their own rather than in text; `system` is where system turns may
    stand: at their position, at the beginning only, or nowhere.
    """

    calls: bool
    system: str


FORMS: Final = (
    ConversationFormat(calls=True, system="anywhere"),
    ConversationFormat(calls=True, system="head"),
    ConversationFormat(calls=False, system="anywhere"),
    ConversationFormat(calls=False, system="head"),
    ConversationFormat(calls=False, system="nowhere"),
)
"""All forms, the richest first."""


class TemplateMessage(Struct, frozen=True, kw_only=True):
    """One message of a template, and the words that have to be found in what it renders."""

    role: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    result: ToolResult | None = None
    reasoning: str = ""

    def message(self) -> JSONObject:
        """Return it as templates take it (https://huggingface.co/docs/transformers/chat_templating)."""
        message: JSONObject = {"role": self.role, "content": self.text}
        if self.calls:
            message["tool_calls"] = [
                call_message(call.id, qualified(call.name, call.namespace), _arguments(call)) for call in self.calls
            ]
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.result is not None:
            message["tool_call_id"] = self.result.call_id
            if self.result.name is not None:
                message["name"] = self.result.name
        return message


def turns_of(request: Request, form: ConversationFormat, losses: Losses) -> list[TemplateMessage]:
    """Return the turns of a request in one form; neighbours of one role are one turn, as templates want it.

    Raises:
        WireError: there is nothing in them that can be read.
    """
    messages, moved = _placed(request, form, losses)
    reading = _Reading(request, form, moved)
    said = [turn for index, message in enumerate(messages) for turn in reading.turns(message, index)]
    if not said:
        raise WireError("$.messages", "there is nothing in them that the model can read: it reads text")
    joined = said[:1]
    for turn in said[1:]:
        if turn.role == joined[-1].role and turn.result is None:
            joined[-1] = _join(joined[-1], turn)
        else:
            joined.append(turn)
    return _headless(joined, losses) if form.system == "nowhere" else joined


def tools_of(request: Request, losses: Losses) -> list[JSONObject]:
    """Return the tools for a template; those that only a provider runs are a loss."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        return []
    names = () if choice is None else choice.names
    told: list[JSONObject] = []
    for index, tool in enumerate(request.tools):
        if not isinstance(tool, Tool):
            losses.dropped(f"$.tools[{index}]", "tool", "only a server runs it")
        elif not names or tool.name in names:
            report_tool(tool, f"$.tools[{index}]", losses)
            told.append(_tool(tool))
    return told


def _tool(tool: Tool) -> JSONObject:
    function: JSONObject = {"name": qualified(tool.name, tool.namespace), "description": tool.description or ""}
    parameters = tool.parameters if tool.kind == "function" else _FREE_TEXT
    return {"type": "function", "function": function | {"parameters": parameters or _NOTHING}}


_FREE_TEXT: Final[JSON] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
_NOTHING: Final[JSON] = {"type": "object", "properties": {}}


def _placed(request: Request, form: ConversationFormat, losses: Losses) -> tuple[Sequence[Message], Losses]:
    return (request.messages, losses) if form.system == "anywhere" else fold_system(request.messages, losses)


def _headless(turns: list[TemplateMessage], losses: Losses) -> list[TemplateMessage]:
    """Return the turns with the system's text at the beginning of the user's."""
    if turns[0].role != "system":
        return turns
    losses.approximated("$.messages[0]", "role", "the model's template knows no system turn; its words lead the user's")
    head, rest = turns[0], turns[1:]
    if rest and rest[0].role == "user":
        return [_join(replace(head, role="user"), rest[0]), *rest[1:]]
    return [replace(head, role="user"), *rest]


def _join(one: TemplateMessage, other: TemplateMessage) -> TemplateMessage:
    return replace(
        one,
        text="\n\n".join(text for text in (one.text, other.text) if text),
        calls=(*one.calls, *other.calls),
        reasoning="\n\n".join(text for text in (one.reasoning, other.reasoning) if text),
    )


class _Reading:
    """Reads messages one after the other; remembers the names of calls, because their results may have only an id."""

    def __init__(self, request: Request, form: ConversationFormat, losses: Losses) -> None:
        parts = (part for message in request.messages for part in message.content)
        self._names = {part.id: qualified(part.name, part.namespace) for part in parts if isinstance(part, ToolCall)}
        self._form = form
        self._losses = losses
        self._texts = TextReader(NAME, "the model", losses, self._call)

    def turns(self, message: Message, index: int) -> Iterator[TemplateMessage]:
        """Yield the results in a message, then its other parts."""
        where = f"$.messages[{index}]"
        self._losses.carry(message.extra, where, NAME)
        if message.name is not None:
            self._losses.dropped(where, "name", "the model's template knows roles, not names")
        turn = TemplateMessage(role=_ROLES[message.role])
        words: list[str] = []
        for number, part in enumerate(message.content):
            place = f"{where}.content[{number}]"
            match part:
                case ToolResult():
                    yield self._result(part, place)
                case ToolCall() if self._form.calls:
                    turn = replace(turn, calls=(*turn.calls, part))
                case Reasoning(text=str(thought)):
                    self._losses.approximated(place, "reasoning", "the model's template decides whether it is rendered")
                    turn = replace(turn, reasoning=f"{turn.reasoning}{thought}")
                case _:
                    words.append(self._texts.text(part, place))
        turn = replace(turn, text="\n".join(text for text in words if text))
        if turn.text or turn.calls or turn.reasoning:
            yield turn

    def _result(self, result: ToolResult, where: str) -> TemplateMessage:
        name = result.name or self._names.get(result.call_id)
        text = self._texts.joined(result.content, where)
        if self._form.calls:
            if result.is_error:
                self._losses.emulated(where, "is_error", "the text begins with `[tool error]`")
                text = f"[tool error] {text}"
            return TemplateMessage(role="tool", text=text, result=replace(result, name=name))
        self._losses.approximated(where, "tool result", "rendered as text")
        return TemplateMessage(role="user", text=_result_text(name, text, failed=bool(result.is_error)))

    def _call(self, call: ToolCall, where: str) -> str:
        self._losses.approximated(where, "tool call", "rendered as text")
        name = qualified(call.name, call.namespace)
        return f"<tool_call>\n{to_text({'name': name, 'arguments': _arguments(call)})}\n</tool_call>"


def _result_text(name: str | None, text: str, *, failed: bool) -> str:
    """Return a result in words, in the form in which models have seen evidence (R-S1)."""
    named = "" if name is None else f" name={to_text(name)}"
    return f"<tool_result{named}{' error' if failed else ''}>\n{text}\n</tool_result>"


def _arguments(call: ToolCall) -> JSONObject:
    return {"input": call.arguments} if call.kind == "custom" else arguments_object(call.arguments)

"""Renders tools, calls and results into the prompt, for models or servers without a field for them.

The system turn describes the tools as the family's own prompt does. What the assistant called in the conversation
stands in its turn as the family writes calls, what came back in a turn of the user. So the answer can be read as any
other of that family.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.json.json_io import to_text
from xenoglot.codec.opaque import kind_of
from xenoglot.codec.requests.adapt_request import check_tools
from xenoglot.codec.requests.custom_tools import wrap_custom
from xenoglot.codec.requests.names import namespace_of, qualified
from xenoglot.codec.requests.provider_tools import as_functions
from xenoglot.model.content import Audio, File, Image, Opaque, Refusal, Text, ToolCall, ToolResult, Video
from xenoglot.model.request import Message, Tool
from xenoglot.text.syntax import ToolPromptSyntax
from xenoglot.text.tools.render import signature, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xenoglot.codec.loss import Losses
    from xenoglot.model.content import CacheMark, Part
    from xenoglot.model.json import JSONObject
    from xenoglot.model.request import Request, ToolChoice
    from xenoglot.text.syntax import Syntax

_OURS: Final = "text"
"""Our name where fields are sorted by the dialect that understands them."""

_FIELD: Final = re.compile(r"\{(?:name|id|content)\}")
_EXAMPLE: Final = (("<name>", '{"<parameter>": "<value>"}'),)

USUAL: Final = ToolPromptSyntax(
    tools=(
        "# Tools\n\nYou may call tools. Each is described by one line of JSON:\n<tools>\n{tools}\n</tools>\n\n"
        "To call one, write its name and arguments in this form, and nothing behind it:\n{example}\n"
        "You may write several calls. Their results are then given to you."
    )
)
"""How a prompt describes tools to a model whose family has no form of its own; `{example}`: a sample call."""

MUST_CALL: Final = "You must call at least one of the tools now."
MUST_CALL_ONE: Final = "You must call the tool `{name}` now."
ONE_AT_A_TIME: Final = "Call at most one tool."


def told(request: Request, syntax: Syntax, losses: Losses) -> Request:
    """Return `request` with tools, calls and results in words of `syntax`; unchanged where it has none of them.

    Raises:
        WireError: all the tools are such that another server would run.
    """
    if not request.tools and not _has_calls(request):
        return request
    check_tools(request, _OURS)
    teller = _Teller(syntax, losses)
    request = wrap_custom(as_functions(request, losses), losses)
    history = enumerate(_in_order(request.messages))
    messages = [turn for index, message in history for turn in teller.turns(message, index)]
    system = teller.system(request)
    if system is not None:
        losses.emulated("$", "tools", f"described in the system turn, in the form `{syntax.name}`")
    return replace(
        request,
        messages=_with_system(_joined(messages), system),
        tools=(),
        tool_choice=None,
        parallel_tool_calls=None,
    )


def _has_calls(request: Request) -> bool:
    return any(isinstance(part, ToolCall | ToolResult) for message in request.messages for part in message.content)


class _Teller:
    """Puts one conversation in words."""

    def __init__(self, syntax: Syntax, losses: Losses) -> None:
        self._syntax = syntax
        self._telling = syntax.telling or USUAL
        self._losses = losses
        self._names: dict[str, str] = {}  # id of a call -> name of its tool
        self._ids: dict[str, str] = {}  # id of a call -> its id in the prompt, where the family has some

    def system(self, request: Request) -> Text | None:
        """Return the description of the tools for the system turn, with the last cache mark; `None` without tools."""
        choice = request.tool_choice
        tools = self._offered(request, choice)
        if not tools:
            return None
        said = self._telling.separator.join(self._tool(tool) for tool in tools)
        example = written(self._syntax, _EXAMPLE)
        text = self._telling.tools.replace("{example}", example).replace("{tools}", said)
        said = "\n\n".join((text, *self._demands(request, choice)))
        return Text(text=said, cache=_last_mark(tool.cache for tool in tools))

    def turns(self, message: Message, index: int) -> list[Message]:
        """Return one message as several with the same content but without calls and results."""
        where = f"$.messages[{index}]"
        turns = []
        for kind, parts in groupby(message.content, key=type):
            if kind is ToolResult:
                content = self._results([part for part in parts if isinstance(part, ToolResult)], where)
                turns.append(Message(role="user", content=content))
            elif kind is ToolCall:
                text = self._calls([part for part in parts if isinstance(part, ToolCall)], where)
                turns.append(replace(message, content=(text,)))
            else:
                turns.append(replace(message, content=tuple(parts)))
        return turns or [message]

    def _offered(self, request: Request, choice: ToolChoice | None) -> Sequence[Tool]:
        offered = []
        wanted = () if choice is None else choice.names
        for index, tool in enumerate(request.tools):
            if not isinstance(tool, Tool):
                self._losses.dropped(f"$.tools[{index}]", "tool", "only its provider runs it")
            elif (choice is None or choice.mode != "none") and (not wanted or tool.name in wanted):
                self._note_tool(tool, f"$.tools[{index}]")
                offered.append(tool)
        return offered

    def _note_tool(self, tool: Tool, where: str) -> None:
        self._losses.carry(tool.extra, where, _OURS)
        if tool.strict:
            self._losses.dropped(where, "strict", "nothing holds the model to the schema")

    def _tool(self, tool: Tool) -> str:
        if self._telling.tool == "python":
            return signature(tool, _name(tool.name, tool.namespace))
        said: JSONObject = {"name": _name(tool.name, tool.namespace)}
        if tool.description is not None:
            said["description"] = tool.description
        said["parameters"] = tool.parameters if tool.parameters is not None else {"type": "object", "properties": {}}
        return to_text(said if self._telling.tool == "function" else {"type": "function", "function": said})

    def _demands(self, request: Request, choice: ToolChoice | None) -> list[str]:
        """Return in words what a server would receive in fields."""
        demands = []
        if choice is not None and choice.mode == "required":
            self._losses.approximated("$.tool_choice", "mode", "the prompt asks for a tool call but cannot enforce it")
            names = choice.names
            one = _name(names[0], namespace_of(names[0], request.tools)) if len(names) == 1 else ""
            demands.append(MUST_CALL_ONE.format(name=one) if one else MUST_CALL)
        if request.parallel_tool_calls is False:
            self._losses.approximated("$", "parallel_tool_calls", "the prompt asks for one call but cannot enforce it")
            demands.append(ONE_AT_A_TIME)
        return demands

    def _calls(self, calls: Sequence[ToolCall], where: str) -> Text:
        said = []
        for call in calls:
            self._losses.carry(call.extra, where, _OURS)
            name = _name(call.name, call.namespace)
            self._names[call.id] = name
            said.append((self._named(call.id, name), call.arguments))
        return Text(text=written(self._syntax, said), cache=_last_mark(call.cache for call in calls))

    def _named(self, call_id: str, name: str) -> str:
        """Return what stands in place of the name of a call, with its id where the family writes ids."""
        telling = self._telling
        if not telling.own_id:
            return name
        own = re.fullmatch(telling.own_id, call_id) is not None
        if not own and not telling.made_id:
            return name
        made = call_id if own else telling.made_id.format(name=name, number=len(self._ids))
        self._ids[call_id] = made
        return telling.named.format(name=name, id=made)

    def _results(self, results: Sequence[ToolResult], where: str) -> tuple[Part, ...]:
        """Return results as parts of a turn: their text in the family's form, then images."""
        telling, texts = self._telling, []
        media: list[Part] = []
        for result in results:
            self._losses.carry(result.extra, where, _OURS)
            words = "\n".join(self._result_words(result, where, media))
            if result.is_error:
                words = f"[tool error] {words}"
            content = to_text(words) if telling.escaped else words
            name = result.name or self._names.get(result.call_id, "")
            shown = self._ids.get(result.call_id, result.call_id)
            fields = {"{name}": name, "{id}": shown, "{content}": content}
            texts.append(_filled(telling.result, fields))
        return (Text(text="\n".join(texts), cache=_last_mark(map(_mark, results))), *media)

    def _result_words(self, result: ToolResult, where: str, media: list[Part]) -> Iterator[str]:
        """Yield the text of a result; what is not text goes to `media`, and is referred to by its number."""
        for part in result.content:
            match part:
                case Text(text=text) | Refusal(text=text):
                    self._losses.carry(part.extra, where, _OURS)
                    yield text
                case Image() | Audio() | Video() | File():
                    kind = type(part).__name__.lower()
                    self._losses.emulated(where, kind, "moved after the tool results")
                    media.append(part)
                    yield f"[{kind} {len(media)}: below]"
                case Opaque(text=str() as text):
                    self._losses.approximated(where, kind_of(part), "written as text")
                    yield text
                case _:
                    kind = kind_of(part) if isinstance(part, Opaque) else type(part).__name__.lower()
                    self._losses.dropped(where, kind, "a tool result is rendered as text")


def _in_order(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with results that follow each other in the order of their calls, for few families name them.

    Clients give them as they come in, and distinguish them by ids.
    """
    contents = [list(message.content) for message in messages]
    called: dict[str, tuple[int, int]] = {}
    run: list[tuple[int, int]] = []
    for place, part in [((index, at), part) for index, parts in enumerate(contents) for at, part in enumerate(parts)]:
        if isinstance(part, ToolResult):
            run.append(place)
            continue
        _sort(contents, run, called)
        run = []
        if isinstance(part, ToolCall):
            called[part.id] = place
    _sort(contents, run, called)
    return [replace(message, content=tuple(parts)) for message, parts in zip(messages, contents, strict=True)]


def _sort(contents: list[list[Part]], run: list[tuple[int, int]], called: dict[str, tuple[int, int]]) -> None:
    """Put the results that stand at the places `run` in the order of their calls; those of none come last."""
    results = [part for index, at in run if isinstance(part := contents[index][at], ToolResult)]
    results.sort(key=lambda result: called.get(result.call_id, (len(contents), 0)))
    for (index, at), result in zip(run, results, strict=True):
        contents[index][at] = result


def _mark(result: ToolResult) -> CacheMark | None:
    inner = (part.cache for part in result.content if isinstance(part, Text))
    return result.cache or _last_mark(inner)


def _last_mark(marks: Iterable[CacheMark | None]) -> CacheMark | None:
    """Return the last mark: what is written as one text can be marked at its end."""
    return next((mark for mark in reversed([*marks]) if mark is not None), None)


def _name(name: str, namespace: str | None) -> str:
    """Return the name in the prompt, which has no limit: the model may know the tool by it."""
    return qualified(name, namespace)


def _filled(template: str, fields: dict[str, str]) -> str:
    """Return `template` with its fields put in; what looks like a field in a value is none."""
    return _FIELD.sub(lambda found: fields[found[0]], template)


def _with_system(messages: Sequence[Message], told: Text | None) -> tuple[Message, ...]:
    """Return the messages with `told` at the end of the first system turn that has words, or as one of its own.

    It stands there in every turn of a conversation, so that servers find what they remember of the prompt.
    """
    if told is None:
        return tuple(messages)
    for index, message in enumerate(messages):
        if message.role not in ("system", "developer"):
            break
        if any(isinstance(part, Text) for part in message.content):
            behind = replace(message, content=(*message.content, replace(told, text=f"\n\n{told.text}")))
            return (*messages[:index], behind, *messages[index + 1 :])
    return (Message(role="system", content=(told,)), *messages)


def _joined(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with neighbours joined that were one turn: calls after words, words after results."""
    joined: list[Message] = []
    for _, run in groupby(enumerate(messages), key=_joins):
        turns = [message for _, message in run]
        joined.append(turns[0] if len(turns) == 1 else replace(turns[0], content=_content(turns)))
    return joined


def _joins(numbered: tuple[int, Message]) -> str | int:
    """Return what is the same for neighbours that are joined."""
    number, message = numbered
    return message.role if message.role in ("user", "assistant") else number


def _content(turns: Iterable[Message]) -> tuple[Part, ...]:
    """Return the parts of several turns; words of one and words of the next become one text, with a line's end between.

    They stay two where a prompt is to be cached up to the end of the first, or the second has more attributes.
    """
    runs: list[list[Part]] = []
    for turn in turns:
        for index, part in enumerate(turn.content):
            before = runs[-1][-1] if runs and not index else None
            if not isinstance(before, Text) or not isinstance(part, Text):
                runs.append([part])
                continue
            line = part if before.text.endswith("\n") else replace(part, text=f"\n{part.text}")
            if before.cache is None and part == Text(text=part.text, cache=part.cache):
                runs[-1].append(line)
            else:
                runs.append([line])
    return tuple(map(_one, runs))


def _one(run: Sequence[Part]) -> Part:
    texts = [part for part in run if isinstance(part, Text)]
    return replace(texts[0], text="".join(part.text for part in texts), cache=texts[-1].cache) if texts else run[0]

"""Decodes requests and their messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.call_ids import MessageHistory
from xenoglot.dialects.chat.assistant_decoder import decode_assistant, take_content
from xenoglot.dialects.chat.extras import NAME, extra_of
from xenoglot.dialects.chat.fast.frequent_shapes import plain_message
from xenoglot.dialects.chat.request.fields import BUDGET, REASONING, REQUEST, SAMPLING, TOOL_ERROR
from xenoglot.dialects.chat.request.media_output import KEYS, take_media
from xenoglot.dialects.chat.request.web_search import OPTIONS, take_search
from xenoglot.dialects.chat.tools import decode_choice, decode_function_call, decode_functions, decode_tools
from xenoglot.dialects.openai.options import EFFORTS
from xenoglot.dialects.openai.sampling import take_stream_options
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Text, ToolResult
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Effort, Message, Request, RequestTool, Sampling, Thinking, ToolChoice

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.content import Part


def decode_messages(reader: Reader) -> tuple[Message, ...]:
    """Take `messages`.

    Raises:
        WireError: a message has no role we know, or lacks what its role needs.
    """
    items = reader.need("messages", list)
    plain = [plain_message(item) for item in items]
    if None not in plain:  # nearly always
        return tuple(plain)  # type: ignore[arg-type]  # as was seen
    path = reader.at("messages")
    before = MessageHistory()
    for index, item in enumerate(items):
        message = plain_message(item) or _decode_message(Reader(item, f"{path}[{index}]"), before)
        before.messages.append(message)
    return tuple(before.messages)


def _decode_message(reader: Reader, before: MessageHistory) -> Message:
    role = reader.need("role", str)
    decode = _DECODERS.get(role)
    if decode is None:
        raise WireError(reader.at("role"), f"expected one of {', '.join(_DECODERS)}")
    return decode(reader, before)


def function_id(position: int) -> str:
    """Return the id of the deprecated function call of the message at `position`, for its result to name."""
    return f"call_function_{position}"


def _decode_plain(role: str) -> Callable[[Reader, MessageHistory], Message]:
    def decode(reader: Reader, _: MessageHistory) -> Message:
        parts, spelled = take_content(reader)
        name = reader.take("name", str)
        return Message(role=role, content=tuple(parts), name=name, extra=extra_of(reader, _content_form(spelled)))  # type: ignore[arg-type]

    return decode


def _decode_assistant(reader: Reader, before: MessageHistory) -> Message:
    parts, form = decode_assistant(reader, None, lambda: function_id(len(before.messages)))
    name = reader.take("name", str)
    form |= _content_form(form["content"])
    if form["content"] == "string":
        del form["content"]
    return Message(role="assistant", content=tuple(parts), name=name, extra=extra_of(reader, form))


def _decode_tool(reader: Reader, _: MessageHistory) -> Message:
    parts, spelled = take_content(reader)
    content, is_error = _take_error(parts)
    result = ToolResult(
        call_id=reader.need("tool_call_id", str),
        content=tuple(content),
        is_error=is_error,
        name=reader.take("name", str),
    )
    return Message(role="tool", content=(result,), extra=extra_of(reader, _content_form(spelled)))


def _decode_function(reader: Reader, before: MessageHistory) -> Message:
    """Read the deprecated answer of a function: it belongs to the last call of its name."""
    parts, spelled = take_content(reader)
    content, is_error = _take_error(parts)
    name = reader.need("name", str)
    call_id = before.last_call(name)
    if call_id is None:
        call_id = function_id(len(before.messages))
    result = ToolResult(call_id=call_id, content=tuple(content), is_error=is_error, name=name)
    return Message(role="tool", content=(result,), extra=extra_of(reader, {**_content_form(spelled), "legacy": True}))


_DECODERS: dict[str, Callable[[Reader, MessageHistory], Message]] = {
    "system": _decode_plain("system"),
    "developer": _decode_plain("developer"),
    "user": _decode_plain("user"),
    "assistant": _decode_assistant,
    "tool": _decode_tool,
    "function": _decode_function,
}


def _content_form(spelled: str) -> dict[str, JSON]:
    """Return the form of content that is not the usual one: text, empty if there is none."""
    return {} if spelled in ("string", "empty") else {"content": spelled}


def _take_error(parts: list[Part]) -> tuple[list[Part], bool | None]:
    first = parts[0] if parts else None
    if isinstance(first, Text) and first.text.startswith(TOOL_ERROR):
        return [replace(first, text=first.text.removeprefix(TOOL_ERROR)), *parts[1:]], True
    return parts, None


_TOOLS = frozenset({"tools", "functions", "tool_choice", "function_call", "parallel_tool_calls"})
_THINKING = frozenset({"reasoning_effort", "reasoning", "thinking"})
"""The fields that are read together: where a request has none of them, nothing is looked for."""


def decode_request(body: JSON) -> Request:
    """Return the canonical request.

    Raises:
        WireError: a field is missing, of a wrong type or out of range.
    """
    reader = Reader(body)
    form: JSONObject = {}
    model = reader.need("model", str)
    messages = decode_messages(reader)
    left = reader.rest()
    tools, choice, parallel = ((), None, None) if _TOOLS.isdisjoint(left) else _decode_tooling(reader, form)
    if OPTIONS in left:
        tools = (*tools, *take_search(reader))
    thinking = None if _THINKING.isdisjoint(left) else _decode_thinking(reader, form)
    media = None if KEYS.isdisjoint(left) else take_media(reader, form)
    stream_usage = take_stream_options(reader, form) if "stream_options" in left else None
    stream = reader.take("stream", bool)
    if stream is False:
        form["unstreamed"] = True
    sampling, others = Sampling(**SAMPLING.read(reader, form)), REQUEST.read(reader, form)
    request = Request(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=parallel,
        sampling=sampling,
        thinking=thinking,
        media=media,
        stream=stream is True,
        stream_usage=stream_usage,
        extra=Extra(dialect=NAME, fields=left, form=form),
    )
    return replace(request, **others) if others else request


def _decode_tooling(reader: Reader, form: JSONObject) -> tuple[tuple[RequestTool, ...], ToolChoice | None, bool | None]:
    """Take the tools, the choice among them, and whether several may be called at once."""
    legacy = "functions" in reader and "tools" not in reader
    if legacy:
        form["functions"] = True
    if reader.peek("tools") == []:
        form["tools"] = True
    tools = decode_functions(reader) if legacy else decode_tools(reader)
    choice = decode_choice(reader)
    if choice is None and "function_call" in reader:
        choice = decode_function_call(reader)
        if choice is not None:
            form["function_call"] = True
    parallel = reader.take("parallel_tool_calls", bool)
    if parallel is not None:
        form["parallel"] = True
    return tools, choice, False if legacy and parallel is None else parallel


def _decode_thinking(reader: Reader, form: JSONObject) -> Thinking | None:
    """Take the reasoning effort, in any of three forms; unknown values stay in the rest."""
    effort: Effort | None = reader.take_word("reasoning_effort", EFFORTS)
    if effort is not None:
        form["thinking"] = "reasoning_effort"
        return Thinking(effort=effort)
    for key, table in (("reasoning", REASONING), ("thinking", BUDGET)):
        value = reader.peek(key)
        if not isinstance(value, dict):
            continue
        inner = Reader(value, reader.at(key))
        fields = table.read(inner, {})
        if table is REASONING or fields.get("mode") is not None:
            reader.take(key, dict)
            form["thinking"] = key
            return Thinking(**fields, extra=extra_of(inner, {}))
    return None

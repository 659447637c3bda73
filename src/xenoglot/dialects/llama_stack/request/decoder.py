"""Decodes requests (`chat_completion`) and their messages (`llama_stack/apis/inference/inference.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from xenoglot.codec.reader import Reader
from xenoglot.dialects.llama_stack.extras import NAME
from xenoglot.dialects.llama_stack.parts import decode_content
from xenoglot.dialects.llama_stack.request.sampling import take_output, take_sampling
from xenoglot.dialects.llama_stack.tool_calls import decode_call
from xenoglot.dialects.llama_stack.tools import decode_tools, take_choice
from xenoglot.errors import WireError
from xenoglot.model.content import Extra, Text, ToolResult
from xenoglot.model.request import Message, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from xenoglot.model.content import Part
    from xenoglot.model.json import JSON, JSONObject


TOOL_ERROR = "[tool error] "
"""What a tool's answer begins with where it is an error: the dialect has no field for it (L-W15, pitfall-9)."""


def decode_messages(reader: Reader) -> tuple[Message, ...]:
    """Take `messages`.

    Raises:
        WireError: a message has no role that we know, or lacks what its role needs (L4).
    """
    path = reader.at("messages")
    return tuple(_decode(item, f"{path}[{index}]") for index, item in enumerate(reader.need("messages", list)))


def _decode(item: JSON, path: str) -> Message:
    reader = Reader(item, path)
    role = reader.need("role", str)
    decode = _DECODERS.get(role)
    if decode is None:
        raise WireError(reader.at("role"), f"expected one of {', '.join(_DECODERS)}")
    return decode(reader)


def _take_content(reader: Reader) -> tuple[list[Part], str | None]:
    value = reader.take_any("content")
    if value is None:
        raise WireError(reader.at("content"), "required, expected str, object or list")
    return decode_content(value, reader.at("content"))


def _decode_plain(role: Literal["system", "user"]) -> Callable[[Reader], Message]:
    def decode(reader: Reader) -> Message:
        parts, spelled = _take_content(reader)
        context = _take_context(reader, parts) if role == "user" else None
        return Message(role=role, content=tuple(parts), extra=reader.extra(NAME, content=spelled, context=context))

    return decode


def _take_context(reader: Reader, parts: list[Part]) -> JSON:
    """Move what was retrieved for a question after it, as the server does (`chat_format.py`); return the form."""
    value = reader.take_any("context")
    if value is None:
        return None
    context, spelled = decode_content(value, reader.at("context"))
    parts += context
    return {"parts": len(context), "content": spelled}


def _decode_assistant(reader: Reader) -> Message:
    parts, spelled = _take_content(reader)
    stop = reader.take("stop_reason", str)
    form: JSONObject = {"content": spelled, "stop_reason": "absent" if stop is None else stop}
    if reader.peek("tool_calls") == []:
        form["calls"] = "empty"
    path = reader.at("tool_calls")
    calls = [decode_call(item, f"{path}[{index}]") for index, item in enumerate(reader.take("tool_calls", list) or ())]
    return Message(role="assistant", content=(*parts, *calls), extra=reader.extra(NAME, **form))


def _decode_tool(reader: Reader) -> Message:
    parts, spelled = _take_content(reader)
    content, is_error = _take_error(parts)
    result = ToolResult(
        call_id=reader.need("call_id", str),
        content=tuple(content),
        is_error=is_error,
        name=reader.take("tool_name", str),  # required until 0.1.6, gone with 0.2
    )
    return Message(role="tool", content=(result,), extra=reader.extra(NAME, content=spelled))


def _take_error(parts: list[Part]) -> tuple[list[Part], bool | None]:
    first = parts[0] if parts else None
    if isinstance(first, Text) and first.text.startswith(TOOL_ERROR):
        return [replace(first, text=first.text.removeprefix(TOOL_ERROR)), *parts[1:]], True
    return parts, None


_DECODERS: dict[str, Callable[[Reader], Message]] = {
    "system": _decode_plain("system"),
    "user": _decode_plain("user"),
    "assistant": _decode_assistant,
    "tool": _decode_tool,
}


def decode_request(body: JSON) -> Request:
    """Return the request in `body`.

    Raises:
        WireError: a field is missing, of the wrong type, or contradicts another.
    """
    reader = Reader(body)
    form: JSONObject = {}
    model = reader.need("model_id", str)
    messages = decode_messages(reader)
    if reader.peek("tools") == []:
        form["tools"] = "empty"
    tools = decode_tools(reader)
    return Request(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=take_choice(reader, tools, form),
        sampling=take_sampling(reader, form),
        output=take_output(reader),
        stream=take_stream(reader, form),
        extra=Extra(dialect=NAME, fields=reader.rest(), form=spelled(form)),
    )


def take_stream(reader: Reader, form: JSONObject) -> bool:
    """Take `stream`; an explicit false is kept as form."""
    stream = reader.take("stream", bool)
    form["unstreamed"] = True if stream is False else None
    return stream is True


def spelled(form: JSONObject) -> JSONObject:
    """Return the spellings that are any."""
    return {key: value for key, value in form.items() if value is not None}

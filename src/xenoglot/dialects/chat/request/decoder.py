"""Decodes requests."""

from __future__ import annotations

from msgspec.structs import replace

from xenoglot.codec.reader import Reader
from xenoglot.dialects.chat.extras import NAME, extra_of
from xenoglot.dialects.chat.request.fields import BUDGET, REASONING, REQUEST, SAMPLING
from xenoglot.dialects.chat.request.message_decoder import decode_messages
from xenoglot.dialects.chat.tools import decode_choice, decode_function_call, decode_functions, decode_tools
from xenoglot.dialects.openai.options import EFFORTS
from xenoglot.dialects.openai.sampling import take_stream_options
from xenoglot.model.content import Extra, Opaque
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Effort, Request, Sampling, Thinking, Tool, ToolChoice

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
    thinking = None if _THINKING.isdisjoint(left) else _decode_thinking(reader, form)
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
        stream=stream is True,
        stream_usage=stream_usage,
        extra=Extra(dialect=NAME, fields=left, form=form),
    )
    return replace(request, **others) if others else request


def _decode_tooling(
    reader: Reader, form: JSONObject
) -> tuple[tuple[Tool | Opaque, ...], ToolChoice | None, bool | None]:
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

"""Decodes requests to the canonical model without loss.

Source: `anthropic/types/beta/message_create_params.py` and `message_count_tokens_params.py` of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.provider_tools import DIRECT
from xenoglot.dialects.messages.client_tools import CLIENT_TOOLS, decode_client_tool
from xenoglot.dialects.messages.context_management import COMPACTION, resumed, with_compaction
from xenoglot.dialects.messages.extras import EFFORTS, NAME, keep_rest, take_cache
from xenoglot.dialects.messages.fast.frequent_shapes import STRING, plain_message, plain_tool
from xenoglot.dialects.messages.hosted.tools import (
    SERVERS,
    TOOLSET,
    decode_hosted_tool,
    decode_mcp_toolset,
    hosted_kind,
    with_servers,
)
from xenoglot.dialects.messages.part_decoder import BILLING_HEADER, decode_parts
from xenoglot.dialects.messages.request.fields import REQUEST, SAMPLING
from xenoglot.dialects.messages.toolsets import TOOLSETS, decode_members
from xenoglot.errors import FailureError, WireError
from xenoglot.model.content import CompactedHistory, Extra, Opaque, Part, Text
from xenoglot.model.failure import Failure
from xenoglot.model.request import (
    LEAST_BUDGET,
    Message,
    OutputFormat,
    Request,
    RequestTool,
    Role,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.json import JSON, JSONObject

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
BETWEEN_TOOLS = "between_tools"
"""A `thinking.type`: thinking is off, and the model reports its progress between calls in blocks of thinking."""

MODES: dict[str, Literal["enabled", "adaptive", "disabled"]] = {
    "enabled": "enabled",
    "adaptive": "adaptive",
    "disabled": "disabled",
}
CHOICES: dict[str, Literal["auto", "required", "none"]] = {
    "auto": "auto",
    "any": "required",
    "tool": "required",
    "none": "none",
}
_THINKING = frozenset({"thinking", "output_config", "output_format"})
"""The fields that are read together: where a request has none of them, nothing is looked for."""


def decode_request(value: JSON) -> Request:
    """Return the request in `value`; its `extra` is always set, and marks it as from this dialect.

    Raises:
        WireError: a field is missing, of the wrong type or out of its range.
        FailureError: it asks for a message thread. Threads are not supported, and leaving the field out would lose the
            history silently. The failure has the form that makes the official SDK send the whole
            conversation instead (`anthropic/lib/threads/_thread_state.py`): `error.details` with the `error_code`
            `thread_unsupported_request`.
    """
    reader = Reader(value)
    if "max_tokens" not in reader:
        reader.need("max_tokens", int)
    return _decode(reader)


def decode_count(value: JSON) -> Request:
    """Return the request whose tokens are to be counted: as `decode_request`, but `max_tokens` may be missing."""
    return _decode(Reader(value))


def _decode(reader: Reader) -> Request:
    left = reader.rest()
    if "thread" in left:
        _refuse_threads(reader)
    form: JSONObject = {}
    model = reader.need("model", str)
    summaries: list[Part] = []
    messages = (*(_take_system(reader) if "system" in left else ()), *_take_messages(reader, summaries))
    choice, parallel = _take_tool_choice(reader) if "tool_choice" in left else (None, None)
    thinking, output = (None, None) if _THINKING.isdisjoint(left) else _take_thinking_and_output(reader, form)
    tools = _take_tools(reader, form) if "tools" in left else ()
    if SERVERS in left:
        tools = with_servers(reader, tools, form)
    sampling, others = Sampling(**SAMPLING.read(reader, form)), REQUEST.read(reader, form)
    if thinking is not None:
        _check_budget(thinking, sampling.max_tokens)
    request = Request(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=parallel,
        sampling=sampling,
        output=output,
        thinking=thinking,
        stream="stream" in left and _take_stream(reader, form),
        user=_take_user(reader, form) if "metadata" in left else None,
        extra=Extra(dialect=NAME, fields=left, form=form),
    )
    request = replace(request, **others) if others else request
    if COMPACTION in left:
        request = with_compaction(reader, request)
    return resumed(request) if summaries else request


def _refuse_threads(reader: Reader) -> None:
    thread = reader.peek("thread")
    if thread is None:
        return
    Reader(thread, reader.at("thread")).need("type", str)
    failure = Failure(
        kind="unsupported",
        message="thread: message threads are not kept here; send the full conversation without `thread`",
        dialect=NAME,
        raw_type="invalid_request_error",
        param="$.thread",
        details={"error_code": "thread_unsupported_request", "unsupported": ["thread"]},
    )
    raise FailureError(failure)


def _take_tools(reader: Reader, form: JSONObject) -> tuple[RequestTool, ...]:
    if reader.peek("tools") == []:
        form["tools"] = "empty"
    path = reader.at("tools")
    tools: list[RequestTool] = []
    for index, item in enumerate(reader.take("tools", list) or ()):
        plain = plain_tool(item)
        tools += (plain,) if plain is not None else _decode_entry(Reader(item, f"{path}[{index}]"))
    return tuple(tools)


def _take_stream(reader: Reader, form: JSONObject) -> bool:
    stream = reader.take("stream", bool)
    if stream is False:
        form["stream"] = False
    return stream is True


def _take_system(reader: Reader) -> tuple[Message, ...]:
    value = reader.take_any("system")
    if value is None:
        return ()
    if type(value) is str:
        return (Message(role="system", content=(Text(text=value),), extra=STRING),)
    content = _system_parts(value, reader.at("system"))
    return (Message(role="system", content=content, extra=_spelling(value, inline=False)),)


def _system_parts(value: JSON, path: str) -> tuple[Part, ...]:
    parts = decode_parts(value, path)
    if isinstance(value, str):
        return parts
    return tuple(
        Opaque(dialect=NAME, data=block) if isinstance(part, Text) and part.text.startswith(BILLING_HEADER) else part
        for part, block in zip(parts, value, strict=True)
    )


def _spelling(content: JSON, *, inline: bool) -> Extra | None:
    if isinstance(content, str) and not inline:
        return STRING
    form: JSONObject = {"inline": True} if inline else {}
    if isinstance(content, str):
        form["content"] = "string"
    return Extra(dialect=NAME, form=form) if form else None


def _take_messages(reader: Reader, summaries: list[Part]) -> list[Message]:
    """Take the turns; `summaries` gets the compaction blocks in them."""
    items = reader.need("messages", list)
    if not items:
        raise WireError(reader.at("messages"), "at least one message is required")
    return [
        plain_message(item) or _decode_message(item, f"{reader.path}.messages[{index}]", summaries)
        for index, item in enumerate(items)
    ]


def _decode_message(value: JSON, path: str, summaries: list[Part]) -> Message:
    reader = Reader(value, path)
    role = ROLES.get(reader.need("role", str))
    if role is None:
        raise WireError(reader.at("role"), "Input should be 'user', 'assistant' or 'system'")
    content = reader.take_any("content")
    if content is None and role != "system":  # a system turn may have other things to say (`SystemMessageParam`)
        raise WireError(reader.at("content"), "Field required")
    spelling = _spelling(content, inline=role == "system")
    form = {} if spelling is None else spelling.form
    if content is None:
        return Message(role=role, extra=reader.extra(NAME, content="missing", **form))
    decode = _system_parts if role == "system" else decode_parts
    parts = decode(content, reader.at("content"))
    summaries += [part for part in parts if type(part) is CompactedHistory]
    return Message(role=role, content=parts, extra=reader.extra(NAME, **form))


def _decode_entry(reader: Reader) -> Sequence[RequestTool]:
    """Read one tool, or all functions of a toolset; one without any is kept as it is."""
    kind = reader.peek("type")
    if not isinstance(kind, str) or kind not in TOOLSETS:
        return (_decode_tool(reader),)
    whole = dict(reader.rest())
    reader.take("type", str)
    return decode_members(reader, kind) or (Opaque(dialect=NAME, data=whole),)


def _decode_tool(reader: Reader) -> RequestTool:
    """Read one tool; one with a `type` that we do not know is run by the server, and stays as it is."""
    kind = reader.take("type", str)
    if kind is not None and (published := CLIENT_TOOLS.get(kind)) is not None:
        return decode_client_tool(reader, kind, published)
    if kind is not None and (does := hosted_kind(kind)) is not None:
        return decode_hosted_tool(reader, kind, does)
    if kind == TOOLSET:
        return decode_mcp_toolset(reader)
    if kind not in (None, "custom"):
        reader.rest()["type"] = kind
        return Opaque(dialect=NAME, data=reader.rest())
    callers = reader.strings("allowed_callers")
    direct = True if callers == (DIRECT,) else None  # the default
    return Tool(
        name=reader.need("name", str),
        description=reader.take("description", str),
        parameters=reader.need("input_schema", dict),
        strict=reader.take("strict", bool),
        defer_loading=reader.take("defer_loading", bool),
        allowed_callers=None if direct else callers,
        cache=take_cache(reader),
        extra=reader.extra(NAME, type=kind, direct=direct),
    )


def _take_tool_choice(reader: Reader) -> tuple[ToolChoice | None, bool | None]:
    value = reader.peek("tool_choice")
    choice = reader.object("tool_choice")
    if choice is None:
        return None, None
    word = choice.need("type", str)
    mode = CHOICES.get(word)
    if mode is None:
        reader.rest()["tool_choice"] = value
        return None, None
    serial = choice.take("disable_parallel_tool_use", bool)
    names = (choice.need("name", str),) if word == "tool" else ()
    parallel = None if serial is None else not serial
    return ToolChoice(mode=mode, names=names, extra=choice.extra(NAME)), parallel


def _take_thinking_and_output(reader: Reader, form: JSONObject) -> tuple[Thinking | None, OutputFormat | None]:
    thinking = _take_thinking(reader)
    config = reader.object("output_config")
    if config is None:
        return thinking, _take_format(reader, "output_format", form)
    effort = config.take_word("effort", EFFORTS)
    output = _take_format(config, "format", form)
    keep_rest(reader, "output_config", config, form, said=effort is not None or output is not None)
    if effort is not None:
        thinking = replace(thinking or Thinking(), effort=effort)
    return thinking, output or _take_format(reader, "output_format", form)


def _take_thinking(reader: Reader) -> Thinking | None:
    value = reader.peek("thinking")
    thinking = reader.object("thinking")
    if thinking is None:
        return None
    kind = thinking.need("type", str)
    mode = "disabled" if kind == BETWEEN_TOOLS else MODES.get(kind)
    if mode is None:
        reader.rest()["thinking"] = value
        return None
    if kind == BETWEEN_TOOLS:
        thinking.rest()["type"] = kind
    need = thinking.need if mode == "enabled" else thinking.take
    budget = need("budget_tokens", int)
    return Thinking(
        mode=mode,
        budget_tokens=budget,
        display=thinking.take("display", str),
        extra=thinking.extra(NAME),
    )


def _check_budget(thinking: Thinking, max_tokens: int | None) -> None:
    if thinking.mode != "enabled" or thinking.budget_tokens is None:
        return
    if thinking.budget_tokens < LEAST_BUDGET:
        raise WireError("$.thinking.budget_tokens", f"Input should be greater than or equal to {LEAST_BUDGET}")
    if max_tokens is not None and thinking.budget_tokens >= max_tokens:
        raise WireError("$.max_tokens", "`max_tokens` must be greater than `thinking.budget_tokens`")


def _take_format(reader: Reader, key: str, form: JSONObject) -> OutputFormat | None:
    """Take a schema for the answer; `output_format` at the top is its name of the beta days."""
    value = reader.peek(key)
    if not isinstance(value, dict) or value.get("type") != "json_schema":
        return None
    output = Reader(reader.take(key, dict), reader.at(key))
    output.take("type", str)
    if key == "output_format":
        form["output"] = key
    return OutputFormat(kind="json_schema", schema=output.need("schema", dict), extra=output.extra(NAME))


def _take_user(reader: Reader, form: JSONObject) -> str | None:
    metadata = reader.object("metadata")
    if metadata is None:
        return None
    user = metadata.take("user_id", str)
    keep_rest(reader, "metadata", metadata, form, said=user is not None)
    return user

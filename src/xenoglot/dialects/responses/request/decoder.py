"""Decodes requests.

Source: `openai/types/responses/response_create_params.py` of the official SDK, and `CreateResponseBody` of Open
Responses (https://www.openresponses.org/reference).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from xenoglot.codec.reader import Reader, expected, leave
from xenoglot.dialects.openai.options import EFFORTS
from xenoglot.dialects.responses.client_calls import with_names_apart
from xenoglot.dialects.responses.extras import NAME, extra_of
from xenoglot.dialects.responses.request.context_management import managed
from xenoglot.dialects.responses.request.fields import REASONING, REQUEST, SAMPLING, TEXT
from xenoglot.dialects.responses.request.input_decoder import InputDecoder
from xenoglot.dialects.responses.tools import decode_choice, decode_tools, identity, placed
from xenoglot.model.content import Extra, Text
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import Effort, Message, OutputFormat, Request, RequestTool, Sampling, Thinking

LOGPROBS = "message.output_text.logprobs"
ENCRYPTED = "reasoning.encrypted_content"
"""The values of `include` that we understand: log probabilities, and encrypted reasoning."""

_SILENT: JSONObject = {"truncation": "disabled", "background": False}
"""Defaults: a request that sets them explicitly differs only in form."""

_SILENCES = frozenset({*_SILENT, "stream_options", "include"})


def decode_request(body: JSON) -> Request:
    """Return the canonical request.

    Raises:
        WireError: a field is missing, of a wrong type or out of range.
    """
    reader = Reader(body)
    return _decode(reader, reader.need("model", str))


def decode_count(body: JSON) -> Request:
    """Return the request whose tokens are to be counted: as `decode_request`, but the model may be missing."""
    reader = Reader(body)
    return _decode(reader, reader.take("model", str) or "")


def _decode(reader: Reader, model: str) -> Request:
    form: JSONObject = {}
    turns = InputDecoder()
    messages = (*_take_instructions(reader, form), *_take_input(reader, turns, form))
    left = reader.rest()
    if reader.peek("tools") == []:
        form["tools"] = True
    tools = _with_placed(decode_tools(reader), turns.tools) if turns.tools or "tools" in left else ()
    stream = reader.take("stream", bool)
    if stream is False:
        form["unstreamed"] = True
    if not _SILENCES.isdisjoint(left):
        _take_silent(reader, form)
    if turns.updates:
        form["began"] = [{key: reader.peek(key) for key in ("reasoning", "text") if key in left}]
    choice = decode_choice(reader, tools) if "tool_choice" in left else None
    parallel = reader.take("parallel_tool_calls", bool)
    sampling = _take_sampling(reader, form)
    thinking = _take_thinking(reader, form) if "reasoning" in left else None
    others = REQUEST.read(reader, form)
    if "text" in left:
        others |= _take_text(reader, form)
    request = Request(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=parallel,
        sampling=sampling,
        thinking=thinking,
        stream=stream is True,
        extra=Extra(dialect=NAME, fields=left, form=form),
    )
    request = with_names_apart(replace(request, **others) if others else request)
    if turns.resumes or turns.trigger is not None:
        request = managed(request, turns.trigger, resumes=turns.resumes)
    return _updated(request, turns.updates) if turns.updates else request


def _take_instructions(reader: Reader, form: JSONObject) -> tuple[Message, ...]:
    """Take `instructions`, the first message of the system."""
    text = reader.take("instructions", str)
    if not text:
        if text is not None:
            form["instructions"] = "empty"
        return ()
    return (Message(role="system", content=(Text(text=text),), extra=Extra(dialect=NAME, form={"instructions": True})),)


def _take_input(reader: Reader, turns: InputDecoder, form: JSONObject) -> tuple[Message, ...]:
    """Take `input`: a text of the user, or a list of items (pitfall-54).

    Raises:
        WireError: it is neither.
    """
    value = reader.peek("input")
    if value is None:
        return ()
    if isinstance(value, str):
        reader.take("input", str)
        form["input"] = "string"
        return (Message(role="user", content=(Text(text=value),)),)
    if not isinstance(value, list):
        raise expected(reader.at("input"), "str or list", value)
    reader.take("input", list)
    messages, behind = turns.decode(value, reader.at("input"))
    if behind:
        form["behind"] = behind
    if not value:
        form["input"] = "empty"
    return messages


def _with_placed(tools: Sequence[RequestTool], inside: Sequence[RequestTool]) -> tuple[RequestTool, ...]:
    """Return the tools of the request, those that the input makes known after them, each once."""
    if not inside:
        return tuple(tools)
    known = {identity(tool) for tool in tools}
    added: list[RequestTool] = []
    for tool in inside:
        if identity(tool) not in known:
            known.add(identity(tool))
            added.append(tool)
    return (*tools, *placed(added))


def _take_silent(reader: Reader, form: JSONObject) -> None:
    """Take fields that only repeat a default, so that they are no loss elsewhere."""
    silent = {key: value for key, value in _SILENT.items() if key in reader and reader.peek(key) == value}
    options = reader.peek("stream_options")
    if isinstance(options, dict) and options.keys() <= {"include_obfuscation"}:  # we never write any (pitfall-115)
        silent["stream_options"] = options
    included = reader.peek("include")
    if isinstance(included, list) and all(name in (LOGPROBS, ENCRYPTED) for name in included):
        silent["include"] = included
    if isinstance(included, list):
        form["include"] = included
    for key in silent:
        reader.take_any(key)
    if silent:
        form["silent"] = silent


def _take_sampling(reader: Reader, form: JSONObject) -> Sampling:
    said = SAMPLING.read(reader, form)
    if LOGPROBS in (form.pop("include", None) or ()) or said.get("top_logprobs"):
        said["logprobs"] = True
    return Sampling(**said)


def _take_thinking(reader: Reader, form: JSONObject) -> Thinking | None:
    inner = reader.object("reasoning")
    if inner is None:
        return None
    fields = REASONING.read(inner, form)
    said = any(value is not None for value in fields.values()) or any(
        value is not None for value in inner.rest().values()
    )
    if not said:
        form["reasoning"] = [inner.rest()]
        return None
    return Thinking(**fields, extra=extra_of(inner, {}))


def _take_text(reader: Reader, form: JSONObject) -> JSONObject:
    """Take the fields of `text` for the form and the length of the answer (pitfall-66)."""
    inner = reader.object("text")
    if inner is None:
        return {}
    fields = TEXT.read(inner, form)
    form["text"] = leave(reader, "text", inner)
    return fields


def _updated(request: Request, updates: Sequence[Reader]) -> Request:
    """Return the request as the items in its input leave it."""
    for update in updates:
        reasoning = Reader(update.peek("reasoning") or {}, update.at("reasoning"))
        effort: Effort | None = reasoning.take_word("effort", EFFORTS)
        if effort is not None:
            request = replace(request, thinking=replace(request.thinking or Thinking(), effort=effort))
        text = TEXT.read(Reader(update.peek("text") or {}, update.at("text")), {})
        output: OutputFormat | None = text.get("output")
        if output is not None:
            request = replace(request, output=output)
    return request

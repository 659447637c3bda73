"""Reading a request.

Source: `openai/types/responses/response_create_params.py` of the official SDK, and `CreateResponseBody` of Open
Responses (https://www.openresponses.org/reference).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.leftovers import leave
from xenoglot.codec.ranges import MOST_TOKENS
from xenoglot.codec.reader import Reader, expected
from xenoglot.dialects.openai.sampling import ranged, take_repetition, take_seed
from xenoglot.dialects.responses.input_decoder import InputDecoder
from xenoglot.dialects.responses.leftovers import NAME, extra_of
from xenoglot.dialects.responses.tools import decode_choice, decode_tools, identity, placed
from xenoglot.model.content import CacheMark, Extra, Text
from xenoglot.model.effort import BUDGETS
from xenoglot.model.request import Message, OutputFormat, Request, Sampling, Thinking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.model.content import Opaque
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Effort, Tool

_EFFORTS: frozenset[Effort] = frozenset({"none", *BUDGETS})

LOGPROBS = "message.output_text.logprobs"
ENCRYPTED = "reasoning.encrypted_content"
"""What of `include` we understand: that probabilities be told, and that thoughts come sealed."""

_SILENT: JSONObject = {"truncation": "disabled", "background": False}
"""What is the case anyway: said, it is a matter of form."""


def decode_request(body: JSON) -> Request:
    """Return what a client asks.

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
    form["tools"] = reader.peek("tools") == []
    tools = _with_placed(decode_tools(reader.objects("tools")), turns.tools)
    stream = reader.take("stream", bool)
    form["unstreamed"] = stream is False
    _take_silent(reader, form)
    if turns.updates:
        form["began"] = [{key: reader.peek(key) for key in ("reasoning", "text") if key in reader.rest()}]
    request = Request(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=decode_choice(reader),
        parallel_tool_calls=reader.take("parallel_tool_calls", bool),
        sampling=_take_sampling(reader, form),
        thinking=_take_thinking(reader, form),
        stream=stream is True,
        user=_take_user(reader, form),
        metadata=reader.take("metadata", dict),
        service_tier=reader.take("service_tier", str),
        store=reader.take("store", bool),
        previous=reader.take("previous_response_id", str),
        cache=_take_cache(reader),
        cache_key=reader.take("prompt_cache_key", str),
    )
    request = _with_text(request, reader, form)
    request = _updated(request, turns.updates)
    return replace(request, extra=extra_of(reader, form) or Extra(dialect=NAME))


def _take_instructions(reader: Reader, form: JSONObject) -> tuple[Message, ...]:
    """Take `instructions`, which are what the system says first."""
    text = reader.take("instructions", str)
    if not text:
        form["instructions"] = text is not None and "empty"
        return ()
    return (Message(role="system", content=(Text(text=text),), extra=Extra(dialect=NAME, form={"instructions": True})),)


def _take_input(reader: Reader, turns: InputDecoder, form: JSONObject) -> tuple[Message, ...]:
    """Take `input`: a text that the user says, or a list of items (pitfall-54).

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
    form["behind"] = behind
    form["input"] = not value and "empty"
    return messages


def _with_placed(tools: Sequence[Tool | Opaque], inside: Sequence[Tool | Opaque]) -> tuple[Tool | Opaque, ...]:
    """Return the tools of the request, those that the input makes known behind them, each once."""
    known = {identity(tool) for tool in tools}
    added: list[Tool | Opaque] = []
    for tool in inside:
        if identity(tool) not in known:
            known.add(identity(tool))
            added.append(tool)
    return (*tools, *placed(added))


def _take_silent(reader: Reader, form: JSONObject) -> None:
    """Take what says only what is the case anyway, so that it is no loss elsewhere."""
    silent = {key: value for key, value in _SILENT.items() if key in reader and reader.peek(key) == value}
    options = reader.peek("stream_options")
    if isinstance(options, dict) and options.keys() <= {"include_obfuscation"}:  # we never write any (pitfall-115)
        silent["stream_options"] = options
    included = reader.peek("include")
    if isinstance(included, list) and all(name in (LOGPROBS, ENCRYPTED) for name in included):
        silent["include"] = included
    form["include"] = included if isinstance(included, list) else None
    for key in silent:
        reader.take_any(key)
    form["silent"] = silent


def _take_sampling(reader: Reader, form: JSONObject) -> Sampling:
    top_logprobs = ranged(reader, "top_logprobs", int, 0, 20)
    included = form.pop("include", None) or ()
    return Sampling(
        max_tokens=ranged(reader, "max_output_tokens", int, 1, MOST_TOKENS),
        temperature=ranged(reader, "temperature", float, 0, 2),
        top_p=ranged(reader, "top_p", float, 0, 1),
        top_k=ranged(reader, "top_k", int, -1, MOST_TOKENS),
        min_p=ranged(reader, "min_p", float, 0, 1),
        seed=take_seed(reader),
        frequency_penalty=ranged(reader, "frequency_penalty", float, -2, 2),
        presence_penalty=ranged(reader, "presence_penalty", float, -2, 2),
        repetition_penalty=take_repetition(reader, form),
        logprobs=True if LOGPROBS in included or top_logprobs else None,
        top_logprobs=top_logprobs,
    )


def _take_thinking(reader: Reader, form: JSONObject) -> Thinking | None:
    inner = reader.object("reasoning")
    if inner is None:
        return None
    effort: Effort | None = inner.take_word("effort", _EFFORTS)
    summary = inner.take_if("summary", str)
    if summary is None and (older := inner.take_if("generate_summary", str)) is not None:
        summary = older
        form["summary"] = "generate_summary"
    said = effort is not None or summary is not None or any(value is not None for value in inner.rest().values())
    if not said:
        form["reasoning"] = [inner.rest()]
        return None
    return Thinking(effort=effort, summary=summary, extra=extra_of(inner, {}))


def _with_text(request: Request, reader: Reader, form: JSONObject) -> Request:
    """Return the request with what `text` says of the form and the length of the answer (pitfall-66)."""
    inner = reader.object("text")
    if inner is None:
        return request
    verbosity = inner.take("verbosity", str)
    output = decode_format(inner)
    form["text"] = leave(reader, "text", inner)
    return replace(request, verbosity=verbosity, output=output)


def decode_format(reader: Reader) -> OutputFormat | None:
    """Take `format`; one of a type that we do not know stays in the rest."""
    value = reader.peek("format")
    if value is None:
        return None
    inner = Reader(value, reader.at("format"))
    kind = inner.need("type", str)
    if kind not in ("text", "json_object", "json_schema"):
        return None
    reader.take("format", dict)
    if kind != "json_schema":
        return OutputFormat(kind="text" if kind == "text" else "json", extra=extra_of(inner, {}))
    return OutputFormat(
        kind="json_schema",
        schema=inner.take_any("schema"),
        name=inner.take("name", str),
        description=inner.take("description", str),
        strict=inner.take("strict", bool),
        extra=extra_of(inner, {}),
    )


def _updated(request: Request, updates: Sequence[Reader]) -> Request:
    """Return the request as the items in its input leave it."""
    for update in updates:
        reasoning = Reader(update.peek("reasoning") or {}, update.at("reasoning"))
        effort: Effort | None = reasoning.take_word("effort", _EFFORTS)
        if effort is not None:
            request = replace(request, thinking=replace(request.thinking or Thinking(), effort=effort))
        output = decode_format(Reader(update.peek("text") or {}, update.at("text")))
        if output is not None:
            request = replace(request, output=output)
    return request


def _take_user(reader: Reader, form: JSONObject) -> str | None:
    for key in ("safety_identifier", "user"):
        user = reader.take(key, str)
        if user is not None:
            form["user"] = key
            return user
    return None


def _take_cache(reader: Reader) -> CacheMark | None:
    """Take `prompt_cache_options` where it asks for the implicit breakpoint."""
    value = reader.peek("prompt_cache_options")
    if not isinstance(value, dict) or value.get("mode") != "implicit":
        return None
    inner = Reader(reader.take("prompt_cache_options", dict), reader.at("prompt_cache_options"))
    inner.take("mode", str)
    return CacheMark(ttl=inner.take("ttl", str), extra=extra_of(inner, {"options": True}))

"""Decodes requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from xenoglot.codec.json.nested_extra import leave
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.bounds import MOST_CANDIDATES, MOST_TOKENS
from xenoglot.dialects.chat.extras import NAME, extra_of
from xenoglot.dialects.chat.request.message_decoder import decode_messages
from xenoglot.dialects.chat.tools import decode_choice, decode_function_call, decode_functions, decode_tools
from xenoglot.dialects.openai.sampling import (
    NUMBERS,
    Take,
    number,
    ranged,
    spelled,
    take_bias,
    take_fields,
    take_stop,
    take_stream_options,
)
from xenoglot.model.content import CacheMark, Extra
from xenoglot.model.effort import BUDGETS
from xenoglot.model.request import OutputFormat, Request, Sampling, Thinking

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xenoglot.model.content import Opaque
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Effort, Tool, ToolChoice

_EFFORTS: frozenset[Effort] = frozenset({"none", *BUDGETS})
_MODES = ("enabled", "adaptive", "disabled")

_LIMIT = ("max_tokens", spelled("max_tokens", number(int, 1, MOST_TOKENS)))
_SAMPLING: Mapping[str, tuple[str, Take]] = {
    "max_completion_tokens": _LIMIT,
    "max_tokens": _LIMIT,
    **NUMBERS,
    "logit_bias": ("logit_bias", lambda reader, _, form: take_bias(reader, form)),
    "logprobs": ("logprobs", lambda reader, key, _: reader.take(key, bool)),
    "top_logprobs": ("top_logprobs", number(int, 0, 20)),
    "stop": ("stop", lambda reader, _, form: take_stop(reader, form)),
    "n": ("n", number(int, 1, MOST_CANDIDATES)),
}
_TOOLS = frozenset({"tools", "functions", "tool_choice", "function_call", "parallel_tool_calls"})
_THINKING = frozenset({"reasoning_effort", "reasoning", "thinking"})
_USERS = frozenset({"safety_identifier", "user"})
_OTHERS = frozenset(
    {
        "response_format",
        "verbosity",
        "metadata",
        "service_tier",
        "store",
        "prompt_cache_options",
        "prompt_cache_key",
    }
)
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
    user = None if _USERS.isdisjoint(left) else _take_user(reader, form)
    stream_usage = take_stream_options(reader, form) if "stream_options" in left else None
    stream = reader.take("stream", bool)
    if stream is False:
        form["unstreamed"] = True
    sampling = Sampling(**take_fields(reader, _SAMPLING, form))
    others = None if _OTHERS.isdisjoint(left) else _decode_others(reader)
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
        user=user,
        extra=Extra(dialect=NAME, fields=left, form=form),
    )
    return request if others is None else replace(request, **others)


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


def _decode_others(reader: Reader) -> JSONObject:
    """Return those fields of a request that few clients send."""
    return {
        "output": _decode_output(reader),
        "verbosity": reader.take("verbosity", str),
        "metadata": reader.take("metadata", dict),
        "service_tier": reader.take("service_tier", str),
        "store": reader.take("store", bool),
        "cache": _take_cache(reader),
        "cache_key": reader.take("prompt_cache_key", str),
    }


def _decode_output(reader: Reader) -> OutputFormat | None:
    """Take `response_format`; a type that we do not know stays in the rest."""
    value = reader.peek("response_format")
    if value is None:
        return None
    inner = Reader(value, reader.at("response_format"))
    kind = inner.need("type", str)
    if kind not in ("text", "json_object", "json_schema"):
        return None
    reader.take("response_format", dict)
    if kind == "text":
        return OutputFormat(kind="text", extra=extra_of(inner, {}))
    if kind == "json_object":  # llama.cpp and Together take a schema beside it
        schema = inner.take("schema", dict)
        extra = extra_of(inner, {"json_object": schema is not None})
        return OutputFormat(kind="json" if schema is None else "json_schema", schema=schema, extra=extra)
    spec = Reader(inner.need("json_schema", dict), inner.at("json_schema"))
    name, description = spec.take("name", str), spec.take("description", str)
    schema, strict = spec.take_any("schema"), spec.take("strict", bool)
    nulls = leave(inner, "json_schema", spec)
    return OutputFormat(
        kind="json_schema",
        schema=schema,
        name=name,
        description=description,
        strict=strict,
        extra=extra_of(inner, {"json_schema": nulls}),
    )


def _decode_thinking(reader: Reader, form: JSONObject) -> Thinking | None:
    """Take the reasoning effort, in any of three forms; unknown values stay in the rest."""
    effort = reader.take_word("reasoning_effort", _EFFORTS)
    if effort is not None:
        form["thinking"] = "reasoning_effort"
        return Thinking(effort=effort)
    for key, decode in (("reasoning", _decode_reasoning), ("thinking", _decode_budget)):
        value = reader.peek(key)
        thinking = decode(Reader(value, reader.at(key))) if isinstance(value, dict) else None
        if thinking is not None:
            reader.take(key, dict)
            form["thinking"] = key
            return thinking
    return None


def _decode_reasoning(reader: Reader) -> Thinking:
    """Read OpenRouter's `reasoning` (https://openrouter.ai/docs/use-cases/reasoning-tokens)."""
    effort: Effort | None = reader.take_word("effort", _EFFORTS)
    enabled = reader.take("enabled", bool)
    budget = ranged(reader, "max_tokens", int, 1, MOST_TOKENS)
    exclude = reader.take_any("exclude") if reader.peek("exclude") is True else None
    return Thinking(
        mode=None if enabled is None else "enabled" if enabled else "disabled",
        effort=effort,
        budget_tokens=budget,
        display=None if exclude is None else "omitted",
        summary=reader.take_if("summary", str),
        extra=extra_of(reader, {}),
    )


def _decode_budget(reader: Reader) -> Thinking | None:
    """Read `thinking` as DeepSeek, GLM and LiteLLM take it."""
    mode = reader.take_word("type", _MODES)
    if mode is None:
        return None
    budget = ranged(reader, "budget_tokens", int, 1, MOST_TOKENS)
    return Thinking(mode=mode, budget_tokens=budget, extra=extra_of(reader, {}))  # type: ignore[arg-type]


def _take_user(reader: Reader, form: JSONObject) -> str | None:
    for key in ("safety_identifier", "user"):
        user = reader.take(key, str)
        if user is not None:
            form["user"] = key
            return user
    return None


def _take_cache(reader: Reader) -> CacheMark | None:
    """Take `prompt_cache_options` if it requests the implicit breakpoint."""
    value = reader.peek("prompt_cache_options")
    if not isinstance(value, dict) or value.get("mode") != "implicit":
        return None
    inner = Reader(reader.take("prompt_cache_options", dict), reader.at("prompt_cache_options"))
    inner.take("mode", str)
    return CacheMark(ttl=inner.take("ttl", str), extra=extra_of(inner, {"options": True}))

"""Reading a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.leftovers import leave
from xenoglot.codec.ranges import MOST_CANDIDATES, MOST_TOKENS
from xenoglot.codec.reader import Reader
from xenoglot.dialects.chat.leftovers import NAME, extra_of
from xenoglot.dialects.chat.message_decoder import decode_messages
from xenoglot.dialects.chat.tools import decode_choice, decode_function_call, decode_functions, decode_tools
from xenoglot.dialects.openai.sampling import (
    ranged,
    take_bias,
    take_repetition,
    take_seed,
    take_stop,
    take_stream_options,
)
from xenoglot.model.content import CacheMark, Extra
from xenoglot.model.effort import BUDGETS
from xenoglot.model.request import OutputFormat, Request, Sampling, Thinking

if TYPE_CHECKING:
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.model.request import Effort

_EFFORTS: frozenset[Effort] = frozenset({"none", *BUDGETS})
_MODES = ("enabled", "adaptive", "disabled")


def decode_request(body: JSON) -> Request:
    """Return what a client asks.

    Raises:
        WireError: a field is missing, of a wrong type or out of range.
    """
    reader = Reader(body)
    form: JSONObject = {}
    model = reader.need("model", str)
    messages = decode_messages(reader)
    legacy = "functions" in reader and "tools" not in reader
    form["functions"] = legacy
    form["tools"] = reader.peek("tools") == []
    tools = decode_functions(reader) if legacy else decode_tools(reader)
    choice = decode_choice(reader)
    if choice is None and "function_call" in reader:
        choice = decode_function_call(reader)
        form["function_call"] = choice is not None
    parallel = reader.take("parallel_tool_calls", bool)
    form["parallel"] = parallel is not None
    thinking = _decode_thinking(reader, form)
    user = _take_user(reader, form)
    stream_usage = take_stream_options(reader, form)
    stream = reader.take("stream", bool)
    form["unstreamed"] = stream is False
    return Request(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=False if legacy and parallel is None else parallel,
        sampling=_decode_sampling(reader, form),
        output=_decode_output(reader),
        thinking=thinking,
        verbosity=reader.take("verbosity", str),
        stream=stream is True,
        stream_usage=stream_usage,
        user=user,
        metadata=reader.take("metadata", dict),
        service_tier=reader.take("service_tier", str),
        store=reader.take("store", bool),
        cache=_take_cache(reader),
        cache_key=reader.take("prompt_cache_key", str),
        extra=extra_of(reader, form) or Extra(dialect=NAME),
    )


def _decode_sampling(reader: Reader, form: JSONObject) -> Sampling:
    return Sampling(
        max_tokens=_take_max_tokens(reader, form),
        temperature=ranged(reader, "temperature", float, 0, 2),
        top_p=ranged(reader, "top_p", float, 0, 1),
        top_k=ranged(reader, "top_k", int, -1, MOST_TOKENS),
        min_p=ranged(reader, "min_p", float, 0, 1),
        seed=take_seed(reader),
        frequency_penalty=ranged(reader, "frequency_penalty", float, -2, 2),
        presence_penalty=ranged(reader, "presence_penalty", float, -2, 2),
        repetition_penalty=take_repetition(reader, form),
        logit_bias=take_bias(reader),
        logprobs=reader.take("logprobs", bool),
        top_logprobs=ranged(reader, "top_logprobs", int, 0, 20),
        stop=take_stop(reader, form),
        n=ranged(reader, "n", int, 1, MOST_CANDIDATES),
    )


def _take_max_tokens(reader: Reader, form: JSONObject) -> int | None:
    for key in ("max_completion_tokens", "max_tokens"):
        if key in reader:
            form["max_tokens"] = key
            limit: int = ranged(reader, key, int, 1, MOST_TOKENS)
            return limit
    return None


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
        schema = inner.take_if("schema", dict)
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
    """Take how much to think, said in any of three ways; what is not understood stays in the rest."""
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
    """Take `prompt_cache_options` where it asks for the implicit breakpoint."""
    value = reader.peek("prompt_cache_options")
    if not isinstance(value, dict) or value.get("mode") != "implicit":
        return None
    inner = Reader(reader.take("prompt_cache_options", dict), reader.at("prompt_cache_options"))
    inner.take("mode", str)
    return CacheMark(ttl=inner.take("ttl", str), extra=extra_of(inner, {"options": True}))

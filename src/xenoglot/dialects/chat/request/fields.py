"""Field tables of requests (OpenAI's and servers' that extend it), the output format, limits of names and ids."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from xenoglot.codec.fields import Field, Fields, by_hand, words
from xenoglot.codec.loss import form_of
from xenoglot.codec.reader import Reader, leave, left
from xenoglot.codec.requests.checks import MOST_CANDIDATES, MOST_TOKENS
from xenoglot.codec.requests.encode_context import EncodeContext, write_max_tokens
from xenoglot.codec.requests.stop_strings import stop_writer, take_stop
from xenoglot.dialects.chat.extras import NAME, extra_of, own_fields
from xenoglot.dialects.openai.options import EFFORTS, encode_format, options, take_format
from xenoglot.dialects.openai.sampling import TEXTS, encode_bias, numbers, take_bias
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import OutputFormat, Request, Sampling, Thinking


def take_output(reader: Reader, key: str, _form: JSONObject) -> OutputFormat | None:
    """Take `response_format`; a type that we do not know stays in the rest."""
    inner = Reader(reader.peek(key), reader.at(key))
    kind = inner.need("type", str)
    if kind not in ("text", "json_object", "json_schema"):
        return None
    reader.take(key, dict)
    if kind == "text":
        return OutputFormat(kind="text", extra=extra_of(inner, {}))
    if kind == "json_object":  # llama.cpp and Together take a schema beside it
        schema = inner.take("schema", dict)
        extra = extra_of(inner, {"json_object": schema is not None})
        return OutputFormat(kind="json" if schema is None else "json_schema", schema=schema, extra=extra)
    spec = Reader(inner.need("json_schema", dict), inner.at("json_schema"))
    output = take_format(spec)
    nulls = leave(inner, "json_schema", spec)
    return replace(output, extra=extra_of(inner, {"json_schema": nulls}))


def write_output(output: OutputFormat, _form: JSONObject, context: EncodeContext) -> JSON:
    """Return `response_format`."""
    form, own = form_of(output.extra, NAME), own_fields(output.extra, "$.output", context.losses)
    if output.kind == "text":
        return {"type": "text", **own}
    if output.kind == "json":
        return {"type": "json_object", **own}
    if form.get("json_object"):
        return {"type": "json_object", "schema": output.schema, **own}
    spec = encode_format(output, context)
    return {"type": "json_schema", "json_schema": {**spec, **left(own, form, "json_schema")}, **own}


_MODES: Final = ("enabled", "adaptive", "disabled")

SAMPLING: Final = Fields(
    Sampling,
    "$.sampling",
    (
        *numbers("top_k", "min_p", "repetition_penalty"),
        Field("logprobs", "logprobs", bool),
        Field("top_logprobs", "top_logprobs", int, 0, 20),
        Field("n", "n", int, 1, MOST_CANDIDATES),
        Field(
            "max_tokens",
            ("max_completion_tokens", "max_tokens"),
            int,
            1,
            MOST_TOKENS,
            written="max_tokens",
            server_key="max_tokens_field",
            write=write_max_tokens,
        ),
        Field("logit_bias", "logit_bias", read=take_bias, write=encode_bias, values="object, or list of pairs"),
        Field("stop", "stop", read=take_stop, write=stop_writer(4), values="string or list of strings"),
    ),
    texts=TEXTS,
)

REQUEST: Final = Fields(
    Request,
    "$",
    (
        by_hand("model", "model", values="string"),
        by_hand("messages", "messages", values="list of turns"),
        by_hand("tools", "tools", "functions", values="list of tools"),
        by_hand("tool_choice", "tool_choice", "function_call", values="word or object"),
        by_hand("parallel_tool_calls", "parallel_tool_calls", values="boolean"),
        by_hand("thinking", "reasoning_effort", "reasoning", "thinking", values="word or object"),
        by_hand("media", "modalities", "audio", "image_config", values="list, objects"),
        by_hand("stream", "stream", values="boolean"),
        by_hand("stream_usage", "stream_options", values="object with `include_usage`"),
        Field("output", "response_format", read=take_output, write=write_output, values="object"),
        Field("verbosity", "verbosity"),
        *options(NAME, "user"),
        "sampling",
        "prompt",
        "previous",
    ),
)

REASONING: Final = Fields(
    Thinking,
    "$.thinking",
    (
        Field("effort", "effort", read=words(EFFORTS), values=", ".join(EFFORTS)),
        Field("budget_tokens", "max_tokens", int, 1, MOST_TOKENS),
        Field("summary", "summary", read=lambda reader, key, _form: reader.take_if(key, str)),
        Field(
            "mode",
            "enabled",
            bool,
            read=lambda reader, key, _form: "enabled" if reader.take(key, bool) else "disabled",
            write=lambda mode, _form, _context: mode == "enabled",
        ),
        Field(
            "display",
            "exclude",
            bool,
            read=lambda reader, key, _form: "omitted" if reader.peek(key) is True and reader.take(key, bool) else None,
            write=lambda display, _form, _context: True if display == "omitted" else None,
        ),
    ),
    texts=TEXTS,
)
"""OpenRouter's `reasoning` (https://openrouter.ai/docs/use-cases/reasoning-tokens)."""

BUDGET: Final = Fields(
    Thinking,
    "$.thinking",
    (
        Field("mode", "type", read=words(_MODES), values=", ".join(_MODES)),
        Field("budget_tokens", "budget_tokens", int, 1, MOST_TOKENS),
    ),
    texts=TEXTS,
)
"""`thinking` as DeepSeek, GLM and LiteLLM take it."""


TOOL_ERROR = "[tool error] "
"""What a tool's answer begins with where it is an error: this dialect has no field for it (pitfall-9)."""

ID_LIMIT = 64
"""The longest id of a tool call (from OpenAI's 400)."""

NAME_LIMIT = 64
"""The longest name of a function (`FunctionDefinition.name` in the SDK)."""

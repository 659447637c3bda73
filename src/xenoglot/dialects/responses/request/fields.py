"""Field tables of requests."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from xenoglot.codec.fields import NEUTRAL, Field, Fields, NestedFields, by_hand, words
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.checks import MOST_TOKENS
from xenoglot.codec.requests.encode_context import EncodeContext, take_previous, write_max_tokens
from xenoglot.dialects.openai.options import EFFORTS, encode_format, options, take_format
from xenoglot.dialects.openai.sampling import TEXTS, numbers
from xenoglot.dialects.responses.extras import NAME, extra_of, own_fields
from xenoglot.dialects.responses.request.context_management import encode_management, take_management
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import OutputFormat, Request, Sampling, Thinking

LEAST_TOKENS: Final = 16
"""The least `max_output_tokens` (from OpenAI's 400)."""


def _write_max_tokens(wanted: int, form: JSONObject, context: EncodeContext) -> int:
    limited = write_max_tokens(wanted, form, context)
    if limited < wanted or wanted >= LEAST_TOKENS or context.home:
        return limited
    context.losses.approximated("$.sampling", "max_tokens", f"raised to {LEAST_TOKENS}, the least of the dialect")
    return LEAST_TOKENS


def _take_output(reader: Reader, key: str, _form: JSONObject) -> OutputFormat | None:
    """Take `format`; one of a type that we do not know stays in the rest."""
    inner = Reader(reader.peek(key), reader.at(key))
    kind = inner.need("type", str)
    if kind not in ("text", "json_object", "json_schema"):
        return None
    reader.take(key, dict)
    if kind != "json_schema":
        return OutputFormat(kind="text" if kind == "text" else "json", extra=extra_of(inner, {}))
    return replace(take_format(inner), extra=extra_of(inner, {}))


def _write_output(output: OutputFormat, _form: JSONObject, context: EncodeContext) -> JSON:
    own = own_fields(output.extra, "$.output", context.losses)
    if output.kind != "json_schema":
        return {"type": "text" if output.kind == "text" else "json_object", **own}
    return {"type": "json_schema", **encode_format(output, context), **own}


SAMPLING: Final = Fields(
    Sampling,
    "$.sampling",
    (
        *numbers("top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty", "seed"),
        Field("top_logprobs", "top_logprobs", int, 0, 20),
        Field("max_tokens", "max_output_tokens", int, 1, MOST_TOKENS, write=_write_max_tokens),
        by_hand("logprobs", "include", values="list with `message.output_text.logprobs`"),
        by_hand("n", note="more than one is refused"),
    ),
    neutral={
        "top_k": -1,
        "min_p": 0,
        "repetition_penalty": 1,
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "logit_bias": {},
        "stop": (),
    },
    texts=TEXTS,
)
"""OpenAI's own server supports no extended sampling; the penalties for frequency and presence are of Open Responses."""

TEXT: Final = Fields(
    Request,
    "$",
    (
        Field("output", "format", read=_take_output, write=_write_output, values="object"),
        Field("verbosity", "verbosity"),
    ),
)

REASONING: Final = Fields(
    Thinking,
    "$.thinking",
    (
        Field("effort", "effort", read=words(EFFORTS), values=", ".join(EFFORTS)),
        Field("summary", ("summary", "generate_summary"), read=lambda reader, key, _form: reader.take_if(key, str)),
    ),
)

REQUEST: Final = Fields(
    Request,
    "$",
    (
        by_hand("model", "model", values="string"),
        by_hand("messages", "instructions", "input", values="string, or list of items"),
        by_hand("tools", "tools", values="list of tools"),
        by_hand("tool_choice", "tool_choice", values="word or object"),
        by_hand("parallel_tool_calls", "parallel_tool_calls", values="boolean"),
        by_hand("thinking", "reasoning", values="object"),
        by_hand("stream", "stream", values="boolean"),
        NestedFields("text", TEXT),
        Field("previous", "previous_response_id", read=take_previous),
        Field(
            "context_management",
            "context_management",
            read=take_management,
            write=encode_management,
            values="list of objects with `compact_threshold`",
        ),
        *options(NAME, "safety_identifier"),
        "sampling",
        "prompt",
        "stream_usage",
    ),
    neutral={"media": NEUTRAL["media"]},
)

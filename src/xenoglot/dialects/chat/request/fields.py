"""Field tables of requests: the fields of OpenAI's API, and those of servers that extend it."""

from __future__ import annotations

from typing import Final

from xenoglot.codec.fields import Field, Fields, by_hand, words
from xenoglot.codec.requests.checks import MOST_CANDIDATES, MOST_TOKENS
from xenoglot.codec.requests.encode_context import write_max_tokens
from xenoglot.codec.requests.stop_strings import stop_writer, take_stop
from xenoglot.dialects.chat.extras import NAME
from xenoglot.dialects.chat.request.output import take_output, write_output
from xenoglot.dialects.openai.options import EFFORTS, options
from xenoglot.dialects.openai.sampling import TEXTS, encode_bias, numbers, take_bias
from xenoglot.model.request import Request, Sampling, Thinking

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

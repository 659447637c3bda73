"""Field tables of requests: the body, and the sampling in its `generation_config`.

Source: `CreateModelInteraction` and `GenerationConfig` in `google/genai/_gaos/types/interactions` of the official SDK.
"""

from __future__ import annotations

from typing import Final

from xenoglot.codec.fields import NEUTRAL, Field, Fields, by_hand
from xenoglot.codec.requests.checks import MOST_TOKENS
from xenoglot.codec.requests.encode_context import take_previous, write_max_tokens
from xenoglot.codec.requests.stop_strings import stop_writer
from xenoglot.dialects.google.request_fields import SEED, STOP_LIMIT, service_tier
from xenoglot.model.request import OutputFormat, Request, Sampling

SAMPLING: Final = Fields(
    Sampling,
    "$.sampling",
    (
        Field("temperature", "temperature", float, 0, 2),
        Field("top_p", "top_p", float, 0, 1),
        Field("max_tokens", "max_output_tokens", int, 1, MOST_TOKENS, write=write_max_tokens),
        SEED,
        Field("stop", "stop_sequences", list, write=stop_writer(STOP_LIMIT), note=f"at most {STOP_LIMIT}"),
        by_hand("n", note="more than one is refused"),
    ),
    neutral={
        "top_k": -1,
        "min_p": 0,
        "repetition_penalty": 1,
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "logit_bias": {},
        "logprobs": False,
        "top_logprobs": 0,
    },
)

OUTPUT: Final = Fields(OutputFormat, "$.output", ("kind", "schema"))

REQUEST: Final = Fields(
    Request,
    "$",
    (
        by_hand("model", "model", values="string"),
        by_hand("messages", "system_instruction", "input", values="string, content, or list of contents or steps"),
        by_hand("tools", "tools", values="list of tools"),
        by_hand("tool_choice", "generation_config.tool_choice", values="word or object"),
        by_hand(
            "thinking",
            "generation_config.thinking_level",
            "generation_config.thinking_summaries",
            values="words",
        ),
        by_hand("output", "response_format", "response_mime_type", values="object, list of objects, or schema"),
        by_hand(
            "media",
            "response_format",
            "response_modalities",
            "generation_config.image_config",
            "generation_config.speech_config",
            values="objects, words",
        ),
        by_hand("stream", "stream", values="boolean"),
        Field("previous", "previous_interaction_id", read=take_previous),
        Field("store", "store", bool),
        Field("metadata", "labels", dict),
        service_tier("service_tier"),
        "sampling",
        "prompt",
        "parallel_tool_calls",
        "stream_usage",
        "cache",
    ),
    neutral=NEUTRAL,
)

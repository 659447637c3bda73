"""Field tables of requests: the body, and the sampling in its `generationConfig`.

Source: `GenerationConfig` (https://ai.google.dev/api/generate-content#generationconfig).
"""

from __future__ import annotations

from typing import Final

from xenoglot.codec.fields import NEUTRAL, Field, Fields, FieldTexts, by_hand
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.checks import MOST_CANDIDATES, MOST_LOGPROBS, MOST_TOKENS, ranged
from xenoglot.codec.requests.encode_context import EncodeContext, take_previous, write_max_tokens
from xenoglot.codec.requests.stop_strings import stop_writer
from xenoglot.dialects.google.request_fields import SEED, STOP_LIMIT, service_tier
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import OutputFormat, Request, Sampling


def _take_top_k(reader: Reader, key: str, form: JSONObject) -> JSON:
    top_k = ranged(reader, key, float, -1, MOST_TOKENS)
    if type(top_k) is not float:
        return top_k
    if not top_k.is_integer():
        reader.rest()[key] = top_k
        return None
    form["topK"] = "float"
    return int(top_k)


def _write_top_k(top_k: int, form: JSONObject, context: EncodeContext) -> JSON:
    """Return `topK`; other servers write less than 1 for no limit."""
    if top_k < 1 and not context.home:
        return None
    return float(top_k) if "topK" in form else top_k


SAMPLING: Final = Fields(
    Sampling,
    "$.sampling",
    (
        Field("temperature", "temperature", float, 0, 2),
        Field("top_p", "topP", float, 0, 1),
        Field("presence_penalty", "presencePenalty", float, -2, 2),
        Field("frequency_penalty", "frequencyPenalty", float, -2, 2),
        Field("logprobs", "responseLogprobs", bool),
        Field("top_logprobs", "logprobs", int, 0, MOST_LOGPROBS),
        Field("n", "candidateCount", int, 1, MOST_CANDIDATES),
        Field("max_tokens", "maxOutputTokens", int, 1, MOST_TOKENS, write=write_max_tokens),
        Field("top_k", "topK", float, -1, MOST_TOKENS, read=_take_top_k, write=_write_top_k),
        SEED,
        Field("stop", "stopSequences", list, write=stop_writer(STOP_LIMIT), note=f"at most {STOP_LIMIT}"),
    ),
    neutral={"min_p": 0, "repetition_penalty": 1, "logit_bias": {}},
)

OUTPUT: Final = Fields(
    OutputFormat, "$.output", ("kind", "schema"), texts=FieldTexts("the dialect gives a schema none")
)

REQUEST: Final = Fields(
    Request,
    "$",
    (
        by_hand("model", "model", values="string", note="in the URL"),
        by_hand("messages", "systemInstruction", "contents", values="list of turns"),
        by_hand("tools", "tools", values="list of tools"),
        by_hand("tool_choice", "toolConfig.functionCallingConfig", values="object"),
        by_hand("thinking", "generationConfig.thinkingConfig", values="object"),
        by_hand(
            "output",
            "generationConfig.responseMimeType",
            "generationConfig.responseSchema",
            "generationConfig.responseJsonSchema",
            values="media type, schema",
        ),
        by_hand(
            "media",
            "generationConfig.responseModalities",
            "generationConfig.speechConfig",
            "generationConfig.imageConfig",
            values="list, objects",
        ),
        by_hand("stream", "stream", values="boolean", note="in the URL"),
        Field("previous", "cachedContent", read=take_previous),
        Field("store", "store", bool),
        service_tier("serviceTier"),
        "sampling",
        "prompt",
        "parallel_tool_calls",
        "stream_usage",
        "cache",
    ),
    neutral=NEUTRAL,
)

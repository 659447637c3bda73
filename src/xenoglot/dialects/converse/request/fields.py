"""Field tables of requests: the body, and the sampling in two of its objects.

Source: `ConverseRequest` and `InferenceConfiguration` in the published model of the API.
"""

from __future__ import annotations

from typing import Final

from xenoglot.codec.fields import STATELESS, Field, Fields, FieldTexts, NestedFields, by_hand
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.checks import MOST_TOKENS
from xenoglot.codec.requests.encode_context import EncodeContext, extended, write_max_tokens
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import OutputFormat, Request, Sampling

INFERENCE_KEY: Final = "inferenceConfig"
ADDITIONAL_KEY: Final = "additionalModelRequestFields"

_TIERS: Final = {"default": "default", "priority": "priority", "flex": "flex", "reserved": "scale"}
"""`ServiceTierType` in the published model, and our words."""

_WORDS: Final = {tier: word for word, tier in _TIERS.items()} | {"auto": "default"}

_MOST_METADATA: Final = 16
_LONGEST_METADATA: Final = 256


def _write_temperature(value: float, _form: JSONObject, context: EncodeContext) -> float:
    if value <= 1 or context.home:
        return value
    context.losses.approximated("$.sampling", "temperature", "the dialect's highest is 1")
    return 1.0


def _write_stop(stop: tuple[str, ...], _form: JSONObject, context: EncodeContext) -> JSON:
    kept = list(stop) if context.home else [text for text in stop if text]
    return kept if kept or context.home else None


def _write_top_k(value: int, _form: JSONObject, context: EncodeContext) -> JSON:
    """Return `top_k`; other servers write 0 or -1 for no limit."""
    return value if value > 0 or context.home else None


def _take_tier(reader: Reader, key: str, _form: JSONObject) -> str | None:
    value = reader.peek(key)
    word = value.get("type") if isinstance(value, dict) and [*value] == ["type"] else None
    if not isinstance(word, str) or word not in _TIERS:
        return None
    reader.take(key, dict)
    return _TIERS[word]


def _write_tier(tier: str, _form: JSONObject, context: EncodeContext) -> JSON:
    word = _WORDS.get(tier)
    if word is None:
        context.losses.dropped("$", "service_tier", "the dialect has no such tier")
        return None
    if tier == "auto":
        context.losses.approximated("$", "service_tier", "`auto` is written as `default`")
    return {"type": word}


def _take_metadata(reader: Reader, key: str, _form: JSONObject) -> JSON:
    return reader.take(key, dict)


def _write_metadata(metadata: JSONObject, _form: JSONObject, context: EncodeContext) -> JSON:
    """Return the pairs that servers take: 16 of them, each a short text."""
    if context.home:
        return metadata
    kept = {key: value for key, value in metadata.items() if isinstance(value, str) and len(value) < _LONGEST_METADATA}
    kept = dict([*kept.items()][:_MOST_METADATA])
    if kept != metadata:
        context.losses.dropped("$", "metadata", f"the dialect takes {_MOST_METADATA} short texts")
    return kept or None


INFERENCE: Final = Fields(
    Sampling,
    "$.sampling",
    (
        Field("max_tokens", "maxTokens", int, 1, MOST_TOKENS, write=write_max_tokens),
        Field("temperature", "temperature", float, 0, 1, write=_write_temperature),
        Field("top_p", "topP", float, 0, 1),
        Field("stop", "stopSequences", list, write=_write_stop),
    ),
)

ADDITIONAL: Final = Fields(
    Sampling,
    "$.sampling",
    (
        Field(
            "top_k",
            "top_k",
            int,
            0,
            MOST_TOKENS,
            write=_write_top_k,
            when=extended,
            note="to servers that support it",
        ),
    ),
)

SAMPLING: Final = Fields(
    Sampling,
    "$.sampling",
    (NestedFields(INFERENCE_KEY, INFERENCE), NestedFields(ADDITIONAL_KEY, ADDITIONAL), by_hand("n")),
    neutral={
        "min_p": 0,
        "repetition_penalty": 1,
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "logit_bias": {},
        "logprobs": False,
        "top_logprobs": 0,
    },
)

OUTPUT: Final = Fields(
    OutputFormat,
    "$.output",
    ("kind", "schema", "name", "description"),
    texts=FieldTexts("the dialect gives a schema none"),
)

REQUEST: Final = Fields(
    Request,
    "$",
    (
        by_hand("model", "model", values="string", note="in the URL"),
        by_hand("messages", "system", "messages", values="list of turns"),
        by_hand("tools", "toolConfig.tools", values="list of tools"),
        by_hand("tool_choice", "toolConfig.toolChoice", values="object"),
        by_hand(
            "thinking",
            f"{ADDITIONAL_KEY}.thinking",
            "outputConfig.effort",
            values="object, word",
        ),
        by_hand("output", "outputConfig.textFormat", values="object with a JSON Schema"),
        by_hand("stream", "stream", values="boolean", note="in the URL"),
        Field(
            "service_tier",
            "serviceTier",
            read=_take_tier,
            write=_write_tier,
            values="object with a `type`: " + ", ".join(_TIERS),
        ),
        Field("metadata", "requestMetadata", read=_take_metadata, write=_write_metadata, values="object of texts"),
        "sampling",
        "prompt",
        "stream_usage",
        "previous",
        "cache",
    ),
    neutral=STATELESS,
)

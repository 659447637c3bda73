"""Field tables of requests.

Source: `anthropic/types/beta/message_create_params.py` of the official SDK.
"""

from __future__ import annotations

from typing import Final

from xenoglot.codec.fields import STATELESS, Field, Fields, FieldTexts, by_hand, words
from xenoglot.codec.reader import Reader
from xenoglot.codec.requests.checks import MOST_TOKENS
from xenoglot.codec.requests.encode_context import EncodeContext, write_max_tokens
from xenoglot.dialects.messages.context_management import encode_management, take_management
from xenoglot.dialects.messages.extras import NAME, encode_cache, take_cache
from xenoglot.model.content import CacheMark
from xenoglot.model.json import JSON, JSONObject
from xenoglot.model.request import OutputFormat, Request, Sampling

_TIERS: Final = {
    "auto": "auto",
    "default": "standard_only",
    "priority": "auto",
    "flex": "standard_only",
    "scale": "auto",
}
_EXTENSION: Final = "to servers that support it"
_EXACT_TIERS: Final = ("auto", "default")


def _out_of_range(value: float, least: float, most: float | None) -> str:
    if most == 1:
        return f"Input should be between {least} and {most}"
    if value < least:
        return f"Input should be greater than or equal to {least}"
    return f"Input should be less than or equal to {most}"


def _write_temperature(value: float, _form: JSONObject, context: EncodeContext) -> float:
    if value <= 1 or context.home:
        return value
    context.losses.approximated("$.sampling", "temperature", "the dialect's highest is 1")
    return 1.0


def _write_top_k(value: int, _form: JSONObject, context: EncodeContext) -> JSON:
    """Return `top_k`; other servers write 0 or -1 for no limit."""
    return value if value > 0 or context.home else None


def _write_stop(stop: tuple[str, ...], _form: JSONObject, context: EncodeContext) -> JSON:
    if context.home:
        return list(stop)
    kept = [text for text in stop if text.strip()]
    if len(kept) < len(stop):
        context.losses.dropped("$.sampling", "stop", "a stop sequence must contain more than whitespace")
    return kept or None


def _write_tier(tier: str, _form: JSONObject, context: EncodeContext) -> JSON:
    word = _TIERS.get(tier)
    if word is None and tier != "fast":
        context.losses.dropped("$", "service_tier", "the dialect has no such tier")
    elif word is not None and tier not in _EXACT_TIERS:
        context.losses.approximated("$", "service_tier", f"`{tier}` is written as `{word}`")
    return word


def _write_cache(mark: CacheMark, _form: JSONObject, context: EncodeContext) -> JSON:
    if mark.explicit:
        context.losses.carry(mark.extra, "$.cache", NAME)
        context.losses.emulated("$", "cache", "without a mark for the whole the server caches up to the marks inside")
        if mark.ttl is not None:
            context.losses.dropped("$", "cache.ttl", "each mark has a lifetime of its own")
        return None
    return encode_cache(mark, "$.cache", context.losses, home=context.home)


def _take_mark(reader: Reader, key: str, _form: JSONObject) -> CacheMark | None:
    return take_cache(reader, key)


def _supported(context: EncodeContext) -> bool:
    return context.target.extended_sampling


SAMPLING: Final = Fields(
    Sampling,
    "$.sampling",
    (
        Field("max_tokens", "max_tokens", int, 0, MOST_TOKENS, write=write_max_tokens, note="required"),
        Field("temperature", "temperature", float, 0, 1, write=_write_temperature),
        Field("top_p", "top_p", float, 0, 1),
        Field("top_k", "top_k", int, 0, MOST_TOKENS, write=_write_top_k),
        Field("stop", "stop_sequences", list, write=_write_stop),
        Field("min_p", "min_p", float, reads=False, when=_supported, note=_EXTENSION),
        Field("repetition_penalty", "repetition_penalty", float, reads=False, when=_supported, note=_EXTENSION),
        by_hand("n", note="more than one is refused"),
    ),
    neutral={
        "min_p": 0,
        "repetition_penalty": 1,
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "logit_bias": {},
        "logprobs": False,
        "top_logprobs": 0,
    },
    texts=FieldTexts(out_of_range=_out_of_range),
)

OUTPUT: Final = Fields(
    OutputFormat, "$.output", ("kind", "schema", "strict"), texts=FieldTexts("the dialect gives a schema none")
)

REQUEST: Final = Fields(
    Request,
    "$",
    (
        by_hand("model", "model", values="string"),
        by_hand("messages", "system", "messages", values="list of turns"),
        by_hand("tools", "tools", values="list of tools"),
        by_hand("tool_choice", "tool_choice", values="object"),
        by_hand("parallel_tool_calls", "tool_choice.disable_parallel_tool_use", values="boolean"),
        by_hand("thinking", "thinking", "output_config.effort", values="object, word"),
        by_hand("output", "output_config.format", "output_format", values="object with a JSON Schema"),
        by_hand("stream", "stream", values="boolean"),
        by_hand("user", "metadata.user_id", values="string"),
        Field(
            "service_tier",
            "service_tier",
            read=words({"auto": "auto", "standard_only": "default"}),
            write=_write_tier,
            values="auto, standard_only",
        ),
        Field(
            "service_tier",
            "speed",
            read=words(("fast",)),
            write=lambda tier, _form, _context: "fast" if tier == "fast" else None,
            values="fast",
        ),
        Field(
            "context_management",
            "context_management",
            read=take_management,
            write=encode_management,
            values="object with `edits`",
        ),
        by_hand("context_management", "compaction", values="object"),
        Field("cache", "cache_control", read=_take_mark, write=_write_cache, values="object"),
        "sampling",
        "prompt",
        "stream_usage",
        "previous",
    ),
    neutral=STATELESS,
)

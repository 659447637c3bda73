"""Encodes and decodes usage: cached tokens are apart from `input_tokens` on the wire, included in the model.

Source: `anthropic/types/beta/beta_usage.py`: "Total input tokens in a request is the summation of `input_tokens`,
`cache_creation_input_tokens`, and `cache_read_input_tokens`."
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.extra_usage import ExtraUsage
from xenoglot.codec.fields import Fields, by_hand, count
from xenoglot.codec.reader import Reader
from xenoglot.dialects.messages.extras import NAME, keep_rest, with_rest
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

STANDARD_TIER = "standard"
WHERE = "$.usage"

USAGE: Final = Fields(
    Usage,
    WHERE,
    (
        by_hand("input_tokens", "input_tokens", values="count", note="without cached tokens"),
        count("cache_write", "cache_creation_input_tokens"),
        count("cache_read", "cache_read_input_tokens"),
        count("output_tokens", "output_tokens"),
        by_hand("reasoning", "output_tokens_details.thinking_tokens", values="count"),
    ),
    neutral={"input_audio": 0, "output_audio": 0, "total": 0},
)

_BILLED_APART = ("compaction", "advisor_message")
"""Iterations whose tokens the counts of the answer leave out (`beta_usage.py`: "are not included in the top-level")."""

_START_ONLY = ("cache_creation", "inference_geo", "service_tier", "speed")
"""What `message_start` tells and `message_delta` has no field for (`beta_message_delta_usage.py`)."""


def decode_usage(value: JSON, path: str = WHERE) -> tuple[Usage, str | None]:
    """Return the counts, and the service tier that stands among them."""
    reader = Reader(value, path)
    fresh = reader.count("input_tokens")
    form: JSONObject = {}
    reasoning = None
    if isinstance(reader.peek("output_tokens_details"), dict):
        details = Reader(reader.take("output_tokens_details", dict))
        reasoning = details.count("thinking_tokens")
        keep_rest(reader, "output_tokens_details", details, form, said=reasoning is not None)
    tier = reader.take_if("service_tier", str)
    counts = USAGE.read(reader, form)
    usage = Usage(
        input_tokens=None if fresh is None else fresh + counts.get("cache_read", 0) + counts.get("cache_write", 0),
        reasoning=reasoning,
        **counts,
        extra=reader.extra(NAME, **form),
    )
    return usage, "default" if tier == STANDARD_TIER else tier


def encode_usage(usage: Usage | None, tier: str | None, losses: Losses) -> JSONObject:
    """Return the counts in wire form, without those that are not set."""
    own: JSONObject = {}
    if usage is not None:
        cached = (usage.cache_read or 0) + (usage.cache_write or 0)
        if usage.input_tokens is not None:
            own["input_tokens"] = max(0, usage.input_tokens - cached)
        USAGE.write_plain(usage, own)
        if usage.reasoning is not None:
            own["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
        USAGE.note_unsupported(usage, losses)
    if tier is not None:
        own["service_tier"] = STANDARD_TIER if tier == "default" else tier
    return with_rest(own, None if usage is None else usage.extra, WHERE, losses)


def completed(usage: JSONObject, losses: Losses, *required: str) -> JSONObject:
    """Return `usage` with a zero for each `required` count that nobody said: clients compute with them."""
    for field in required:
        if field not in usage:
            losses.approximated(WHERE, field, "not reported, and the dialect requires a number: 0")
            usage[field] = 0
    return usage


def at_the_end(usage: JSONObject, started: JSONObject) -> JSONObject:
    """Return what of `usage` a `message_delta` tells: all but what it has no field for and `started` told already."""
    return {key: value for key, value in usage.items() if key not in _START_ONLY or started.get(key) != value}


def extra_usage(fields: JSONObject) -> ExtraUsage:
    """Return the searches, and the tokens of iterations that the counts of the answer leave out."""
    tools = fields.get("server_tool_use")
    searches = Reader(tools).count("web_search_requests") if isinstance(tools, dict) else None
    listed = fields.get("iterations")
    apart = [
        decode_usage(one)[0]
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict) and one.get("type") in _BILLED_APART
    ]
    if not apart:
        return ExtraUsage(searches=searches)
    return ExtraUsage(
        searches=searches,
        extra_input=sum(one.input_tokens or 0 for one in apart),
        extra_output=sum(one.output_tokens or 0 for one in apart),
    )

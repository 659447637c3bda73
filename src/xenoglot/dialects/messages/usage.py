"""Encodes and decodes usage: cached tokens are apart from `input_tokens` on the wire, included in the model.

Source: `anthropic/types/beta/beta_usage.py`: "Total input tokens in a request is the summation of `input_tokens`,
`cache_creation_input_tokens`, and `cache_read_input_tokens`."
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xenoglot.codec.reader import Reader
from xenoglot.dialects.messages.extras import NAME, keep_rest, with_rest, with_said
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

STANDARD_TIER = "standard"
WHERE = "$.usage"

_START_ONLY = ("cache_creation", "inference_geo", "service_tier", "speed")
"""What `message_start` tells and `message_delta` has no field for (`beta_message_delta_usage.py`)."""


def decode_usage(value: JSON, path: str = WHERE) -> tuple[Usage, str | None]:
    """Return the counts, and the service tier that stands among them."""
    reader = Reader(value, path)
    fresh = reader.count("input_tokens")
    read = reader.count("cache_read_input_tokens")
    written = reader.count("cache_creation_input_tokens")
    form: JSONObject = {}
    reasoning = None
    if isinstance(reader.peek("output_tokens_details"), dict):
        details = Reader(reader.take("output_tokens_details", dict))
        reasoning = details.count("thinking_tokens")
        keep_rest(reader, "output_tokens_details", details, form, said=reasoning is not None)
    tier = reader.take_if("service_tier", str)
    usage = Usage(
        input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        output_tokens=reader.count("output_tokens"),
        cache_read=read,
        cache_write=written,
        reasoning=reasoning,
        extra=reader.extra(NAME, **form),
    )
    return usage, "default" if tier == STANDARD_TIER else tier


def encode_usage(usage: Usage | None, tier: str | None, losses: Losses) -> JSONObject:
    """Return the counts in wire form, without those that are not set."""
    own: JSONObject = {}
    if usage is not None:
        cached = (usage.cache_read or 0) + (usage.cache_write or 0)
        with_said(
            own,
            input_tokens=None if usage.input_tokens is None else max(0, usage.input_tokens - cached),
            cache_creation_input_tokens=usage.cache_write,
            cache_read_input_tokens=usage.cache_read,
            output_tokens=usage.output_tokens,
            output_tokens_details=None if usage.reasoning is None else {"thinking_tokens": usage.reasoning},
        )
        for field in ("input_audio", "output_audio", "total", "estimated"):
            if getattr(usage, field):
                losses.dropped(WHERE, field, "the dialect has no such count")
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

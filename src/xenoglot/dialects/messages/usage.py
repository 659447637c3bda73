"""Encodes and decodes usage: cached tokens are apart from `input_tokens` on the wire, included in the model.

Source: `anthropic/types/beta/beta_usage.py`: "Total input tokens in a request is the summation of `input_tokens`,
`cache_creation_input_tokens`, and `cache_read_input_tokens`."
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.extra_usage import NO_EXTRA, ExtraUsage
from xenoglot.codec.fields import Fields, by_hand, count
from xenoglot.codec.reader import Reader
from xenoglot.dialects.messages.extras import NAME, keep_rest, with_rest
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

STANDARD_TIER = "standard"
WHERE = "$.usage"

_BY_TTL, _HOUR, _MINUTES = "cache_creation", "ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens"
_TOOLS, _SEARCHES, _FETCHES = "server_tool_use", "web_search_requests", "web_fetch_requests"

USAGE: Final = Fields(
    Usage,
    WHERE,
    (
        by_hand("input_tokens", "input_tokens", values="count", note="without cached tokens"),
        count("cache_write", "cache_creation_input_tokens"),
        count("cache_read", "cache_read_input_tokens"),
        count("output_tokens", "output_tokens"),
        by_hand("reasoning", "output_tokens_details.thinking_tokens", values="count"),
        by_hand("cache_write_1h", f"{_BY_TTL}.{_HOUR}", values="count"),
        by_hand("web_searches", f"{_TOOLS}.{_SEARCHES}", values="count"),
        by_hand("page_fetches", f"{_TOOLS}.{_FETCHES}", values="count"),
    ),
    neutral={"input_audio": 0, "output_audio": 0, "total": 0},
)

_BILLED_APART = ("compaction", "advisor_message")
"""Iterations whose tokens the counts of the answer leave out (`beta_usage.py`: "are not included in the top-level")."""

_START_ONLY = ("cache_creation", "inference_geo", "service_tier", "speed")
"""What `message_start` reports and `message_delta` has no field for (`beta_message_delta_usage.py`)."""


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
    if _TOOLS in reader:
        counts |= _take_tools(reader, form)
    usage = Usage(
        input_tokens=None if fresh is None else fresh + counts.get("cache_read", 0) + counts.get("cache_write", 0),
        reasoning=reasoning,
        cache_write_1h=_take_hour(reader, counts.get("cache_write")),
        **counts,
        extra=reader.extra(NAME, **form),
    )
    return usage, "default" if tier == STANDARD_TIER else tier


def _take_hour(reader: Reader, written: int | None) -> int | None:
    """Take what is kept for an hour, if the two counts are those of all that was written."""
    parts = reader.peek(_BY_TTL)
    if not isinstance(parts, dict) or parts.keys() != {_HOUR, _MINUTES}:
        return None
    hour, minutes = Reader(parts).count(_HOUR), Reader(parts).count(_MINUTES)
    if hour is None or minutes is None or hour + minutes != written:
        return None
    reader.take(_BY_TTL, dict)
    return hour


def _take_tools(reader: Reader, form: JSONObject) -> dict[str, int]:
    """Take how often tools of the server ran (`beta_server_tool_usage.py`)."""
    if not isinstance(reader.peek(_TOOLS), dict):
        return {}
    tools = Reader(reader.take(_TOOLS, dict))
    counts = {"web_searches": tools.count(_SEARCHES), "page_fetches": tools.count(_FETCHES)}
    known = {name: count for name, count in counts.items() if count is not None}
    keep_rest(reader, _TOOLS, tools, form, said=bool(known))
    return known


def _encode_hour(usage: Usage, losses: Losses) -> JSONObject:
    if usage.cache_write_1h is None:
        return {}
    if usage.cache_write is None:
        losses.dropped(WHERE, "cache_write_1h", "it is a part of what was written, which is not known")
        return {}
    return {_BY_TTL: {_HOUR: usage.cache_write_1h, _MINUTES: usage.cache_write - usage.cache_write_1h}}


def _encode_tools(usage: Usage, losses: Losses) -> JSONObject:
    """Return how often tools of the server ran; the dialect requires both counts."""
    if usage.web_searches is None and usage.page_fetches is None:  # most answers
        return {}
    tools = {_SEARCHES: usage.web_searches, _FETCHES: usage.page_fetches}
    known: JSONObject = {name: count for name, count in tools.items() if count is not None}
    if usage.extra is not None and usage.extra.dialect == NAME:
        return {_TOOLS: known}
    for name in tools.keys() - known:
        losses.approximated(WHERE, name, "not reported, and the dialect requires a number: 0")
    return {_TOOLS: {**dict.fromkeys(tools, 0), **known}}


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
        own |= _encode_hour(usage, losses)
        own |= _encode_tools(usage, losses)
        USAGE.note_unsupported(usage, losses)
    if tier is not None:
        own["service_tier"] = STANDARD_TIER if tier == "default" else tier
    return with_rest(own, None if usage is None else usage.extra, WHERE, losses)


def completed(usage: JSONObject, losses: Losses, *required: str) -> JSONObject:
    """Return `usage` with a zero for each missing `required` count: clients compute with them."""
    for field in required:
        if field not in usage:
            losses.approximated(WHERE, field, "not reported, and the dialect requires a number: 0")
            usage[field] = 0
    return usage


def at_the_end(usage: JSONObject, started: JSONObject) -> JSONObject:
    """Return the fields of `usage` for a `message_delta`: all but those that it has no field for and `started` had."""
    return {key: value for key, value in usage.items() if key not in _START_ONLY or started.get(key) != value}


def extra_usage(fields: JSONObject) -> ExtraUsage:
    """Return the tokens of iterations that the counts of the answer leave out."""
    listed = fields.get("iterations")
    apart = [
        decode_usage(one)[0]
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict) and one.get("type") in _BILLED_APART
    ]
    if not apart:
        return NO_EXTRA
    return ExtraUsage(
        extra_input=sum(one.input_tokens or 0 for one in apart),
        extra_output=sum(one.output_tokens or 0 for one in apart),
    )

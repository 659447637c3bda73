"""Encodes and decodes usage: cached tokens are apart from `inputTokens` on the wire, included in the model.

Source: `TokenUsage` in the published model of the API, and
https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.codec.fields import Fields, by_hand, count
from xenoglot.codec.reader import Reader
from xenoglot.dialects.converse.extras import NAME, with_rest
from xenoglot.model.content import Extra
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from xenoglot.codec.loss import Losses
    from xenoglot.model.json import JSON, JSONObject

WHERE: Final = "$.usage"

_BY_TTL: Final = "cacheDetails"
_TTLS: Final = ("1h", "5m")

USAGE: Final = Fields(
    Usage,
    WHERE,
    (
        by_hand("input_tokens", "inputTokens", values="count", note="without cached tokens"),
        count("output_tokens", "outputTokens"),
        by_hand("total", "totalTokens", values="count"),
        count("cache_read", "cacheReadInputTokens"),
        count("cache_write", "cacheWriteInputTokens"),
        by_hand("cache_write_1h", _BY_TTL, values="count of the time to live `1h`"),
    ),
    neutral={"input_audio": 0, "output_audio": 0, "web_searches": 0, "page_fetches": 0},
)


METADATA: Final[tuple[str, ...]] = ("metrics", "trace", "performanceConfig", "serviceTier")
"""What an answer has next to its usage, and a stream in the same event."""


def decode_metadata(reader: Reader) -> Usage | None:
    """Take the counts from a whole answer or a `metadata` event, with what is reported next to them."""
    beside = {key: reader.rest().pop(key) for key in METADATA if key in reader.rest()}
    value = reader.take_any("usage")
    if value is None:
        return Usage(extra=Extra(dialect=NAME, fields=beside)) if beside else None
    usage = decode_usage(value)
    if not beside:
        return usage
    fields = {} if usage.extra is None else usage.extra.fields
    return replace(usage, extra=Extra(dialect=NAME, fields={**fields, **beside}))


def encode_metadata(usage: Usage | None, losses: Losses) -> JSONObject:
    """Return the counts and what is reported next to them; the latency is required, and is 0 if it is not known."""
    counts = encode_usage(usage, losses)
    beside = {key: counts.pop(key) for key in METADATA if key in counts}
    return {"usage": counts, "metrics": {"latencyMs": 0}, **beside}


def decode_usage(value: JSON, path: str = WHERE) -> Usage:
    """Return the counts."""
    reader = Reader(value, path)
    fresh, total = reader.count("inputTokens"), reader.count("totalTokens")
    counts = USAGE.read(reader, {})
    cached = counts.get("cache_read", 0) + counts.get("cache_write", 0)
    whole = None if fresh is None else fresh + cached
    output = counts.get("output_tokens")
    computed = None if whole is None or output is None else whole + output
    return Usage(
        input_tokens=whole,
        total=None if total == computed else total,
        cache_write_1h=_take_hour(reader, counts.get("cache_write")),
        **counts,
        extra=reader.extra(NAME),
    )


def _take_hour(reader: Reader, written: int | None) -> int | None:
    """Take what is kept for an hour, if the details are those of all that was written, in the order of the server."""
    details = reader.peek(_BY_TTL)
    if not isinstance(details, list) or not details:
        return None
    counts = {str(item.get("ttl")): item.get("inputTokens") for item in details if isinstance(item, dict)}
    hour, minutes = (counts.get(ttl, 0) for ttl in _TTLS)
    if not (type(hour) is int and type(minutes) is int and hour >= 0 and hour + minutes == written):
        return None
    if details != _details(hour, minutes):
        return None
    reader.take(_BY_TTL, list)
    return hour


def _details(hour: int, minutes: int) -> list[JSON]:
    return [{"ttl": ttl, "inputTokens": count} for ttl, count in zip(_TTLS, (hour, minutes), strict=True) if count]


def encode_usage(usage: Usage | None, losses: Losses) -> JSONObject:
    """Return the counts in wire form; the three that clients compute with are 0 if they are not known."""
    usage = usage or Usage()
    for field, known in (("input_tokens", usage.input_tokens), ("output_tokens", usage.output_tokens)):
        if known is None:
            losses.approximated(WHERE, field, "not reported, and the dialect requires a number: 0")
    cached = (usage.cache_read or 0) + (usage.cache_write or 0)
    fresh, output = max(0, (usage.input_tokens or 0) - cached), usage.output_tokens or 0
    total = max(usage.input_tokens or 0, cached) + output if usage.total is None else usage.total
    own: JSONObject = {"inputTokens": fresh, "outputTokens": output, "totalTokens": total}
    USAGE.write_plain(usage, own)
    USAGE.note_unsupported(usage, losses)
    if usage.cache_write_1h and usage.cache_write is None:
        losses.dropped(WHERE, "cache_write_1h", "it is a part of what was written, which is not known")
    elif usage.cache_write_1h is not None and usage.cache_write:
        own[_BY_TTL] = _details(usage.cache_write_1h, usage.cache_write - usage.cache_write_1h)
    return with_rest(own, usage.extra, WHERE, losses)

"""The course of a request as bars: the queue, each try up to its first bytes and to its end, the response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xenoglot.store.ledger.bodies import CaptureDetails
    from xenoglot.store.ledger.rows import RequestRow

WIDTH: Final = 1000
"""Units of the whole duration."""


class TimelineBar(Struct, frozen=True, kw_only=True):
    """A span of time, in milliseconds after the request came, and where it is drawn: `x` and `width`."""

    name: str
    kind: str
    begin: float
    end: float
    x: int
    width: int


def timeline(row: RequestRow, details: CaptureDetails | None) -> list[TimelineBar]:
    """Return the bars of a request; without a capture only those that the ledger knows."""
    spans = list(_recorded(row) if details is None else _captured(details))
    total = max([row.total_ms, *(end for _, _, _, end in spans)], default=0.0) or 1.0
    return [
        TimelineBar(
            name=name,
            kind=kind,
            begin=begin,
            end=end,
            x=round(begin / total * WIDTH),
            width=max(2, round((end - begin) / total * WIDTH)),
        )
        for name, kind, begin, end in spans
    ]


def _recorded(row: RequestRow) -> Iterator[tuple[str, str, float, float]]:
    first = row.total_ms if row.ttfb_ms is None else row.ttfb_ms
    yield "until the first byte", "wait", 0.0, first
    yield "response", "receive", first, max(first, row.total_ms)


def _captured(details: CaptureDetails) -> Iterator[tuple[str, str, float, float]]:
    begin = details.tries[0].sent if details.tries else details.answered or details.ended
    yield "queue and translation", "queue", 0.0, begin
    for number, one in enumerate(details.tries, 1):
        following = details.tries[number].sent if number < len(details.tries) else details.ended
        head = following if one.head is None else one.head
        yield f"try {number}: connection and head", "connect", one.sent, head
        if one.head is None:
            continue
        first = head if one.first is None else one.first
        yield f"try {number}: first bytes", "wait", head, first
        yield f"try {number}: rest", "receive", first, first if one.last is None else one.last
    if details.answered is not None:
        if details.first_token is not None:
            yield "client: first token", "wait", details.answered, max(details.answered, details.first_token)
        yield "client: response", "receive", details.answered, max(details.answered, details.ended)

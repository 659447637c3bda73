"""Makes rows of the ledger of requests that are over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from xenoglot.backends.redaction import for_log
from xenoglot.gateway.ledger.request_cost import counts_of
from xenoglot.gateway.observability.request_log import CLIENT_GONE
from xenoglot.gateway.observability.request_tags import encode_tags
from xenoglot.model.response import Usage
from xenoglot.store.ledger.rows import RequestRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.loss import Loss
    from xenoglot.gateway.observability.request_log import RequestLog

NO_USAGE = counts_of(Usage())


def request_row(record: RequestLog, ended: float, now: float, dialects: Mapping[str, str]) -> RequestRow:
    """Return the row of a request that ended at the time `ended` of its clock, which is `now` in Unix seconds.

    `dialects` are those of the upstreams.
    """
    usage, cost = record.usage, record.cost
    counts = NO_USAGE if usage is None else counts_of(usage)
    losses = tuple(record.losses)
    status = record.status
    if status is None and record.failure == "cancelled":
        status = CLIENT_GONE
    return RequestRow(
        id=record.request_id,
        at=now - (ended - record.started),
        tenant=record.client.tenant,
        key=record.client.key,
        session=record.session,
        route=record.route,
        dialect=record.dialect,
        upstream_dialect=dialects.get(record.backend or ""),
        model=None if record.model is None else for_log(record.model),
        upstream=record.backend,
        target=None if record.target is None else for_log(record.target),
        tries=record.tries,
        stream=None if record.stream is None else int(record.stream),
        status=status,
        finish=record.finish,
        failure=record.failure,
        ttfb_ms=None if record.answered is None else _milliseconds(record.answered - record.started),
        total_ms=_milliseconds(ended - record.started),
        input=counts["input"],
        output=counts["output"],
        cache_read=counts["cache_read"],
        cache_write=counts["cache_write"],
        reasoning=counts["reasoning"],
        audio_in=counts["audio_in"],
        audio_out=counts["audio_out"],
        searches=counts["searches"],
        extra_input=counts["extra_input"],
        extra_output=counts["extra_output"],
        estimated=int(usage is not None and usage.estimated),
        cost=None if cost is None else cost.amount,
        currency=None if cost is None else cost.currency,
        price_source=None if cost is None else cost.source,
        losses=len(losses),
        loss_kinds=_kinds(losses) if losses else None,
        trace=record.trace,
        tags=encode_tags(record.tags),
    )


def _kinds(losses: Sequence[Loss]) -> str:
    kinds = Counter(loss.how for loss in losses)
    return ",".join(f"{kind}:{count}" for kind, count in sorted(kinds.items()))


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)

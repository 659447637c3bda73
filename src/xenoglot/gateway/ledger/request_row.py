"""Makes rows of the ledger of requests that are over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from xenoglot.backends.redaction import for_log
from xenoglot.codec.features.extra_usage import NO_EXTRA
from xenoglot.gateway.ledger.request_cost import extra_of
from xenoglot.gateway.observability.request_log import CLIENT_GONE
from xenoglot.gateway.observability.request_tags import encode_tags
from xenoglot.model.response import Usage
from xenoglot.store.ledger.rows import RequestRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.loss import Loss
    from xenoglot.gateway.observability.request_log import RequestLog

NO_USAGE = Usage()


def request_row(record: RequestLog, ended: float, now: float, dialects: Mapping[str, str]) -> RequestRow:
    """Return the row of a request that ended at the time `ended` of its clock, which is `now` in Unix seconds.

    `dialects` are those of the upstreams.
    """
    usage, cost = record.usage or NO_USAGE, record.cost
    details = NO_EXTRA if usage.extra is None else extra_of(usage)
    losses = tuple(record.losses)
    status = record.status
    if status is None and record.failure == "cancelled":
        status = CLIENT_GONE
    return RequestRow(  # by places: a call with 36 names makes a dictionary of them
        record.request_id,
        now - (ended - record.started),
        record.client.tenant,
        record.client.key,
        record.session,
        record.route,
        record.dialect,
        dialects.get(record.backend or ""),
        None if record.model is None else for_log(record.model),
        record.backend,
        None if record.target is None else for_log(record.target),
        record.tries,
        None if record.stream is None else int(record.stream),
        status,
        record.finish,
        record.failure,
        None if record.answered is None else _milliseconds(record.answered - record.started),
        _milliseconds(ended - record.started),
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read,
        usage.cache_write,
        usage.reasoning,
        usage.input_audio,
        usage.output_audio,
        details.searches,
        details.extra_input,
        details.extra_output,
        int(usage.estimated),
        None if cost is None else cost.amount,
        None if cost is None else cost.currency,
        None if cost is None else cost.source,
        len(losses),
        _kinds(losses) if losses else None,
        record.trace,
        encode_tags(record.tags),
    )


def _kinds(losses: Sequence[Loss]) -> str:
    kinds = Counter(loss.how for loss in losses)
    return ",".join(f"{kind}:{count}" for kind, count in sorted(kinds.items()))


def _milliseconds(seconds: float) -> float:
    return int(seconds * 1e6 + 0.5) / 1000  # `round` takes five times as long

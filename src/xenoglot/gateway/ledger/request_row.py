"""Makes rows of the ledger of requests that are over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from xenoglot.backends.redaction import for_log
from xenoglot.codec.features.extra_usage import NO_EXTRA
from xenoglot.gateway.ledger.request_cost import extra_of
from xenoglot.gateway.observability.request_log import CLIENT_GONE
from xenoglot.gateway.observability.request_tags import encode_tags
from xenoglot.model.response import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.codec.loss import Loss
    from xenoglot.gateway.observability.request_log import RequestLog
    from xenoglot.store.ledger.usage_sums import RowValues

NO_USAGE: Final = Usage()
NO_COST: Final = (None, None, None)


def request_row(record: RequestLog, ended: float, now: float, dialects: Mapping[str, str]) -> RowValues:
    """Return the row of a request that ended at the time `ended` of its clock, which is `now` in Unix seconds.

    It is a tuple in the order of `RequestRow`. `dialects` are those of the upstreams.
    """
    usage, started, answered, status = record.usage or NO_USAGE, record.started, record.answered, record.status
    details = NO_EXTRA if usage.extra is None else extra_of(usage)
    losses = tuple(record.losses) if record.losses else ()
    model, target, token = record.model, record.target, record.first_token
    if model is not None:
        model = for_log(model)
    if target is not None:
        target = model if target == model else for_log(target)
    if status is None and record.failure == "cancelled":
        status = CLIENT_GONE
    amount, currency, source = record.cost or NO_COST
    return (
        record.request_id,
        now - (ended - started),
        record.client.tenant,
        record.client.key,
        record.session,
        record.route,
        record.dialect,
        dialects.get(record.backend or ""),
        model,
        record.backend,
        target,
        record.tries,
        None if record.stream is None else int(record.stream),
        status,
        record.finish,
        record.failure,
        # `round` takes five times as long
        None if answered is None else int((answered - started) * 1e6 + 0.5) / 1000,
        int((ended - started) * 1e6 + 0.5) / 1000,
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read,
        usage.cache_write,
        usage.reasoning,
        usage.input_audio,
        usage.output_audio,
        usage.web_searches,
        details.extra_input,
        details.extra_output,
        int(usage.estimated),
        amount,
        currency,
        source,
        len(losses),
        _kinds(losses) if losses else None,
        None if record.trace_context is None and record.spans is None else record.trace,
        None if record.tags is None else encode_tags(record.tags),
        None if token is None or not record.stream else int((token - started) * 1e6 + 0.5) / 1000,
    )


def _kinds(losses: Sequence[Loss]) -> str:
    kinds = Counter(loss.how for loss in losses)
    return ",".join(f"{kind}:{count}" for kind, count in sorted(kinds.items()))

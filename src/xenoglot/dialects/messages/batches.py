"""Anthropic's Message Batches: encodes and decodes batches and their lists.

Source: `anthropic/types/messages/message_batch.py`, `anthropic/resources/messages/batches.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xenoglot.codec.features.batch import BatchCodec, BatchRequest
from xenoglot.codec.reader import Reader
from xenoglot.dialects.messages.extras import NAME
from xenoglot.dialects.messages.rate_limits import timestamp
from xenoglot.errors import WireError
from xenoglot.model.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.codec.features.batch import Batch
    from xenoglot.model.json import JSON, JSONObject

ENDPOINT: Final = "/v1/messages"
SECONDS: Final = 86_400.0
"""A batch is over a day after it was made."""

LONGEST_ID: Final = 512
"""Characters of a `custom_id`; Anthropic takes 64."""


def decode_batch(body: JSON) -> BatchRequest:
    """Return the batch that a client requests.

    Raises:
        WireError: it asks for none; what the requests themselves ask is not looked at.
    """
    requests: list[tuple[str, JSONObject]] = []
    seen: set[str] = set()
    for one in Reader(body).objects("requests"):
        name = one.need("custom_id", str)
        if not 0 < len(name) <= LONGEST_ID:
            raise WireError(one.at("custom_id"), f"expected 1 to {LONGEST_ID} characters")
        if name in seen:
            raise WireError(one.at("custom_id"), "another request has this id: each needs one of its own")
        seen.add(name)
        requests.append((name, one.need("params", dict)))
    if not requests:
        raise WireError("$.requests", "required, expected at least one request")
    return BatchRequest(endpoint=ENDPOINT, asked={}, seconds=SECONDS, requests=requests)


def encode_batch(batch: Batch) -> JSONObject:
    """Return the object that describes a batch; its counts do not change until the whole batch has ended."""
    left = batch.total - batch.succeeded - batch.errored
    counts = {"processing": batch.total, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
    if batch.over:
        counts |= {"processing": 0, "succeeded": batch.succeeded, "errored": batch.errored}
        counts["expired" if batch.phase == "expired" else "canceled"] = left
    status = "canceling" if batch.cancelled is not None else "in_progress"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if batch.over else status,
        "request_counts": counts,
        "ended_at": _moment(batch.moments.get(batch.phase)) if batch.over else None,
        "created_at": _moment(batch.created),
        "expires_at": _moment(batch.deadline),
        "archived_at": None,
        "cancel_initiated_at": _moment(batch.cancelled),
        "results_url": f"/v1/messages/batches/{batch.id}/results" if batch.over else None,
    }


def encode_page(items: Sequence[JSONObject], has_more: bool) -> JSONObject:  # noqa: FBT001  a field of the page
    """Return a page of a list (`anthropic/pagination.py`)."""
    first, last = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    return {"data": list(items), "has_more": has_more, "first_id": first, "last_id": last}


def _moment(at: float | None) -> str | None:
    return None if at is None else timestamp(at)


def _unknown(name: str) -> Failure:
    return Failure(kind="not_found", message=f"No message batch `{name}`", dialect=NAME)


def _not_over() -> Failure:
    return Failure(kind="invalid_request", message="The message batch has not ended: cancel it, or wait", dialect=NAME)


def _deleted(name: str) -> JSONObject:
    return {"id": name, "type": "message_batch_deleted"}


WORDS = BatchCodec(
    id_prefix="msgbatch_",
    decode=decode_batch,
    show=encode_batch,
    page=encode_page,
    unknown=_unknown,
    not_over=_not_over,
    over=None,
    deleted=_deleted,
)

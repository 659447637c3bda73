"""Rows of the ledger as values."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

HOUR: Final = 3600
FIRST_FAILED_STATUS: Final = 400


class RequestRow(Struct, frozen=True, gc=False):
    """One request: the columns of the table `request`, in their order. `at` is when it came, in Unix seconds.

    `ttfb_ms` are milliseconds until the response began, `first_token_ms` until the first text, reasoning or argument of
    a stream.
    """

    id: str
    at: float
    tenant: str | None = None
    key: str | None = None
    session: str | None = None
    route: str | None = None
    dialect: str | None = None
    upstream_dialect: str | None = None
    model: str | None = None
    upstream: str | None = None
    target: str | None = None
    tries: int = 0
    stream: int | None = None
    status: int | None = None
    finish: str | None = None
    failure: str | None = None
    ttfb_ms: float | None = None
    total_ms: float = 0.0
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    audio_in: int | None = None
    audio_out: int | None = None
    searches: int | None = None
    extra_input: int | None = None
    extra_output: int | None = None
    estimated: int = 0
    cost: int | None = None
    currency: str | None = None
    price_source: str | None = None
    losses: int = 0
    loss_kinds: str | None = None
    trace: str | None = None
    tags: str | None = None
    first_token_ms: float | None = None

    @property
    def ended(self) -> float:
        """When it ended, in Unix seconds."""
        return self.at + self.total_ms / 1000.0

    @property
    def failed(self) -> bool:
        """Whether the client got no whole answer."""
        return self.failure is not None or (self.status or 0) >= FIRST_FAILED_STATUS


COLUMNS: Final = RequestRow.__struct_fields__

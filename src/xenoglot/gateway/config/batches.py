"""What the configuration says of files and batches."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class BatchSettings(Struct, frozen=True, kw_only=True):
    """Files and batches that clients may bring."""

    enabled: bool = True
    concurrency: Annotated[int, Meta(ge=1, le=1024)] = 4
    """How many requests of all batches are asked at once."""
    max_requests: Annotated[int, Meta(ge=1, le=1_000_000)] = 50_000
    """The most requests of one batch."""
    max_bytes: Annotated[int, Meta(ge=1)] = 200 * 1024 * 1024
    """The most of one file."""

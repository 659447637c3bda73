"""Captured bodies in every kind of store: compressed, and deleted when they expire."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

import pytest

from xenoglot.store.ledger import bodies, queries
from xenoglot.store.ledger.bodies import ZSTD, CaptureRow, compressed, decompressed
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from xenoglot.store.sql import SQLStore
    from xenoglot.store.store import Store


def row(part: str, expires: float, body: bytes = b"") -> CaptureRow:
    return CaptureRow(request="req_1", part=part, media="application/json", body=body, expires=expires)


async def test_bodies_are_stored_and_expire(store: Store) -> None:
    database = cast("SQLStore", store)
    rows = [row("client_request", 1.0, compressed(b"{}")), row("client_response", 9.0, bytes(range(256)))]
    await database.write(bodies.add_captures(rows))
    await database.write(bodies.add_captures(rows))  # a write that failed may have been committed all the same
    assert await database.read(bodies.captured_bodies("req_1")) == rows
    assert [one.part for one in await database.read(queries.captured("req_1"))] == [one.part for one in rows]
    assert [await database.write(bodies.prune_captures(now, 10)) for now in (5.0, 5.0)] == [1, 0]
    assert await database.read(bodies.captured_bodies("req_1")) == rows[1:]


@pytest.mark.parametrize("data", [b"", b"a" * 9999, os.urandom(999)], ids=["empty", "text", "bytes"])
def test_bodies_are_compressed(data: bytes) -> None:
    assert decompressed(compressed(data)) == data
    assert len(compressed(b"a" * 9999)) < 200


def test_a_body_that_cannot_be_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a gateway with Zstandard, and one that is broken."""
    monkeypatch.setattr(bodies, "_zstandard", lambda: None)
    with pytest.raises(StoreError, match="install the package zstandard"):
        decompressed(ZSTD + b"x")
    with pytest.raises(StoreError, match="broken"):
        decompressed(bytes(9))

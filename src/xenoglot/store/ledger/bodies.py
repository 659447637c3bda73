"""Captured bodies in the store, and details of their requests: compressed by Zstandard, or by zlib without it.

Which it was is seen at the first bytes (RFC 8878 section 3.1.1, RFC 1950 section 2.2), so that stores can be shared.
"""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

from msgspec import Struct

from xenoglot.codec.loss import Loss
from xenoglot.store.queries import Statement
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.store.queries import Steps

ZSTD: Final = b"\x28\xb5\x2f\xfd"
PARTS: Final = ("client_request", "upstream_request", "upstream_response", "client_response")
"""The bodies of a request, in the order in which they pass."""
DETAILS: Final = "details"
"""The part with what else was captured of a request, as JSON (`CaptureDetails`)."""
TRUNCATED: Final = "; truncated=true"
"""The end of the media type of a body of which only the beginning was captured."""
MOST: Final = 256 * 1024 * 1024
"""Bytes of a body when it is decompressed."""


class _Zstandard(Protocol):
    """A module with Zstandard."""

    def compress(self, data: bytes) -> bytes:
        """Return the frame of `data`."""
        ...

    def decompress(self, data: bytes) -> bytes:
        """Return the data of a frame."""
        ...


def _zstandard() -> _Zstandard | None:
    """Return what knows Zstandard: Python since 3.14, or the package `zstandard`."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return cast("_Zstandard", import_module(name))
        except ImportError:
            continue
    return None


class CaptureRow(Struct, frozen=True, kw_only=True):
    """A captured body: the columns of the table `capture`, in their order. `body` is compressed."""

    request: str
    part: str
    media: str
    body: bytes
    expires: float


class TryTimes(Struct, frozen=True, kw_only=True):
    """A call of an upstream, in milliseconds after the request came: when it was sent, and what came back when."""

    sent: float
    head: float | None
    """When the head of the response came."""
    first: float | None
    last: float | None


class CaptureDetails(Struct, frozen=True, kw_only=True):
    """The losses, tries and times of a request, in milliseconds after it came."""

    losses: tuple[Loss, ...] = ()
    failed_tries: tuple[str, ...] = ()
    """Why tries failed, each as `upstream/model: reason`."""
    tries: tuple[TryTimes, ...] = ()
    answered: float | None = None
    """When the response to the client began."""
    first_token: float | None = None
    ended: float = 0.0


def compressed(data: bytes) -> bytes:
    """Return a body as it is stored."""
    zstandard = _zstandard()
    return zlib.compress(data) if zstandard is None else zstandard.compress(data)


def decompressed(data: bytes) -> bytes:
    """Return a body that was stored.

    Raises:
        StoreError: it cannot be decompressed here.
    """
    if not data.startswith(ZSTD):
        try:
            return zlib.decompressobj().decompress(data, MOST)
        except zlib.error as error:
            raise StoreError(f"a captured body is broken: {error}") from error
    zstandard = _zstandard()
    if zstandard is None:
        raise StoreError("a captured body is compressed by Zstandard: install the package zstandard to read it")
    return zstandard.decompress(data)


def add_captures(rows: Sequence[CaptureRow]) -> Steps[None]:
    """Store captured bodies; those that exist stay."""
    yield Statement(
        "INSERT INTO capture (request, part, media, body, expires) VALUES ($1, $2, $3, $4, $5)"
        " ON CONFLICT (request, part) DO NOTHING",
        many=[(row.request, row.part, row.media, row.body, row.expires) for row in rows],
    )


def captured_bodies(request: str) -> Steps[list[CaptureRow]]:
    """Return the captured bodies of a request."""
    rows = yield Statement(
        "SELECT request, part, media, body, expires FROM capture WHERE request = $1 ORDER BY part", (request,)
    )
    return [CaptureRow(request=row[0], part=row[1], media=row[2], body=bytes(row[3]), expires=row[4]) for row in rows]


def captured_body(request: str, part: str) -> Steps[CaptureRow | None]:
    """Return one captured body of a request; `None` if there is none."""
    rows = yield Statement(
        "SELECT request, part, media, body, expires FROM capture WHERE request = $1 AND part = $2", (request, part)
    )
    return next(
        (CaptureRow(request=row[0], part=row[1], media=row[2], body=bytes(row[3]), expires=row[4]) for row in rows),
        None,
    )


def prune_captures(now: float, most: int) -> Steps[int]:
    """Delete at most so many captured bodies that have expired; return how many."""
    rows = yield Statement("SELECT request, part FROM capture WHERE expires < $1 LIMIT $2", (now, most))
    if rows:
        yield Statement("DELETE FROM capture WHERE request = $1 AND part = $2", many=[(row[0], row[1]) for row in rows])
    return len(rows)

"""Throttles sources that send too many wrong keys (S16). Pure: time is an argument, in seconds, and never goes back.

Theory of operation. Each source has a bucket of wrong keys, which fills again slowly. While it is empty, no key that is
new there is taken, be it right or wrong, so that guessing is as slow as the filling; a key that was taken there before
is accepted as before. What is remembered is bounded: of too many sources, the one longest silent is forgotten.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from functools import lru_cache

from msgspec import Struct


class ThrottleSettings(Struct, frozen=True, kw_only=True):
    """How many wrong keys a source may show at once, how many more in a second, and how much is remembered.

    A client that retries is no attack: Codex sends 30 requests for a turn that gets 401, and Claude Code retries for
    minutes, each twice as late as the one before.
    """

    burst: int = 100
    per_second: float = 1.0
    sources: int = 16_384
    guests: int = 16_384
    """Clients that are known at a source."""


class _Bucket(Struct):
    tokens: float
    at: float


class AuthThrottle:
    """Counts wrong keys by the sources they come from."""

    def __init__(self, patience: ThrottleSettings = ThrottleSettings()) -> None:  # noqa: B008  it is frozen
        self._settings = patience
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._guests: OrderedDict[tuple[str, str], None] = OrderedDict()

    def refused(self, source: str, now: float) -> float:
        """Note a wrong key; return in how many seconds the next is looked at, 0 where it is at once."""
        bucket = self._buckets.setdefault(source, _Bucket(self._settings.burst, now))
        self._buckets.move_to_end(source)
        if len(self._buckets) > self._settings.sources:
            self._buckets.popitem(last=False)
        self._refill(bucket, now)
        wait = self._wait(bucket)
        bucket.tokens = max(0.0, bucket.tokens - 1)
        return wait

    def accepted(self, source: str, owner: str, now: float) -> float:
        """Note a right key, that of `owner`; return in how many seconds it may come, 0 where it may now."""
        guest = (source, owner)
        bucket = self._buckets.get(source)
        if bucket is not None and guest not in self._guests:
            self._refill(bucket, now)
            if wait := self._wait(bucket):
                return wait
        self._guests[guest] = None
        self._guests.move_to_end(guest)
        if len(self._guests) > self._settings.guests:
            self._guests.popitem(last=False)
        return 0.0

    def is_exhausted(self, source: str, now: float) -> bool:
        """Whether no key that is new at `source` is accepted now; nothing is counted."""
        bucket = self._buckets.get(source)
        if bucket is None:
            return False
        self._refill(bucket, now)
        return self._wait(bucket) > 0

    def _refill(self, bucket: _Bucket, now: float) -> None:
        elapsed = max(0.0, now - bucket.at)
        bucket.tokens = min(self._settings.burst, bucket.tokens + elapsed * self._settings.per_second)
        bucket.at = now

    def _wait(self, bucket: _Bucket) -> float:
        return 0.0 if bucket.tokens >= 1 else (1 - bucket.tokens) / self._settings.per_second


@lru_cache(maxsize=1024)
def source_of(peer: str) -> str | None:
    """Return where a client at the address `peer` is: itself; of IPv6 its network, since it has all addresses of it.

    `None` is this machine, or no address: then there is a proxy with many clients, none of which may lock out the
    others.
    """
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_loopback:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.IPv6Network((address, 64), strict=False))

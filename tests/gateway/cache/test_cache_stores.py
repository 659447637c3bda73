"""Where answers are cached: in memory, and in a Valkey server that may be away."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.gateway.limits.valkey import Valkey, running
from xenoglot.gateway.cache.memory_store import OVERHEAD, MemoryStore
from xenoglot.gateway.cache.redis_store import REST_SECONDS, RedisStore

if TYPE_CHECKING:
    from collections.abc import Iterator


class Clock:
    """A clock that is pushed on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_an_answer_in_memory_expires() -> None:
    clock = Clock()
    store = MemoryStore(10_000, clock)
    await store.put("a", b"1", 10)
    clock.now = 9.9
    assert await store.get("a") == b"1"
    clock.now = 10.0
    assert (await store.get("a"), store.size) == (None, 0)


async def test_memory_is_bounded_and_the_least_recently_used_goes_first() -> None:
    store = MemoryStore(2 * (OVERHEAD + 10), Clock())
    await store.put("a", bytes(10), 60)
    await store.put("b", bytes(10), 60)
    await store.get("a")
    await store.put("c", bytes(10), 60)
    assert [await store.get(key) is not None for key in "abc"] == [True, False, True]
    await store.put("a", bytes(1000), 60)
    assert ([await store.get(key) for key in "abc"], store.size) == ([None] * 3, 0)


@pytest.fixture(scope="module")
def valkey() -> Iterator[Valkey]:
    """Give a server."""
    with running() as server:
        yield server


async def test_gateways_share_a_server(valkey: Valkey) -> None:
    one, other = RedisStore(valkey.url, Clock()), RedisStore(valkey.url, Clock())
    await one.put("a", b"1", 60)
    assert (await other.get("a"), await other.get("b")) == (b"1", None)
    await one.put("a", b"2", 0.0001)
    for store in (one, other):
        await store.aclose()


async def test_a_server_that_is_away_is_left_alone_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    with running() as server:
        store = RedisStore(server.url, clock)
        await store.put("a", b"1", 60)
        server.kill()
        caplog.set_level(logging.ERROR)
        assert [await store.get("a") for _ in range(3)] == [None] * 3
        assert len(caplog.records) == 1
        server.start()
        assert await store.get("a") is None
        clock.now += REST_SECONDS
        await store.put("a", b"2", 60)
        assert await store.get("a") == b"2"
        await store.aclose()

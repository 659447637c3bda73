"""K06-K09 over many gateways: limits that they share by a real server, and what becomes of them when it is lost."""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.limits.valkey import Valkey, running
from tests.policy.limits.test_admission_queue import most
from xenoglot.errors import ConfigurationError, FailureError
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.config.load import check
from xenoglot.gateway.limits.redis import TIMEOUT, RedisLease, RedisLimiter
from xenoglot.gateway.limits.redis_timeout import SilenceTimeout
from xenoglot.gateway.process.build import build_gateway
from xenoglot.policy.limits.usage_ledger import Scope, Window

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from xenoglot.model.json import JSONObject

SECOND = 1_000_000
HOUR = 3_600.0
PATIENCE = 120.0
"""Seconds for an answer of the server, where the machine may be slow but the server is not lost."""

LOST, BACK = (
    "the server of the limits does not answer, so this process limits alone",
    "the server of the limits is back",
)


class Clock:
    """One clock for the server (microseconds) and for gateways (seconds)."""

    def __init__(self) -> None:
        self.now = 1_000 * SECOND

    def __call__(self) -> int:
        return self.now

    @property
    def seconds(self) -> float:
        return self.now / SECOND


@pytest.fixture(scope="module")
def valkey() -> Generator[Valkey]:
    with running() as server:
        yield server


@asynccontextmanager
async def gateways(valkey: Valkey, number: int = 2, **settings: Any) -> AsyncGenerator[list[RedisLimiter]]:  # noqa: ANN401
    """Limiters that share a server, which knows of nothing yet."""
    limiters = [RedisLimiter(valkey.url, **{"timeout": PATIENCE, **settings}) for _ in range(number)]
    await limiters[0]._server._redis.flushall()
    try:
        yield limiters
    finally:
        for limiter in limiters:
            await limiter.aclose()


async def tried(limiter: RedisLimiter, *scopes: Scope, tokens: int = 0, owner: str = "a") -> RedisLease | None:
    """The lease of a request that does not wait, or nothing."""
    try:
        lease = await limiter.enter(scopes, owner=owner, tokens=tokens, patience=0.0)
    except FailureError as error:
        refused = (error.failure.kind in {"rate_limit", "overloaded"}, (error.failure.retry_after or 0.0) > 0)
    else:
        assert isinstance(lease, RedisLease)
        return lease
    assert refused == (True, True)
    return None


async def stored_keys(valkey: Valkey) -> dict[bytes, Any]:
    """What the server has left in its hashes and sorted sets."""
    limiter = RedisLimiter(valkey.url)
    redis = limiter._server._redis
    found: dict[bytes, Any] = {}
    for key in await redis.keys():
        assert isinstance(key, bytes)
        found[key] = await redis.hgetall(key) if await redis.type(key) == b"hash" else await redis.zrange(key, 0, -1)
    await limiter.aclose()
    return found


async def until(look: Callable[[], bool]) -> None:
    """Wait for something that another process brings."""
    async with asyncio.timeout(PATIENCE):
        while not look():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.002)


REQUESTS = Scope("key:a", requests=(Window(3, 2.0), Window(7, 9.0)))
TOKENS = Scope("upstream:x", tokens=(Window(20, 3.0), Window(4_000, 30.0)), concurrency=3)
STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),  # which gateway
        st.sampled_from([(REQUESTS,), (TOKENS,), (REQUESTS, TOKENS)]),
        st.integers(0, 20),  # tokens
        st.integers(0, 12).map(lambda quarters: quarters * SECOND // 4),  # the time before it
        st.one_of(st.none(), st.none(), st.integers(0, 20)),  # tokens used, by the oldest that is under way
    ),
    max_size=25,
)


async def run_requests(valkey: Valkey, steps: list[Any]) -> tuple[list[Any], int]:
    """Let requests come and go; gives all that were let in, and the most that were under way at once."""
    clock = Clock()
    uses: list[tuple[int, tuple[Scope, ...], int]] = []
    under_way: list[tuple[int, RedisLease]] = []
    peak = 0
    async with gateways(valkey, clock=lambda: clock.seconds, server_clock=clock) as limiters:
        for which, scopes, tokens, wait, used in steps:
            clock.now += wait
            if used is not None and under_way:
                index, lease = under_way.pop(0)
                await lease.leave(min(used, uses[index][2]))
                at, theirs, reserved = uses[index]
                uses[index] = (at, theirs, min(used, reserved))
            lease_ = await tried(limiters[which], *scopes, tokens=tokens)
            if lease_ is not None:
                uses.append((clock.now, scopes, tokens))
                under_way.append((len(uses) - 1, lease_))
                peak = max(peak, sum(TOKENS in uses[index][1] for index, _ in under_way))
        for _, lease in under_way:
            lease.drop()
    return uses, peak


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_k08_two_gateways_never_let_in_more_than_any_window_holds(valkey: Valkey, steps: list[Any]) -> None:
    uses, peak = asyncio.run(run_requests(valkey, steps))
    for window in REQUESTS.requests:
        assert most([(at / SECOND, 1) for at, scopes, _ in uses if REQUESTS in scopes], window) <= window.amount
    for window in TOKENS.tokens:
        assert most([(at / SECOND, n) for at, scopes, n in uses if TOKENS in scopes], window) <= window.amount
    assert peak <= (TOKENS.concurrency or 0)


async def test_k08_a_window_is_used_to_the_last_and_opens_on_the_dot(valkey: Valkey) -> None:
    clock = Clock()
    async with gateways(valkey, clock=lambda: clock.seconds, server_clock=clock) as (one, other):
        held = [await tried(one, REQUESTS), await tried(other, REQUESTS), await tried(one, REQUESTS)]
        assert [lease is not None for lease in (*held, await tried(other, REQUESTS))] == [True, True, True, False]
        clock.now += 2 * SECOND - 1
        assert await tried(other, REQUESTS) is None
        clock.now += 1
        assert await tried(other, REQUESTS) is not None


async def test_who_is_refused_is_told_when(valkey: Valkey) -> None:
    clock = Clock()
    async with gateways(valkey, clock=lambda: clock.seconds, server_clock=clock) as (one, other):
        for _ in range(3):
            await tried(one, REQUESTS)
        clock.now += SECOND // 2
        with pytest.raises(FailureError, match="this API key") as caught:
            await other.enter([REQUESTS], owner="b", tokens=0, patience=1.0)
        assert (caught.value.failure.kind, caught.value.failure.retry_after) == ("rate_limit", 1.5)


async def test_u50_k08_a_server_whose_clock_is_set_back_lets_in_no_more(valkey: Valkey) -> None:
    ours, theirs = Clock(), Clock()
    async with gateways(valkey, clock=lambda: ours.seconds, server_clock=theirs) as (one, other):
        for _ in range(3):
            assert await tried(one, REQUESTS) is not None
        let_in = []
        for step in (-500 * SECOND, 2 * SECOND - 1, 1):
            ours.now += 10 * SECOND
            theirs.now += step
            let_in.append(await tried(other, REQUESTS) is not None)
        assert let_in == [False, False, True]


async def test_k07_what_was_not_used_comes_back_once(valkey: Valkey) -> None:
    clock, scope = Clock(), Scope("upstream:x", tokens=(Window(100, 60.0),))
    async with gateways(valkey, clock=lambda: clock.seconds, server_clock=clock) as (one, other):
        lease = await tried(one, scope, tokens=90)
        assert lease is not None
        assert await tried(other, scope, tokens=11) is None
        await lease.leave(40)
        await lease.leave(0)
        lease.drop(0)
        assert await tried(other, scope, tokens=10) is not None
        clock.now += SECOND // 10  # within which it does not ask again for as much as it was just refused
        assert await tried(other, scope, tokens=51) is None
        assert await tried(other, scope, tokens=50) is not None
    amounts = (await stored_keys(valkey))[b"{xenoglot}upstream:x/tokens/60000000/amounts"]
    assert amounts[b"used"] == b"100"


async def test_k07_what_was_used_beyond_is_owed(valkey: Valkey) -> None:
    clock, scope = Clock(), Scope("upstream:x", tokens=(Window(100, 60.0), Window(5_000, 60.5)))
    async with gateways(valkey, clock=lambda: clock.seconds, server_clock=clock) as (one, other):
        lease = await tried(one, scope, tokens=50)
        assert lease is not None
        clock.now += 10 * SECOND
        await lease.leave(130)
        clock.now += 50 * SECOND
        assert await tried(other, scope, tokens=21) is None
        assert await tried(other, scope, tokens=20) is not None


async def test_a_request_that_was_never_sent_counts_for_nothing(valkey: Valkey) -> None:
    scope = Scope("upstream:x", requests=(Window(2, HOUR),), tokens=(Window(10, HOUR),), concurrency=1)
    async with gateways(valkey) as (one, other):
        for limiter in (one, other, one, other):
            lease = await tried(limiter, scope, tokens=10)
            assert lease is not None
            await lease.leave(0, asked=False)
    assert [value for value in (await stored_keys(valkey)).values() if value != {b"used": b"0"}] == []


async def test_k06_real_concurrency_never_exceeds_the_places(valkey: Valkey) -> None:
    scope = Scope("upstream:x", concurrency=3, requests=(Window(60, HOUR),), queue_seconds=PATIENCE)
    inside, peak, done = 0, 0, 0

    async def one(limiter: RedisLimiter, owner: str) -> None:
        nonlocal inside, peak, done
        lease = await limiter.enter([scope], owner=owner, tokens=0)
        inside += 1
        peak = max(peak, inside)
        for _ in range(3):
            await asyncio.sleep(0)
        inside -= 1
        done += 1
        await lease.leave(None)

    async with gateways(valkey, 3) as limiters:
        crowd = [one(limiters[number % 3], "abcd"[number % 4]) for number in range(60)]
        await asyncio.gather(*crowd)
        assert (done, peak) == (60, 3)
        assert await tried(limiters[0], scope) is None


async def test_who_waits_is_let_in_when_another_gateway_makes_room(valkey: Valkey) -> None:
    scope = Scope("upstream:x", concurrency=1)
    async with gateways(valkey) as (one, other):
        lease = await tried(one, scope)
        assert lease is not None
        waiting = asyncio.ensure_future(other.enter([scope], owner="b", tokens=0))
        await until(lambda: bool(other.measures().waiting))
        await lease.leave(None)
        (await waiting).drop()


async def test_c04_who_goes_while_the_server_is_asked_holds_nothing(valkey: Valkey) -> None:
    scope = Scope("upstream:x", requests=(Window(9, HOUR),), tokens=(Window(9, HOUR),), concurrency=1)
    async with gateways(valkey) as (one, other):
        for turns in range(12):
            asking = asyncio.ensure_future(one.enter([scope], owner="a", tokens=1))
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            done, _ = await asyncio.wait([asking])
            assert done
            if not asking.cancelled():
                asking.result().drop(0, asked=False)
        while one._tasks:
            await asyncio.gather(*one._tasks)
        assert await tried(other, scope, tokens=9) is not None
        assert not one._leases


async def test_k15_the_places_of_a_gateway_that_is_killed_come_back(valkey: Valkey) -> None:
    clock, scope = Clock(), Scope("upstream:x", concurrency=1)
    async with gateways(valkey, clock=lambda: clock.seconds, server_clock=clock) as (killed, other):
        assert await tried(killed, scope) is not None
        clock.now += 20 * SECOND
        await killed._vouch()
        clock.now += 30 * SECOND - 1
        assert await tried(other, scope) is None
        clock.now += SECOND
        assert await tried(other, scope) is not None


async def test_a_lost_server_leaves_local_limits_and_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "xenoglot.gateway")
    scope = Scope("upstream:x", requests=(Window(4, HOUR),), concurrency=2)
    with running() as server:
        async with gateways(server, retry_seconds=0.01) as (one, other):
            before = await tried(one, scope)
            assert before is not None
            server.kill()
            during = await tried(one, scope)
            assert during is not None
            assert await tried(one, scope) is None  # what was let in before counts
            assert await tried(other, scope) is not None
            assert (one.is_lost, other.is_lost, len(caplog.messages)) == (True, True, 2)
            await before.leave(None)
            server.start()
            await until(lambda: not one.is_lost and not other.is_lost)
            assert await tried(one, scope) is None  # those let in meanwhile hold both places, and the server knows
            await during.leave(None)
            assert await tried(one, scope) is not None
    assert [message.partition(":")[0] for message in caplog.messages] == [LOST, LOST, BACK, BACK]


async def test_a_server_that_stays_lost_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    limiter = RedisLimiter("unix:///nowhere/at/all", retry_seconds=0.0)
    tries = 0

    async def ping() -> None:
        nonlocal tries
        tries += 1
        await there()

    there, limiter._server.ping = limiter._server.ping, ping  # type: ignore[method-assign]
    for wanted in (3, 6):
        lease = await tried(limiter, Scope("upstream:x", requests=(Window(4, HOUR),)))
        assert lease is not None
        lease.drop()
        await until(functools.partial(lambda wanted: tries >= wanted, wanted))
    assert [message.partition(":")[0] for message in caplog.messages] == [LOST]
    await limiter.aclose()


async def test_a_server_that_does_not_answer_is_lost_in_time() -> None:
    scope = Scope("upstream:x", concurrency=2)
    with running() as server:
        async with gateways(server, timeout=TIMEOUT) as (one, other):
            assert await tried(other, scope) is not None
            with server.hung():
                leases = await asyncio.gather(tried(one, scope), tried(one, scope))
                assert (None not in leases, one.is_lost) == (True, True)


async def test_a_gateway_starts_without_the_server() -> None:
    limiter = RedisLimiter("valkey://127.0.0.1:1/0")
    lease = await tried(limiter, Scope("upstream:x", concurrency=1))
    assert (lease is not None, limiter.is_lost) == (True, True)
    await limiter.aclose()


async def test_gateways_of_one_configuration_share_their_limits(valkey: Valkey) -> None:
    plain: JSONObject = {
        "keys": {"limits": {"requests": ["2/1h"], "concurrency": 2}},
        "limits": {"store": "redis", "url": valkey.url},
        "upstreams": {"main": {"dialect": "chat", "base_url": "http://upstream.invalid"}},
        "store": {"url": "off"},
    }
    loaded = check(plain, {}, "f.toml")
    async with build_gateway(loaded) as one, build_gateway(loaded) as other:
        for gateway in (one, other):
            assert isinstance(gateway.limiter, RedisLimiter)
            gateway.limiter._server._patience = SilenceTimeout(PATIENCE)
        assert isinstance(one.limiter, RedisLimiter)
        await one.limiter._server._redis.flushall()
        for gateway in (one, other):
            scopes = gateway.dispatcher.scopes.of_request("", Principal(owner="me"))
            await (await gateway.limiter.enter(scopes, owner="me", tokens=0)).leave(0)
        with pytest.raises(FailureError, match="this API key"):
            await one.limiter.enter(one.dispatcher.scopes.of_request("", Principal(owner="me")), owner="me", tokens=0)
        (
            await other.limiter.enter(
                other.dispatcher.scopes.of_request("", Principal(owner="you")), owner="you", tokens=0
            )
        ).drop()


async def test_where_nothing_is_limited_nobody_is_asked() -> None:
    limiter = RedisLimiter("redis://127.0.0.1:1/0")
    lease = await limiter.enter([], owner="a", tokens=5)
    await lease.leave(5)
    lease.drop()
    assert not limiter.is_lost
    await limiter.aclose()


def test_without_redis_py_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ConfigurationError, match=r"xenoglot\[redis\]"):
        RedisLimiter("redis://127.0.0.1")

"""Limits that workers share with their parent: real sockets, and real processes that are killed."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from msgspec import json

from tests.backends.raw_server import becomes, on_each_loop, turns
from tests.gateway.limits import worker_process
from xenoglot.errors import FailureError
from xenoglot.gateway.limits import worker_ipc
from xenoglot.gateway.limits.limiter import MemoryLimiter
from xenoglot.gateway.limits.worker_ipc import LONGEST, SharedLimiter, serve_limiter
from xenoglot.policy.limits.usage_ledger import Scope, Window

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from xenoglot.gateway.limits.limiter import Lease

PLACES = Scope("upstream:x", concurrency=2)
TOKENS = Scope("key:a", requests=(Window(50, 3_600.0),), tokens=(Window(10, 3_600.0),))


@pytest.fixture
def path() -> Generator[str]:
    with tempfile.TemporaryDirectory(prefix="xl") as folder:  # pytest's own are too long for a socket
        yield f"{folder}/limits"


@asynccontextmanager
async def workers(path: str, count: int = 2) -> AsyncGenerator[tuple[MemoryLimiter, list[SharedLimiter]]]:
    """A parent's limits, and workers that ask it."""
    parent, those = MemoryLimiter(), [SharedLimiter(path) for _ in range(count)]
    async with serve_limiter(parent, path):
        yield parent, those
        for worker in those:
            await worker.aclose()
    await parent.aclose()


def held(parent: MemoryLimiter, scope: Scope = PLACES) -> int:
    """How many places the parent thinks are held."""
    room = parent._room.ledger.scopes.get(scope.name)
    return 0 if room is None else room.slots_used


async def tried(worker: SharedLimiter, scope: Scope, tokens: int = 0) -> Lease | None:
    """The lease of a request that does not wait, or nothing."""
    with suppress(FailureError):
        return await worker.enter([scope], owner="a", tokens=tokens, patience=0.0)
    return None


@on_each_loop
async def test_workers_share_the_places(path: str) -> None:
    async with workers(path) as (parent, (one, other)):
        first, second = await tried(one, PLACES), await tried(other, PLACES)
        assert first is not None
        assert second is not None
        assert (await tried(one, PLACES), await tried(other, PLACES)) == (None, None)
        await first.leave(None)
        await first.leave(None)
        first.drop()
        third = await tried(other, PLACES)
        assert (third is not None, await tried(one, PLACES), held(parent)) == (True, None, 2)


@on_each_loop
async def test_k07_what_was_not_used_comes_back(path: str) -> None:
    async with workers(path) as (_, (one, other)):
        lease = await tried(one, TOKENS, 8)
        assert lease is not None
        assert await tried(other, TOKENS, 3) is None
        await lease.leave(3)
        await becomes(0, lambda: held(_, TOKENS))
        assert await tried(other, TOKENS, 7) is not None


@on_each_loop
async def test_who_is_refused_is_told_what_the_parent_says(path: str) -> None:
    async with workers(path) as (_, (one, other)):
        await tried(one, TOKENS, 9)
        with pytest.raises(FailureError, match="this API key") as caught:
            await other.enter([TOKENS], owner="b", tokens=9, patience=0.0)
        assert caught.value.failure.kind == "rate_limit"
        assert 3_590 < (caught.value.failure.retry_after or 0) <= 3_600
        assert other.measures().refused == {("key", "rate_limit"): 1}


@on_each_loop
async def test_k06_who_waits_at_one_worker_takes_turns_with_the_other(path: str) -> None:
    async with workers(path) as (parent, (one, other)):
        leases = [await one.enter([PLACES], owner="flood", tokens=0) for _ in range(2)]
        order: list[str] = []

        async def come(worker: SharedLimiter, owner: str) -> None:
            lease = await worker.enter([PLACES], owner=owner, tokens=0)
            order.append(owner)
            lease.drop()

        flood = [asyncio.ensure_future(come(one, "flood")) for _ in range(4)]
        await becomes(4, lambda: len(parent._room))
        late = asyncio.ensure_future(come(other, "late"))
        await becomes(5, lambda: len(parent._room))
        assert one.measures().waiting == {"shared": 4}
        leases[0].drop()
        await asyncio.gather(*flood, late)
        leases[1].drop()
        assert order.index("late") <= 1
        await becomes(0, lambda: held(parent))


@on_each_loop
async def test_c04_who_goes_while_waiting_holds_nothing(path: str) -> None:
    async with workers(path, 1) as (parent, (one,)):
        for count in range(8):
            asking = asyncio.ensure_future(one.enter([PLACES], owner="a", tokens=0))
            await turns(count)
            asking.cancel()
            with suppress(asyncio.CancelledError):
                (await asking).drop()
        await becomes((0, 0), lambda: (held(parent), len(parent._room)))


@on_each_loop
async def test_a_worker_whose_connection_ends_gives_everything_back(path: str) -> None:
    async with workers(path) as (parent, (one, other)):
        assert await tried(one, PLACES) is not None
        lease = await tried(one, PLACES)
        waiting = asyncio.ensure_future(other.enter([PLACES], owner="b", tokens=0))
        await becomes(1, lambda: len(parent._room))
        await one.aclose()
        (await waiting).drop()
        await becomes(0, lambda: held(parent))
        assert lease is not None
        lease.drop()


@on_each_loop
async def test_a_worker_without_its_parent_limits_alone(path: str) -> None:
    now = [0.0]
    worker = SharedLimiter(path, clock=lambda: now[0])
    alone = [await tried(worker, PLACES) for _ in range(3)]
    assert [lease is not None for lease in alone] == [True, True, False]
    async with serve_limiter(parent := MemoryLimiter(), path):
        now[0] += 0.5
        assert await tried(worker, PLACES) is None
        now[0] += 0.5
        assert (await tried(worker, PLACES) is not None, held(parent)) == (True, 1)
        for lease in alone[:2]:
            assert lease is not None
            lease.drop()
    await turns()
    assert await tried(worker, PLACES) is not None
    await worker.aclose()


async def test_the_loss_of_the_parent_is_told_once(path: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "xenoglot.gateway")
    now = [0.0]
    worker = SharedLimiter(path, clock=lambda: now[0])
    for _ in range(3):
        await tried(worker, TOKENS)
        now[0] += 2.0
    async with serve_limiter(MemoryLimiter(), path):
        await tried(worker, TOKENS)
        await worker.aclose()
    assert caplog.messages == [
        "the process that keeps the limits is lost, so this worker limits alone: FileNotFoundError",
        "the process that keeps the limits is back",
    ]


@on_each_loop
async def test_who_waits_when_the_parent_dies_is_let_in_alone(path: str) -> None:
    worker = SharedLimiter(path)
    async with serve_limiter(MemoryLimiter(), path):
        leases = [await tried(worker, PLACES) for _ in range(2)]
        waiting = asyncio.ensure_future(worker.enter([PLACES], owner="a", tokens=0))
        await turns()
    lease = await waiting
    for one in (lease, *leases):
        assert one is not None
        one.drop()
    await worker.aclose()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param((LONGEST + 1).to_bytes(4, "big"), id="too-long"),
        pytest.param(b"\0\0\0\1\xc1", id="no-messagepack"),
        pytest.param(b"\0\0\0\1\x01", id="no-message"),
        pytest.param(b"\0\0", id="cut-short"),
    ],
)
async def test_who_talks_nonsense_is_left(path: str, said: bytes) -> None:
    async with serve_limiter(MemoryLimiter(), path):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(said)
        writer.write_eof()
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


@on_each_loop
async def test_a_parent_that_talks_nonsense_is_left(path: str) -> None:
    def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\0\0\0\1\xc1")
        writer.close()

    server = await asyncio.start_unix_server(accept, path)
    worker = SharedLimiter(path)
    connection = await worker._linked()
    assert connection is not None
    await becomes(expected := True, lambda: connection.is_broken is expected)
    server.close()
    await worker.aclose()


def started(path: str, times: int, scope: Scope) -> subprocess.Popen[str]:
    """A worker in a process of its own."""
    command = [sys.executable, worker_process.__file__, path, json.encode(scope).decode(), str(times)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def read_lines(worker: subprocess.Popen[str], count: int) -> list[str]:
    """What a worker says in its next lines."""
    assert worker.stdout is not None
    return [(await asyncio.to_thread(worker.stdout.readline)).strip() for _ in range(count)]


async def test_k15_a_worker_that_is_killed_gives_everything_back(path: str) -> None:
    scope = Scope("upstream:x", concurrency=3, tokens=(Window(1_000, 3_600.0),))
    parent = MemoryLimiter()
    async with serve_limiter(parent, path):
        with started(path, 2, scope) as one, started(path, 2, scope) as other:
            said = sorted([*await read_lines(one, 2), *await read_lines(other, 2)])
            assert said == ["in", "in", "in", "overloaded"]
            lease = asyncio.ensure_future(parent.enter([scope], owner="b", tokens=0))
            one.kill()
            (await lease).drop()
            other.communicate()
            while held(parent, scope):  # noqa: ASYNC110  nobody tells
                await asyncio.sleep(0.001)
    assert worker_ipc.HEAD == 4

"""The check for leaks sees each kind, and nothing where there is none."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import warnings
from typing import TYPE_CHECKING

import pytest

from xenoglot.testing import Baseline, LeakError
from xenoglot.testing.canned import answers
from xenoglot.testing.client import AsyncRawClient
from xenoglot.testing.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


@pytest.fixture
async def leaves_nothing() -> AsyncIterator[None]:
    """Hold for a whole test."""
    async with Baseline():
        yield


@pytest.mark.usefixtures("leaves_nothing")
async def test_as_a_fixture() -> None:
    async with Upstream(*answers("chat").rules()) as upstream, AsyncRawClient(upstream.url) as client:
        await client.request("GET", "/v1/models")


async def test_nothing_is_left_of_a_server_and_its_client() -> None:
    async with Baseline(), Upstream(*answers("chat").rules()) as upstream, AsyncRawClient(upstream.url) as client:
        await client.request("GET", "/v1/models")


async def test_what_ends_by_itself_is_waited_for() -> None:
    async with Baseline():
        task = asyncio.create_task(asyncio.sleep(0))
    assert task.done()


async def test_a_task() -> None:
    stray = None
    with pytest.raises(LeakError, match=r"tasks: 1 before, 2 now \(.*stray"):
        async with Baseline():
            stray = asyncio.create_task(asyncio.Event().wait(), name="stray")
    assert stray is not None
    stray.cancel()


async def test_a_socket() -> None:
    with socket.socket() as idle:
        opened: list[socket.socket] = []
        with pytest.raises(LeakError, match=r"sockets: (\d+) before, (\d+) now; descriptors: "):
            async with Baseline():
                opened.append(socket.socket())
        opened.pop().close()
        async with Baseline(idle=lambda: 1):
            opened.append(socket.socket())
        opened.pop().close()
        idle.close()
        async with Baseline():  # fewer than before is no leak
            pass


async def test_a_descriptor() -> None:
    opened: list[int] = []
    with pytest.raises(LeakError, match=r"^descriptors: \d+ before, \d+ now$"):
        async with Baseline():
            opened.extend(os.pipe())
    for descriptor in opened:
        os.close(descriptor)


async def test_a_gauge() -> None:
    running = [1]
    with pytest.raises(LeakError, match=r"^running: 1 before, 0 now$"):
        async with Baseline(gauges={"running": lambda: running[0]}):
            running[0] = 0


async def never_awaited() -> None:
    """Do nothing, when nobody waits for it."""


async def fails() -> None:
    raise ValueError("nobody looks")


async def _retrieved_by_nobody() -> None:
    task = asyncio.create_task(fails())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del task


async def _awaited_by_nobody() -> None:
    never_awaited()  # type: ignore[unused-coroutine]


async def _closed_by_nobody() -> None:
    socket.socket()


@pytest.mark.parametrize(
    ("leave", "said"),
    [
        pytest.param(_retrieved_by_nobody, "Task exception was never retrieved: ValueError", id="retrieved"),
        pytest.param(_awaited_by_nobody, "coroutine 'never_awaited' was never awaited", id="awaited"),
        pytest.param(_closed_by_nobody, "ResourceWarning: unclosed", id="closed"),
    ],
)
async def test_a_complaint(leave: Callable[[], object], said: str) -> None:
    with pytest.raises(LeakError, match=re.escape(said)):
        async with Baseline():
            await leave()  # type: ignore[misc]


async def test_what_went_wrong_otherwise_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), warnings.catch_warnings():
        async with Baseline(gauges={"x": iter(range(10_000)).__next__}):
            raise ZeroDivisionError

"""Patience with the server of the limits, on a loop whose clock a test pushes."""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import ManualClockLoop, advance, leakless, turns
from xenoglot.gateway.limits.redis_timeout import PERIODS, SilenceTimeout

if TYPE_CHECKING:
    from collections.abc import Generator

SECONDS = 0.25


@contextmanager
def pair() -> Generator[tuple[socket.socket, socket.socket]]:
    """Give both ends of a connection."""
    here, there = socket.socketpair()
    with here, there:
        here.settimeout(0)
        there.settimeout(0)
        yield here, there


async def read_response(wire: socket.socket) -> bytes:
    """Wait for an answer as clients do: the loop reads, a task is woken, and then the next."""
    reader, writer = await asyncio.open_connection(sock=wire)
    try:
        return await asyncio.get_running_loop().create_task(reader.readexactly(2))
    finally:
        writer.close()


def passes(seconds: float) -> None:
    """Let time pass without the loop turning: the process gets no CPU."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ManualClockLoop)
    loop.now += seconds


@leakless
async def test_findings_7_an_answer_that_is_there_when_the_timer_fires_counts() -> None:
    with pair() as (here, there):
        asking = asyncio.create_task(SilenceTimeout(SECONDS).within(read_response(here)))
        for _ in range(PERIODS - 1):
            await advance(SECONDS)
        await turns()
        there.send(b"ok")
        passes(SECONDS)  # the last timer is due, and the answer is there: both in one turn of the loop
        assert await asking == b"ok"


@leakless
async def test_findings_7_a_single_pause_loses_nobody() -> None:
    with pair() as (here, there):
        asking = asyncio.create_task(SilenceTimeout(SECONDS).within(read_response(here)))
        await advance(100 * SECONDS)
        assert not asking.done()
        there.send(b"ok")
        assert await asking == b"ok"


@leakless
async def test_a_silent_server_is_lost_after_so_many_periods() -> None:
    with pair() as (here, _):
        asking = asyncio.create_task(SilenceTimeout(SECONDS).within(read_response(here)))
        for _ in range(PERIODS):
            assert not asking.done()
            await advance(SECONDS)
        with pytest.raises(TimeoutError):
            await asking


@leakless
async def test_findings_7_who_stands_in_line_is_not_late_while_others_are_answered() -> None:
    patience = SilenceTimeout(SECONDS)
    with pair() as (here, there):
        asking = asyncio.create_task(patience.within(read_response(here)))
        for number in range(10):
            await turns()
            assert await patience.within(asyncio.sleep(0, number)) == number
            await advance(SECONDS)
        assert not asking.done()
        there.send(b"ok")
        assert await asking == b"ok"


@leakless
async def test_an_error_of_the_server_is_that_of_the_question() -> None:
    async def refuse() -> None:
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await SilenceTimeout(SECONDS).within(refuse())


@leakless
async def test_who_goes_takes_the_question_along() -> None:
    stopped = asyncio.Event()

    async def ask() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    asking = asyncio.create_task(SilenceTimeout(SECONDS).within(ask()))
    await turns()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert stopped.is_set()

"""A coroutine is cancelled at each of its waits in turn, as a task is."""

from __future__ import annotations

import asyncio

import pytest

from xenoglot.testing import Interrupted, interrupt


async def three(said: list[str], *, cleans: bool = False) -> str:
    """Wait three times, in three ways, and clean up in a fourth."""
    try:
        await asyncio.sleep(0)
        said.append("slept")
        await asyncio.get_running_loop().run_in_executor(None, said.append, "worked")
        async with asyncio.timeout(120):
            await asyncio.sleep(0)
        said.append("timed")
    finally:
        if cleans:
            await asyncio.sleep(0)
            said.append("cleaned")
    return "done"


@pytest.mark.parametrize(
    ("at", "said"),
    [
        pytest.param(1, [], id="sleep"),
        pytest.param(3, ["slept", "worked"], id="timeout"),
        pytest.param(4, ["slept", "worked", "timed"], id="whole"),
    ],
)
async def test_where_it_is_cancelled(at: int, said: list[str]) -> None:
    heard: list[str] = []
    assert await interrupt(three(heard), at) is (at <= 3)
    assert heard == said


async def test_once_and_twice() -> None:
    once: list[str] = []
    twice: list[str] = []
    assert await interrupt(three(once, cleans=True), 1)
    assert await interrupt(three(twice, cleans=True), 1, times=2)
    assert (once, twice) == (["cleaned"], [])


async def test_what_it_gives_and_what_it_raises() -> None:
    assert await Interrupted(three([]), 9) == "done"

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await interrupt(fails(), 9)

"""Large bodies are decoded in threads, within a bound; small ones where they are (R50, R51)."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from xenoglot.backends.offload import (
    BUSY,
    EVENT_BYTES,
    LARGE,
    VALUE_BYTES,
    Offload,
    of_loop,
    offload,
    weight,
    weight_of,
)
from xenoglot.codec.json.json_io import MOST_VALUES
from xenoglot.errors import FailureError, WireError
from xenoglot.model.events import Event, TextDelta

if TYPE_CHECKING:
    from collections.abc import Iterator

MEBIBYTE = 1024 * 1024
COST = weight(LARGE)


@pytest.mark.parametrize(("size", "beside"), [(0, False), (LARGE - 1, False), (LARGE, True)])
async def test_r51_what_takes_long_is_done_in_a_thread(size: int, beside: bool) -> None:  # noqa: FBT001  a case
    thread = await offload(size, threading.get_ident)
    assert (thread != threading.get_ident()) is beside


async def test_r51_the_loop_goes_on_meanwhile() -> None:
    gone_on = threading.Event()
    reading = asyncio.ensure_future(offload(LARGE, lambda: gone_on.wait(120)))
    await asyncio.sleep(0)
    gone_on.set()  # while the work waits for that, this is the loop's own turn
    assert await reading


async def test_what_goes_wrong_in_a_thread_is_raised_on_the_loop() -> None:
    def fail() -> None:
        raise WireError("$", "no")

    with pytest.raises(WireError, match="no"):
        await offload(LARGE, fail)


def test_a_weight_is_the_bytes_and_what_their_values_may_take() -> None:
    assert weight(1000) == 1000 + 500 * VALUE_BYTES
    assert weight(32 * MEBIBYTE) == 32 * MEBIBYTE + MOST_VALUES * VALUE_BYTES


async def turns(count: int = 1) -> None:
    """Let what is ready on the loop run."""
    for _ in range(count * 5):
        await asyncio.sleep(0)


class Held:
    """Work that goes on until it is let go; the order in which such work began is in `began`."""

    def __init__(self, name: str, began: list[str]) -> None:
        self.name = name
        self.began = began
        self.go = threading.Event()

    def __call__(self) -> str:
        self.began.append(self.name)
        self.go.wait(120)
        return self.name


async def begun(began: list[str], names: list[str]) -> None:
    """Wait until work has begun."""
    while began != names:  # noqa: ASYNC110  a thread tells it
        await asyncio.sleep(0)


async def test_r50_bodies_wait_while_others_take_what_there_is() -> None:
    bound, began = Offload(most=2 * COST, threads=8), list[str]()
    works = [Held(name, began) for name in "abc"]
    tasks = [asyncio.ensure_future(bound.run(LARGE, work)) for work in works]
    await begun(began, ["a", "b"])
    assert bound.used_bytes == 2 * COST
    works[0].go.set()
    assert await tasks[0] == "a"
    await begun(began, ["a", "b", "c"])
    for work in works:
        work.go.set()
    assert await asyncio.gather(*tasks) == ["a", "b", "c"]
    await turns()
    assert (bound.used_bytes, bound.most_used_bytes) == (0, 2 * COST)


async def test_r50_no_more_than_so_many_threads_at_once() -> None:
    bound, began = Offload(threads=1), list[str]()
    works = [Held(name, began) for name in "abc"]
    tasks = [asyncio.ensure_future(bound.run(LARGE, work)) for work in works]
    for count, work in enumerate(works, start=1):
        await begun(began, list("abc"[:count]))
        work.go.set()
    assert await asyncio.gather(*tasks) == ["a", "b", "c"]


async def test_what_is_heavier_than_the_bound_runs_alone_and_is_not_passed() -> None:
    bound, began = Offload(most=COST, threads=8), list[str]()
    first, heavy, last = Held("a", began), Held("heavy", began), Held("c", began)
    tasks = [asyncio.ensure_future(bound.run(size, work)) for size, work in ((LARGE, first), (64 * LARGE, heavy))]
    await begun(began, ["a"])
    tasks.append(asyncio.ensure_future(bound.run(LARGE, last)))
    await turns()
    first.go.set()
    await begun(began, ["a", "heavy"])
    heavy.go.set()
    await begun(began, ["a", "heavy", "c"])
    last.go.set()
    assert await asyncio.gather(*tasks) == ["a", "heavy", "c"]


async def test_who_is_cancelled_while_waiting_holds_nothing() -> None:
    bound, began = Offload(threads=1), list[str]()
    first, last = Held("a", began), Held("c", began)
    running = asyncio.ensure_future(bound.run(LARGE, first))
    await begun(began, ["a"])
    waiting = asyncio.ensure_future(bound.run(LARGE, Held("b", began)))
    behind = asyncio.ensure_future(bound.run(LARGE, last))
    await turns()
    waiting.cancel()
    await turns()
    first.go.set()
    last.go.set()
    assert [*await asyncio.gather(running, behind)] == ["a", "c"]
    assert began == ["a", "c"]
    await turns()
    assert bound.used_bytes == 0


async def test_who_is_cancelled_while_running_holds_its_room_until_the_thread_is_done() -> None:
    bound, began = Offload(threads=1), list[str]()
    first, last = Held("a", began), Held("b", began)
    running = asyncio.ensure_future(bound.run(LARGE, first))
    await begun(began, ["a"])
    running.cancel()
    behind = asyncio.ensure_future(bound.run(LARGE, last))
    await turns()
    assert (began, bound.used_bytes) == (["a"], COST)
    first.go.set()
    last.go.set()
    assert await behind == "b"
    assert running.cancelled()


async def test_who_waits_for_too_long_is_told_to_come_again() -> None:
    bound, began = Offload(threads=1, wait=0.0), list[str]()
    first = Held("a", began)
    running = asyncio.ensure_future(bound.run(LARGE, first))
    await begun(began, ["a"])
    with pytest.raises(FailureError) as caught:
        await bound.run(LARGE, Held("b", began))
    assert caught.value.failure == BUSY
    first.go.set()
    assert await running == "a"
    assert await bound.run(LARGE, partial(int, "7")) == 7


async def test_a_loop_has_one_bound() -> None:
    assert of_loop() is of_loop()


class Unread(tuple[Event, ...]):
    """Many events, at which nobody looks."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Event]:
        raise AssertionError("each event is looked at in the loop")


def test_r51_a_batch_of_many_events_is_weighed_by_their_number() -> None:
    text, long = TextDelta("hello"), TextDelta("x" * LARGE)
    assert weight_of(()) == 0
    assert weight_of((text,) * 3) == 3 * (EVENT_BYTES + 5)
    assert weight_of((long,)) == EVENT_BYTES + LARGE
    count = LARGE // EVENT_BYTES
    assert weight_of(Unread([text] * count)) == LARGE

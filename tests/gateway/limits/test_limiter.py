"""K06-K09: the limits of one process, by a loop whose clock the test pushes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.raw_server import ManualClockLoop, advance, becomes, leakless, turns
from tests.policy.limits.test_admission_queue import most
from xenoglot.errors import FailureError
from xenoglot.gateway.limits.limiter import UNLIMITED, MemoryLimiter
from xenoglot.policy.limits.usage_ledger import Scope, Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.gateway.limits.limiter import Lease

PLACE = Scope("upstream:x", concurrency=1)
MINUTE = Scope("key:a", requests=(Window(2, 60.0),), queue_seconds=100.0)


def limiter() -> MemoryLimiter:
    """Limits by the clock of the running loop."""
    return MemoryLimiter(clock=asyncio.get_running_loop().time)


def come(limits: MemoryLimiter, *scopes: Scope, owner: str = "a", patience: float | None = None) -> asyncio.Task[Lease]:
    return asyncio.ensure_future(limits.enter(scopes, owner=owner, tokens=1, patience=patience))


def states(tasks: Sequence[asyncio.Task[Lease]]) -> str:
    """Who is in (`i`), waits (`w`), or was refused (`r`)."""
    return "".join("w" if not task.done() else "r" if task.exception() else "i" for task in tasks)


def drop(tasks: Sequence[asyncio.Task[Lease]]) -> None:
    for task in tasks:
        if task.done() and task.exception() is None:
            task.result().drop()


def is_idle(limits: MemoryLimiter) -> bool:
    """Whether nobody waits, and nobody holds anything."""
    return (
        not len(limits._room)
        and not limits._futures
        and not any(r.slots_used for r in limits._room.ledger.scopes.values())
    )


@leakless
async def test_k08_a_window_lets_in_whoever_waits_when_it_opens() -> None:
    limits = limiter()
    tasks = [come(limits, MINUTE) for _ in range(5)]
    await turns()
    assert states(tasks) == "iiwww"
    await advance(59.9)
    assert states(tasks) == "iiwww"
    await advance(0.1)
    assert states(tasks) == "iiiiw"
    await advance(40.0)
    failure = tasks[4].exception()
    assert isinstance(failure, FailureError)
    assert (failure.failure.kind, round(failure.failure.retry_after or 0, 6)) == ("rate_limit", 20.0)
    assert limits.measures().refused == {("key", "rate_limit"): 1}
    drop(tasks)
    assert is_idle(limits)


@leakless
async def test_who_waits_for_a_place_and_then_for_a_window_is_called() -> None:
    limits, scope = limiter(), Scope("key:a", requests=(Window(2, 60.0),), concurrency=1, queue_seconds=100.0)
    tasks = [come(limits, scope) for _ in range(3)]
    await turns()
    assert (states(tasks), limits._timer) == ("iww", None)
    tasks[0].result().drop()
    await turns()
    assert states(tasks) == "iiw"
    tasks[1].result().drop()
    assert limits._timer is not None
    assert limits._timer.when() == asyncio.get_running_loop().time() + 60.0
    await advance(60.0)
    assert states(tasks) == "iii"
    drop(tasks)
    assert is_idle(limits)


@leakless
async def test_k09_who_waits_too_long_for_a_place_is_told_to_come_again() -> None:
    limits = limiter()
    tasks = [come(limits, PLACE), come(limits, PLACE), come(limits, PLACE, patience=3.0), come(limits, PLACE)]
    await turns()
    assert limits.measures().waiting == {"upstream": 3}
    await advance(3.0)
    assert states(tasks) == "iwrw"
    tasks[0].result().drop()
    await turns()
    assert states(tasks) == "iirw"
    await advance(27.0)
    assert states(tasks) == "iirr"
    for task in tasks[2:]:
        failure = task.exception()
        assert isinstance(failure, FailureError)
        assert (failure.failure.kind, (failure.failure.retry_after or 0) >= 1.0) == ("overloaded", True)
    drop(tasks)
    assert is_idle(limits)


@leakless
async def test_k09_a_full_queue_refuses_at_once() -> None:
    limits, scope = limiter(), Scope("upstream:x", concurrency=1, queue=2)
    tasks = [come(limits, scope) for _ in range(4)]
    await turns()
    assert states(tasks) == "iwwr"
    other = come(limits, scope, owner="b")
    await turns()
    assert states([*tasks, other]) == "iwrrw"
    for task in (tasks[0], tasks[1], other):
        (await task).drop()
    assert is_idle(limits)


@leakless
async def test_who_does_not_wait_is_refused_at_once() -> None:
    limits = limiter()
    tasks = [come(limits, PLACE, patience=0.0), come(limits, PLACE, patience=0.0)]
    await turns()
    assert states(tasks) == "ir"
    drop(tasks)


@leakless
@pytest.mark.parametrize("count", range(4))
async def test_c04_who_goes_holds_nothing_and_wakes_the_next(count: int) -> None:
    """However the turn of one who goes and its leaving fall together."""
    limits = limiter()
    first, second, third = (come(limits, PLACE) for _ in range(3))
    await turns()
    first.result().drop()
    for _ in range(count):
        await asyncio.sleep(0)
    if second.done():
        second.result().drop()
    else:
        second.cancel()
    await turns()
    assert states([third]) == "i"
    drop([third])
    await asyncio.wait([second])
    assert is_idle(limits)


@leakless
async def test_k09_a_turn_that_comes_with_the_deadline_counts() -> None:
    limits = limiter()
    first, second = come(limits, PLACE), come(limits, PLACE, patience=5.0)
    await turns()
    loop = asyncio.get_running_loop()
    loop.call_at(loop.time() + 5.0, first.result().drop)
    await advance(5.0)
    assert states([second]) == "i"
    drop([second])
    assert is_idle(limits)


@leakless
async def test_k07_what_is_given_back_is_given_back_once() -> None:
    limits, scope = limiter(), Scope("key:a", tokens=(Window(10, 60.0),), concurrency=2)
    lease = await limits.enter([scope], owner="a", tokens=8)
    other = await limits.enter([scope], owner="a", tokens=2)
    await lease.leave(5)
    await lease.leave(0)
    lease.drop(0, asked=False)
    third = come(limits, scope)
    fourth = asyncio.ensure_future(limits.enter([scope], owner="a", tokens=3, patience=0.0))
    await turns()
    assert states([third, fourth]) == "ir"
    other.drop()
    drop([third])
    assert limits._room.ledger.scopes["key:a"].tokens[0].used(limits.clock()) == 8


async def test_nothing_is_done_where_nothing_is_limited() -> None:
    limits = MemoryLimiter()
    lease = await limits.enter([], owner="a", tokens=1)
    await lease.leave(1)
    lease.drop()
    assert (lease is UNLIMITED, limits._room.ledger.scopes) == (True, {})
    await limits.aclose()


@leakless
async def test_a_closed_limiter_leaves_no_timer() -> None:
    limits = limiter()
    tasks = [come(limits, MINUTE) for _ in range(3)]
    await turns()
    await limits.aclose()
    assert limits._timer is None
    tasks[2].cancel()
    await turns()
    drop(tasks[:2])


STORM = st.lists(
    st.tuples(
        st.sampled_from(["come", "come", "come", "leave", "cancel", "wait"]),
        st.integers(0, 20),
        st.sampled_from("aab"),
    ),
    max_size=60,
)
SCOPES = (
    Scope("upstream:x", concurrency=2, queue=5),
    Scope("upstream:y", requests=(Window(3, 4.0),), queue_seconds=6.0),
    Scope("key:a", tokens=(Window(25, 8.0),), concurrency=3),
)


class Storm:
    """Requests that come, leave and are cancelled while time passes; no limit may be exceeded."""

    def __init__(self) -> None:
        self.limits = limiter()
        self.tasks: list[asyncio.Task[None]] = []
        self.gates: list[asyncio.Event] = []
        self.inside = {scope.name: 0 for scope in SCOPES}
        self.begun: list[tuple[float, int]] = []

    def come(self, number: int, owner: str) -> None:
        scopes = [scope for bit, scope in enumerate(SCOPES) if (number + 1) >> bit & 1] or [SCOPES[0]]
        self.gates.append(asyncio.Event())
        self.tasks.append(asyncio.ensure_future(self._request(scopes, number, owner, self.gates[-1])))

    async def _request(self, scopes: list[Scope], number: int, owner: str, gate: asyncio.Event) -> None:
        lease = await self.limits.enter(scopes, owner=owner, tokens=number)
        for scope in scopes:
            self.inside[scope.name] += 1
            assert scope.concurrency is None or self.inside[scope.name] <= scope.concurrency
        self.begun += [(self.limits.clock(), 1)] if SCOPES[1] in scopes else []
        try:
            await gate.wait()
        finally:
            for scope in scopes:
                self.inside[scope.name] -= 1
            if number % 2:
                lease.drop(number // 2)
            else:
                await lease.leave(number // 2)

    async def step(self, what: str, number: int, owner: str) -> None:
        if what == "come":
            self.come(number, owner)
        elif what == "wait":
            await advance(number / 8)
        elif self.tasks and what == "leave":
            self.gates[number % len(self.gates)].set()
        elif self.tasks:
            self.tasks[number % len(self.tasks)].cancel()
        await turns(number % 4)

    async def end(self) -> list[object]:
        """Let everybody leave; gives how it ended for each."""
        for gate in self.gates:
            gate.set()
        await advance(40.0)
        return await asyncio.gather(*self.tasks, return_exceptions=True)


async def storm(steps: list[tuple[str, int, str]]) -> None:
    crowd = Storm()
    for step in steps:
        await crowd.step(*step)
    outcomes = await crowd.end()
    assert [o for o in outcomes if o is not None and not isinstance(o, (FailureError, asyncio.CancelledError))] == []
    assert is_idle(crowd.limits)
    assert most(crowd.begun, SCOPES[1].requests[0]) <= 3
    await becomes(None, lambda: crowd.limits._timer)


@settings(max_examples=80, deadline=None)
@given(STORM)
def test_k10_a_storm_leaves_nothing_behind(steps: list[tuple[str, int, str]]) -> None:
    with asyncio.Runner(loop_factory=ManualClockLoop) as runner:
        runner.run(storm(steps))

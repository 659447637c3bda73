"""The dispatcher against whatever may come: targets that answer, refuse, hang and hold places; clients that leave.

Whatever the order, nothing is held by requests that are over, no retry costs more than the budget, nobody is asked for
a client that left or whose patience is at its end, and what is noted of a request is what happened.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from xenoglot.errors import FailureError, LossError, WireError
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.gateway.config.load import Config
from xenoglot.gateway.config.settings import KeySettings, UpstreamSettings
from xenoglot.gateway.limits.limiter import MemoryLimiter, Scopes
from xenoglot.gateway.observability.request_log import RequestLog
from xenoglot.gateway.routing.dispatch import Dispatch
from xenoglot.gateway.routing.reservation import Demand, Dispatcher, TargetRegistry
from xenoglot.gateway.routing.router import Route, RoutePlan
from xenoglot.model.failure import Failure
from xenoglot.model.response import Usage
from xenoglot.policy.target_health import BreakerSettings, Retry

if TYPE_CHECKING:
    from xenoglot.gateway.routing.reservation import Reservation

RETRY = Retry(attempts=3, budget=0.25, budget_floor=1, wait_limit=5.0)
PATIENCE = 8.0
QUEUE_SECONDS = 4.0
NAMES = ("a", "b", "c")
TURNS = 40
"""Turns of the loop in which everything that is ready has happened."""

FAILURES = (
    Failure(kind="upstream", message="x", cause="connect", not_sent=True),
    Failure(kind="upstream", message="x", cause="closed"),
    Failure(kind="upstream", message="x", cause="credentials"),
    Failure(kind="upstream", message="x", cause="forbidden"),
    Failure(kind="timeout", message="x", cause="timeout"),
    Failure(kind="overloaded", message="x", status=503),
    Failure(kind="rate_limit", message="x", status=429),
    Failure(kind="rate_limit", message="x", status=429, retry_after=0.0),
    Failure(kind="rate_limit", message="x", status=429, retry_after=3.0),
    Failure(kind="rate_limit", message="x", status=429, retry_after=60.0),
    Failure(kind="invalid_request", message="x", status=400),
)
REFUSALS = (LossError(("x",)), WireError("$.x", "no"))
BUGS = (TypeError("x"), RecursionError("x"))


class RequestOutcome:
    """One request: what became of it, and of each try."""

    def __init__(self, record: RequestLog, now: float) -> None:
        self.record = record
        self.began = now
        self.left = False
        self.sent: list[str] = []
        """Who was sent the request, in order."""
        self.hold: Reservation | None = None
        self.task: asyncio.Task[None] | None = None


class DispatchMachine(RuleBasedStateMachine):
    """Requests, each a task, whose tries wait until the machine says how they end."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = 0.0
        self.tries: list[tuple[RequestOutcome, asyncio.Future[object]]] = []
        self.sleeps: list[tuple[float, asyncio.Future[None]]] = []
        self.asked: list[RequestOutcome] = []
        self.counts: Counter[str] = Counter()
        upstream = UpstreamSettings(
            dialect="chat",
            base_url="http://x.invalid",
            key_env="KK",
            retry=RETRY,
            breaker=BreakerSettings(failures=3, open_seconds=2.0),
        )
        limits = LimitSettings(concurrency=2, queue=2, queue_seconds=QUEUE_SECONDS)
        upstreams = {"a": upstream, "b": replace(upstream, limits=limits), "c": replace(upstream, key_env="K")}
        keys = KeySettings(limits=LimitSettings(concurrency=4, queue=1, queue_seconds=0.0))
        config = Config(upstreams=upstreams, keys=keys, secrets=Secrets({"K": "one", "KK": "one two"}))
        self.dispatcher = Dispatcher(
            ward=TargetRegistry(config),
            limiter=MemoryLimiter(clock=lambda: self.now),
            scopes=Scopes(config),
            clock=lambda: self.now,
            chance=lambda: 0.5,
            sleep=self.sleep,
        )
        routes = tuple(Route(backend=name, model="m") for name in NAMES)
        self.plan = RoutePlan(name="m", routes=routes, strategy="ordered", patience=PATIENCE)

    async def sleep(self, seconds: float) -> None:
        """Wait until the machine's clock is there."""
        waits: asyncio.Future[None] = self.loop.create_future()
        self.sleeps.append((self.now + seconds, waits))
        await waits

    def settle(self) -> None:
        """Let everything that is ready happen."""

        async def turns() -> None:
            for _ in range(TURNS):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())

    @rule(count=st.integers(1, 3), start=st.integers(0, len(NAMES) - 1))
    def ask(self, count: int, start: int) -> None:
        """Requests come, some of which may go to fewer targets."""
        for _ in range(count):
            record = RequestLog(request_id="req_1", method="POST", started=0.0, clock=lambda: 0.0)
            one = RequestOutcome(record, self.now)
            one.task = self.loop.create_task(self.serve(one, self.plan.routes[start:]))
            self.asked.append(one)
            self.counts["requests"] += 1
        self.settle()

    async def serve(self, one: RequestOutcome, routes: tuple[Route, ...]) -> None:
        """Have a request answered."""

        async def try_it(route: Route, _key: int) -> str:
            assert not one.left
            assert not one.sent or self.now <= one.began + PATIENCE
            one.sent.append(route.backend)
            self.counts["tries"] += 1
            ends: asyncio.Future[object] = self.loop.create_future()
            self.tries.append((one, ends))
            try:
                await ends
            except (LossError, WireError):
                one.sent.pop()
                self.counts["tries"] -= 1
                raise
            return route.backend

        dispatch = Dispatch(self.dispatcher, Demand(self.plan, one.record), try_it)
        try:
            answer, one.hold = await dispatch.run(routes)
        except (FailureError, LossError, WireError, TypeError, RecursionError):
            return
        assert answer == one.sent[-1]

    def end(self, number: int, how: Exception | None) -> None:
        """End a try that is under way, if there is one."""
        under_way = [(one, ends) for one, ends in self.tries if not ends.done()]
        if under_way:
            _, ends = under_way[number % len(under_way)]
            if how is None:
                ends.set_result(None)
            else:
                ends.set_exception(how)
            self.settle()

    @rule(number=st.integers(0, 9))
    def answer(self, number: int) -> None:
        """A target begins to answer."""
        self.end(number, None)

    @rule(number=st.integers(0, 9), failure=st.sampled_from(FAILURES))
    def fail(self, number: int, failure: Failure) -> None:
        """A target fails."""
        self.end(number, FailureError(failure))

    @rule(failure=st.sampled_from(FAILURES), times=st.integers(1, 4))
    def break_down(self, failure: Failure, times: int) -> None:
        """All targets fail, and fail again."""
        for _ in range(times):
            for _ in [ends for _, ends in self.tries if not ends.done()]:
                self.end(0, FailureError(failure))

    @rule(number=st.integers(0, 9), error=st.sampled_from((*REFUSALS, *BUGS)))
    def refuse(self, number: int, error: Exception) -> None:
        """It cannot be asked, or something here is broken."""
        self.end(number, error)

    @rule(number=st.integers(0, 9), failure=st.sampled_from((None, "upstream", "cancelled", "rate_limit")))
    def finish(self, number: int, failure: str | None) -> None:
        """An answer is over, and its reader says so twice."""
        begun = [one for one in self.asked if one.hold is not None]
        if begun:
            one = begun[number % len(begun)]
            one.record.failure = failure  # type: ignore[assignment]  # words of theirs
            one.record.finish = None if failure else "stop"
            one.record.used(Usage(input_tokens=3, output_tokens=4))
            hold, one.hold = one.hold, None
            assert hold is not None
            hold.over()
            hold.over()
            hold.drop()
            self.settle()

    @rule(number=st.integers(0, 9))
    def leave(self, number: int) -> None:
        """A client leaves."""
        waiting = [one for one in self.asked if one.task is not None and not one.task.done()]
        if waiting:
            one = waiting[number % len(waiting)]
            assert one.task is not None
            one.left = True
            one.task.cancel()
            self.settle()
            assert one.task.cancelled()

    @rule(seconds=st.sampled_from((0.1, 1.0, 3.0, 10.0)))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds
        for until, waits in self.sleeps:
            if until <= self.now and not waits.done():
                waits.set_result(None)
        self.dispatcher.limiter._advance()  # type: ignore[attr-defined]  # its timer runs by another clock
        self.settle()

    @invariant()
    def what_is_held_is_held_by_somebody(self) -> None:
        """Who is asked, and by how many, is no more than who is under way."""
        under_way = [one for one in self.asked if one.hold is not None or (one.task and not one.task.done())]
        ward = self.dispatcher.ward
        for health in map(ward.of, self.plan.routes):
            assert sum(health.busy) == health.running >= 0
            assert min(health.busy) >= 0
            assert health.breaker is not None
            assert len(health.breaker._probes) <= health.running
        assert sum(ward.of(route).running for route in self.plan.routes) <= len(under_way)
        rooms = self.dispatcher.limiter._room.ledger.scopes  # type: ignore[attr-defined]
        held = {name: room.slots_used for name, room in rooms.items()}
        assert held.get("upstream:b", 0) <= min(2, ward.of(self.plan.routes[1]).running)
        assert held.get("key:", 0) <= min(4, len(under_way))

    @invariant()
    def an_outage_is_no_storm(self) -> None:
        """K01: tries are bounded by the budget (the window is longer than a run)."""
        first, further = self.counts["requests"], self.counts["tries"]
        assert further <= (1 + RETRY.budget) * first + RETRY.budget_floor

    @invariant()
    def what_is_noted_is_what_happened(self) -> None:
        """Each record counts the tries, and names who was asked last."""
        for one in self.asked:
            assert one.task is not None
            if one.task.done():
                assert one.record.tries == len(one.sent)
                assert one.record.backend == (one.sent[-1] if one.sent else one.record.backend)

    def teardown(self) -> None:
        """Everybody leaves; then nothing is held, and every target is asked again when it has had its time."""
        for one in self.asked:
            if one.hold is not None:
                one.hold.over()
            if one.task is not None:
                one.task.cancel()
        self.settle()
        self.asked.clear()
        self.what_is_held_is_held_by_somebody()
        for health in map(self.dispatcher.ward.of, self.plan.routes):
            assert health.breaker is not None
            assert health.breaker.allows(self.now + 10_000.0)
        self.loop.close()


def test_k01_k03_r61_whatever_comes_nothing_is_left_and_no_storm_breaks() -> None:
    run_state_machine_as_test(DispatchMachine, settings=settings(max_examples=200, stateful_step_count=40))

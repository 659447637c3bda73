"""Dispatch of one request: which target it is sent to, which one next, and when to give up.

Theory of operation. The targets of a plan are put in order once (`policy.target_order`). Each is tried in turn until
one begins to answer; nothing has gone to the client by then, so a failed attempt may be retried
(`policy.failure_policy`). As long as there is another target, asking it is better than waiting for this one; at the
last one the wait between tries doubles, with jitter, and no such wait holds anything of the target. What all requests
may cost in further tries is bounded (`policy.target_health.Budget`), so that an outage does not become a storm.

What a request holds while it is in progress (its place, its tokens, its key, its probe of a breaker) is a
`Reservation`, released once: by the reader of the answer, when it is over.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from msgspec.structs import replace

from xenoglot.errors import FailureError, LossError, WireError
from xenoglot.gateway.routing.reservation import Reservation
from xenoglot.model.failure import Failure
from xenoglot.policy.affinity import prefix_of, session_of
from xenoglot.policy.capabilities import matches_when, needs_of
from xenoglot.policy.failure_policy import AT_CAPACITY, FailureAction, judge, of_clients_key
from xenoglot.policy.target_health import delay
from xenoglot.policy.target_order import TargetCandidate, order

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from xenoglot.gateway.routing.reservation import Demand, Dispatcher
    from xenoglot.gateway.routing.router import Route, RoutePlan
    from xenoglot.model.request import Request
    from xenoglot.policy.capabilities import Need
    from xenoglot.policy.target_health import RetryBudget

Answered = TypeVar("Answered")

TOO_LATE: Final = "not tried: the time for further tries is over (`retry_deadline_seconds`)"
NO_BUDGET: Final = "not tried: too many requests of the last minute had further tries (`retry.budget`)"

_SPENT = frozenset({"upstream", "internal", "timeout", "overloaded"})
_OURS = frozenset({"credentials", "forbidden"})


class Dispatch(Generic[Answered]):
    """One request and the targets that may answer it.

    `ask` asks one of them, with one of its keys, and gives the answer once that has begun.
    """

    def __init__(
        self, dispatcher: Dispatcher, demand: Demand, ask: Callable[[Route, int], Awaitable[Answered]]
    ) -> None:
        self._dispatcher = dispatcher
        self._demand = demand
        self._plan = demand.plan
        self._ask = ask
        self._record = demand.record
        self._began = dispatcher.clock()
        self._last: FailureError | None = None
        self._tries = 0
        self._spent = False
        """Whether there would have been more tries, and they could not be afforded."""
        self._asked: Route | None = None
        """The target of the last attempt."""
        self._begun: Callable[[], Awaitable[Answered]] | None = None
        """What came of a first try that was begun before."""

    async def go_on_from(
        self, routes: Sequence[Route], hold: Reservation, begun: Callable[[], Awaitable[Answered]], waited: float
    ) -> tuple[Answered, Reservation]:
        """Do what `run` does after `begin` gave `hold`; `begun` gives what the first of `routes` has answered.

        It has been `waited` for so many seconds.

        Raises:
            FailureError: as `run` does. `LossError` and `WireError` alike.
        """
        self._begun = begun
        self._began -= waited
        self._tries = self._record.tries
        try:
            return await self._first(routes, hold), hold
        except BaseException:
            hold.drop()
            raise

    async def run(self, routes: Sequence[Route]) -> tuple[Answered, Reservation]:
        """Ask `routes` one after another; return the first answer, and what is to be given back when it is over.

        Raises:
            FailureError: none of them answers; it is the failure of the last.
            LossError: none of them can express the request. `WireError` alike.
        """
        dispatcher = self._dispatcher
        hold = Reservation(dispatcher, self._record)
        try:
            if scopes := dispatcher.scopes.of_request(self._plan.name, self._record.client):
                await hold.enter(scopes, self._demand.owner, self._demand.tokens())
            self._budget.earn(dispatcher.clock())
            answer = await self._first(routes, hold)
        except BaseException:
            hold.drop()
            raise
        return answer, hold

    async def go_on(self, routes: Sequence[Route], hold: Reservation, failure: Failure) -> Answered:
        """Ask `routes` for the rest of an answer that broke off with `failure`; `hold` is what it was held by.

        Raises:
            FailureError: none of them answers; or it was the request that failed, and would fail again.
        """
        verdict = self._judged(failure, hold)
        hold.failed(failure, verdict, hold.used)
        if self._asked is not None:
            self._record.try_failed(self._asked, failure)
        self._last = FailureError(failure)
        if not verdict.retry_other:
            raise self._last
        self._began = self._dispatcher.clock()
        return await self._first(routes, hold)

    async def _first(self, routes: Sequence[Route], hold: Reservation) -> Answered:
        for route in routes:
            answer = await self._target(route, hold, last=route is routes[-1])
            if answer is not None:
                return answer
        raise self._given_up()

    async def _target(self, route: Route, hold: Reservation, *, last: bool) -> Answered | None:
        """Send the request to one target, with retries; return `None` where another target is next.

        Raises:
            FailureError: no target is left.
            LossError: it cannot express the request, and there is no other. `WireError` alike.
        """
        for attempt in count(1):
            if self._tries and self._begun is None and not self._may_try(route, self._budget.affords):
                break
            try:
                return await self._try(route, hold, last=last)
            except (LossError, WireError):
                self._not_asked(hold)
                if last and self._last is None:
                    raise
                return None
            except FailureError as error:
                self._last = error
                self._asked = route if hold.asked else self._asked
                verdict = self._judged(error.failure, hold)
                self._record.try_failed(route, error.failure)
                hold.failed(error.failure, verdict)
                wait = self._wait(error.failure, verdict, attempt, hold, last=last)
            if wait is None and verdict.retry_other and not last:
                return None
            if wait is None:
                break
            if wait > 0:
                await self._dispatcher.sleep(wait)
        raise self._given_up()

    async def _try(self, route: Route, hold: Reservation, *, last: bool) -> Answered:
        """Ask one target once.

        Raises:
            FailureError: it did not begin to answer, or may not be called.
            LossError: it cannot express the request. `WireError` alike.
        """
        dispatcher, begun = self._dispatcher, self._begun
        if begun is not None:
            self._begun = None
            answer = await begun()
            hold.began(dispatcher.clock() - self._began)
            self._asked = route
            return answer
        hold.take(route, dispatcher.clock(), self._demand.group, last=last)
        if scopes := dispatcher.scopes.of_upstream(route.backend):
            patience = self._left if self._tries else None  # no further try begins later
            tokens = self._demand.tokens()
            await hold.enter_target(scopes, self._demand.owner, tokens, patience=patience if last else 0.0)
        if self._last is not None and self._tries and not self._may_try(route, self._budget.spend):
            raise self._last
        self._tries += 1
        self._record.tried(route)
        hold.asked = True
        started = dispatcher.clock()
        answer = await self._ask(route, hold.key)
        hold.began(dispatcher.clock() - started)
        self._asked = route
        return answer

    def _not_asked(self, hold: Reservation) -> None:
        """Take back what was noted of a try: the request could not be written for that target, so nothing was sent."""
        hold.release(0, asked=False)
        self._tries -= 1
        self._record.not_sent(self._asked)

    def _wait(
        self, failure: Failure, verdict: FailureAction, attempt: int, hold: Reservation, *, last: bool
    ) -> float | None:
        """Return the seconds until the same target is retried, `None` where it is not.

        It is tried at once with another key; else, as long as there are other targets, these are tried instead.
        """
        if not verdict.retry_same or attempt >= hold.retry.attempts:
            return None
        keys = verdict.blame == "key"
        if keys and hold.has_other_key:
            return 0.0
        if (verdict.retry_other and not last) or (keys and failure.kind != "rate_limit"):
            return None  # U40: no wait makes a key better that was refused
        asked = max(hold.rest, failure.retry_after or 0.0) if keys else failure.retry_after
        wait = delay(hold.retry, attempt, asked, self._dispatcher.chance())
        return None if wait is None or wait > self._left else wait

    @property
    def _left(self) -> float:
        """How many seconds are left in which a further try may begin; it may be too late."""
        return self._plan.patience - (self._dispatcher.clock() - self._began)

    @property
    def _budget(self) -> RetryBudget:
        return self._dispatcher.ward.budget(self._plan)

    def _may_try(self, route: Route, budget: Callable[[float], bool]) -> bool:
        """Whether there is time for one more try, and `budget` allows it; the log has the reason."""
        late = self._left < 0
        self._spent = late or not budget(self._dispatcher.clock())
        if self._spent:
            self._record.not_tried(route, TOO_LATE if late else NO_BUDGET)
        return not self._spent

    def _judged(self, failure: Failure, hold: Reservation) -> FailureAction:
        """Return what a failure means; where the target was not even called, the cause is its capacity."""
        if not hold.asked:
            return AT_CAPACITY
        action = judge(failure, hold.retry, fallback_on=self._plan.fallback_on)
        return of_clients_key(action, failure) if hold.target is not None and hold.target.clients_key else action

    def _given_up(self) -> FailureError:
        """Return the failure that the client receives: the last one. After our own retries it need not retry.

        Nor need it where the upstream refuses our key: the gateway's operator must act first.
        """
        error = self._last
        if error is None:
            return FailureError(
                Failure(kind="overloaded", message="overloaded: no target is available now", retry_after=1.0)
            )
        failure = error.failure
        spent = self._tries > 1 or (self._tries == 1 and self._spent)
        if (spent or failure.cause in _OURS) and failure.kind in _SPENT and failure.retry_after is None:
            failure = replace(failure, non_retryable=True)
        return FailureError(failure, error.limits)


def begin(dispatcher: Dispatcher, demand: Demand, route: Route, *, last: bool) -> Reservation | None:
    """Reserve all that a call of the target of `route` needs, and note the attempt.

    `None`, and nothing is held, where that would be a wait, or is refused: `Dispatch.run` then begins with it again.
    """
    plan, record = demand.plan, demand.record
    owner, now, scopes = record.client.owner, dispatcher.clock(), dispatcher.scopes
    hold = Reservation(dispatcher, record)
    own = scopes.of_request(plan.name, record.client)
    if own and not hold.enter_at_once(own, owner, demand.tokens()):
        return None
    theirs = scopes.of_upstream(route.backend)
    try:
        hold.take(route, now, demand.group, last=last)
        if theirs and not hold.enter_target_at_once(theirs, owner, demand.tokens()):
            hold.drop()
            return None
    except FailureError:
        hold.drop()
        return None
    dispatcher.ward.budget(plan).earn(now)
    record.tried(route)
    hold.asked = True
    return hold


def fitting(
    plan: RoutePlan, request: Request, size: Callable[[], int], lacks: Callable[[Route], frozenset[Need]]
) -> Sequence[Route]:
    """Return the routes of `plan` that are meant for `request`, whose prompt is of this `size`, and can answer it.

    `lacks` gives what a route's target is known not to support. Where no route is left, all are as good.
    """
    if len(plan.routes) == 1:
        return plan.routes
    tokens = size() if any(route.when.counts for route in plan.routes) else 0
    meant = [route for route in plan.routes if matches_when(route.when, request, tokens)] or plan.routes
    needs = needs_of(request)
    return [route for route in meant if needs.isdisjoint(lacks(route))] or meant


def ordered(
    dispatcher: Dispatcher, plan: RoutePlan, routes: Sequence[Route], group: str | None = None
) -> Sequence[Route]:
    """Return `routes` in the order in which they are to be tried."""
    if len(routes) == 1:
        return routes
    candidates = [
        TargetCandidate(index=index, name=route.name, weight=route.weight, tier=route.tier)
        for index, route in enumerate(routes)
    ]
    loads = {index: dispatcher.ward.of(route).load for index, route in enumerate(routes)}
    return [routes[index] for index in order(candidates, plan.strategy, loads, dispatcher.chance(), group)]


def group_of(plan: RoutePlan, request: Request, headers: Sequence[tuple[str, str]], keys: int) -> str | None:
    """Return what keeps requests together at one target and key, where there is a choice to be made."""
    if plan.affinity == "none" or (len(plan.routes) == 1 and keys <= 1):
        return None
    session = session_of(request, headers)
    return prefix_of(request) if session is None and plan.affinity == "prefix" else session

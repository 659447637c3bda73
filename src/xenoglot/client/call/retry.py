"""Retries of a call until its answer starts: by the retry policy, with a wait before each."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from itertools import count
from typing import TypeVar

from msgspec import Struct

from xenoglot.errors import FailureError, WireError, failure_error
from xenoglot.model.failure import Failure
from xenoglot.policy.failure_policy import judge
from xenoglot.policy.target_health import Retry, RetryBudget, delay

T = TypeVar("T")

LATE = "time-out: no complete answer within the `timeout` of the call; raise it if the model is slow"

USUAL = Retry(attempts=3)
"""Default retries of a client to a server."""
ONCE = Retry(attempts=1)
"""No retries, for backends in this process, which have their own policy."""


class ClientEnvironment(Struct, frozen=True, kw_only=True):
    """External inputs of a client: a monotonic clock in seconds, random numbers from 0 to 1, and sleep."""

    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep


class RetryLoop:
    """Attempts calls by the policy `retry`. All calls of a client share one retry budget."""

    def __init__(self, retry: Retry, world: ClientEnvironment) -> None:
        self._retry = retry
        self._environment = world
        self._budget = RetryBudget(self._retry.budget, self._retry.budget_floor)

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the first result of `attempt`, retrying its failures.

        Raises:
            FailureError: it never does; one of the classes of `errors`.
        """
        self._budget.earn(self._environment.clock())
        for number in count(1):
            try:
                return await attempt()
            except WireError as error:
                raise invalid_request_error(error) from None
            except FailureError as error:
                wait = self._wait(error.failure, number)
                if wait is None:
                    raise typed_error(error) from error.__cause__
            await self.sleep(wait)
        raise AssertionError  # `count` never ends

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._environment.sleep(seconds)

    def wait_after_truncation(self, failure: Failure, number: int) -> float | None:
        """Return the seconds until an answer that was truncated `number` times is requested again, or `None`."""
        return self._wait(failure, number) if self._retry.resend else None

    def _wait(self, failure: Failure, number: int) -> float | None:
        """Return the seconds until the next attempt after `number` attempts; `None` for no retry."""
        verdict = judge(failure, self._retry)
        key = verdict.blame == "key" and failure.kind != "rate_limit"  # no wait makes a key better that was refused
        if not verdict.retry_same or key or number >= self._retry.attempts:
            return None
        wait = delay(self._retry, number, failure.retry_after, self._environment.chance())
        return wait if wait is not None and self._budget.spend(self._environment.clock()) else None


def typed_error(error: FailureError) -> FailureError:
    """Return the error as the class of its failure."""
    return failure_error(error.failure, error.limits) if type(error) is FailureError else error


@contextmanager
def invalid_request_errors() -> Generator[None]:
    """Convert a `WireError` about a request. Raises `InvalidRequestError` instead."""
    try:
        yield
    except WireError as error:
        raise invalid_request_error(error) from None


def invalid_request_error(error: WireError) -> FailureError:
    """Return the error of a request that is not valid; it names the field."""
    return failure_error(Failure(kind="invalid_request", message=str(error), param=error.path))


def deadline_after(seconds: float | None) -> float | None:
    """Return the time on the event loop's clock after so many seconds."""
    return None if seconds is None else asyncio.get_running_loop().time() + seconds


async def wait_until(until: float | None, work: Awaitable[T]) -> T:
    """Return the result of `work`, if it ends before the time `until`.

    Raises:
        DeadlineError: it gave nothing by then.
    """
    if until is None:
        return await work
    scope = asyncio.timeout_at(until)
    try:
        async with scope:
            return await work
    except TimeoutError as error:
        if not scope.expired():
            raise
        late = error.with_traceback(None)
    raise failure_error(
        Failure(kind="timeout", message="the answer did not come in time", cause="timeout", operator_message=LATE)
    ) from late

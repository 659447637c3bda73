"""Admission queue of the embedded model: limits concurrent requests and the tokens that they reserve.

All running requests share the context. If their sum exceeds it, the runtime fails all of them at once. A request is
therefore admitted only when its whole prompt and its longest answer fit. The queue is first in, first out: a small
request does not overtake a large one that waits for memory. Its length and its waiting time are limited. A rejected
request gets a retry delay, estimated from the recent pace of the queue.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from xenoglot.engine.errors import queue_full

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_LINE: Final = 64
LONGEST_WAIT_SECONDS: Final = 300.0
LINGER_SECONDS: Final = 2.0
"""How long the runtime may continue a cancelled request, at worst (it is reading a prompt)."""

USUAL_RUN_SECONDS: Final = 5.0
"""How long a request is taken to run before any has: an answer of a few hundred tokens on two cores."""

NEWS: Final = 0.2
"""How much the latest request counts in the mean of how long they run."""

RETRY_SECONDS: Final = (1.0, 60.0)
"""The shortest and the longest `retry-after`, because clients sleep as long as requested."""


class QueueCounts(Struct, frozen=True, kw_only=True):
    """Counters of the queue: running, waiting and rejected requests."""

    running: int
    waiting: int
    refused: int


class Ticket:
    """A reservation of a slot and tokens for one request; releasing it twice has no effect."""

    def __init__(self, admission: Admission, slots: int, tokens: int) -> None:
        self._admission = admission
        self.slots = slots
        self.tokens = tokens
        self.since = 0.0
        self._held = True

    def release(self) -> None:
        """Release the reservation: the runtime has finished the request."""
        if self._held:
            self._held = False
            self._admission.take_back(self)

    def release_soon(self) -> None:
        """Release the reservation once the runtime must have noticed the disconnect."""
        if self._held:
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self.release)


class Admission:
    """Admits requests to `slots` slots that share a number of tokens.

    At most `longest_line` wait, each at most `longest_wait` seconds of `clock`'s.
    """

    def __init__(
        self,
        slots: int,
        longest_line: int = LONGEST_LINE,
        longest_wait: float = LONGEST_WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slots = slots
        self._longest_line = longest_line
        self._longest_wait = longest_wait
        self._clock = clock
        self._used_slots = 0
        self._used_tokens = 0
        self._running = 0
        self._refused = 0
        self._run_seconds = USUAL_RUN_SECONDS
        self._line: deque[tuple[Ticket, int, asyncio.Future[None]]] = deque()

    @property
    def queue(self) -> QueueCounts:
        """The current counters of the queue."""
        return QueueCounts(running=self._running, waiting=len(self._line), refused=self._refused)

    async def enter(self, slots: int, tokens: int, capacity: int, *, again: bool = False) -> Ticket:
        """Wait for admission; `tokens` of `capacity` and a slot of `slots` are reserved until the ticket is released.

        A request that was admitted before and continues (`again`) waits at the end of the queue, however long that is.

        Raises:
            FailureError: the queue is full, or the request has waited too long.
        """
        ticket = Ticket(self, slots, tokens)
        if not self._line and self._fits(ticket, capacity):
            self._take(ticket)
            return ticket
        if len(self._line) >= self._longest_line and not again:
            self._refused += 1
            raise queue_full(self.patience())
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (ticket, capacity, turn)
        self._line.append(place)
        try:
            async with asyncio.timeout(self._longest_wait):
                await turn
        except TimeoutError:
            self._give_up(place)
            self._refused += 1
            raise queue_full(self.patience()) from None
        except asyncio.CancelledError:
            self._give_up(place)
            raise
        return ticket

    def take_back(self, ticket: Ticket) -> None:
        """Release what `ticket` reserved, and admit the next requests that fit."""
        self._used_slots -= ticket.slots
        self._used_tokens -= ticket.tokens
        self._running -= 1
        self._run_seconds += NEWS * (self._clock() - ticket.since - self._run_seconds)
        self._call()

    def patience(self) -> float:
        """Return the estimated seconds until a request that arrives now is admitted, at the recent pace."""
        least, most = RETRY_SECONDS
        pace = self._run_seconds / max(self._running, 1)
        return min(most, max(least, pace * len(self._line)))

    def _give_up(self, place: tuple[Ticket, int, asyncio.Future[None]]) -> None:
        """Leave the line."""
        ticket, _, turn = place
        if turn.done() and not turn.cancelled():
            ticket.release()  # its turn came in the same moment
        elif place in self._line:  # or else it was called, when it had just gone
            self._line.remove(place)
            self._call()  # it may have been the one that the others waited behind

    def _fits(self, ticket: Ticket, capacity: int) -> bool:
        """Whether there is capacity; a lone request always fits: its size was checked against the context."""
        if not self._used_slots:
            return True
        return self._used_slots + ticket.slots <= self._slots and self._used_tokens + ticket.tokens <= capacity

    def _take(self, ticket: Ticket) -> None:
        self._used_slots += ticket.slots
        self._used_tokens += ticket.tokens
        self._running += 1
        ticket.since = self._clock()

    def _call(self) -> None:
        while self._line and self._fits(*self._line[0][:2]):
            ticket, _, turn = self._line.popleft()
            if not turn.done():
                self._take(ticket)
                turn.set_result(None)

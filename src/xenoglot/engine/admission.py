"""Who may run: as many requests as the memory of the runtime holds, the others in the order in which they came.

The requests that run share the context. Where their sum outgrows it, the runtime fails all of them at once; so none is
let in before there is room for its whole prompt and its longest answer. The line is fair: a small request does not
overtake a large one that waits for room.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from xenoglot.engine.failures import CROWDED
from xenoglot.errors import FailureError

LONGEST_LINE: Final = 256
LINGER_SECONDS: Final = 2.0
"""How long the runtime may go on with a request that was broken off, at worst (it is reading a prompt)."""


class Ticket:
    """The right to run, for one request; give it back once, or more often."""

    def __init__(self, admission: Admission, slots: int, tokens: int) -> None:
        self._admission = admission
        self.slots = slots
        self.tokens = tokens
        self._held = True

    def release(self) -> None:
        """Give it back: the runtime is done with the request."""
        if self._held:
            self._held = False
            self._admission.take_back(self)

    def release_soon(self) -> None:
        """Give it back as soon as the runtime must have noticed that nobody listens any more."""
        if self._held:
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self.release)


class Admission:
    """The line in front of `slots` places that share `tokens`."""

    def __init__(self, slots: int, longest_line: int = LONGEST_LINE) -> None:
        self._slots = slots
        self._longest_line = longest_line
        self._used_slots = 0
        self._used_tokens = 0
        self._line: deque[tuple[Ticket, int, asyncio.Future[None]]] = deque()

    async def enter(self, slots: int, tokens: int, capacity: int) -> Ticket:
        """Wait for one's turn; `tokens` of `capacity` and `slots` are held until the ticket is given back.

        Raises:
            FailureError: too many wait already.
        """
        ticket = Ticket(self, slots, tokens)
        if not self._line and self._fits(ticket, capacity):
            self._take(ticket)
            return ticket
        if len(self._line) >= self._longest_line:
            raise FailureError(CROWDED)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (ticket, capacity, turn)
        self._line.append(place)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                ticket.release()  # its turn came in the same moment
            else:
                self._line.remove(place)
                self._call()  # it may have been the one that the others waited behind
            raise
        return ticket

    def take_back(self, ticket: Ticket) -> None:
        """Free what `ticket` held, and let in who fits now."""
        self._used_slots -= ticket.slots
        self._used_tokens -= ticket.tokens
        self._call()

    def _fits(self, ticket: Ticket, capacity: int) -> bool:
        """Whether there is room; a lone request always has it: its size was checked against the whole context."""
        if not self._used_slots:
            return True
        return self._used_slots + ticket.slots <= self._slots and self._used_tokens + ticket.tokens <= capacity

    def _take(self, ticket: Ticket) -> None:
        self._used_slots += ticket.slots
        self._used_tokens += ticket.tokens

    def _call(self) -> None:
        while self._line and self._fits(*self._line[0][:2]):
            ticket, _, turn = self._line.popleft()
            if not turn.done():
                self._take(ticket)
                turn.set_result(None)

"""How fast a batch is asked: so many lines at once, so many a minute, and fewer while the server says it is too much.

Theory of operation. What may be asked at once grows by one with each round of answers, up to what was wished, and is
halved when the server turns a line away for its number (additive increase, multiplicative decrease, as TCP's congestion
window: RFC 5681 section 3.1). Of lines that were under way together the first that is turned away halves it, the others
tell nothing new. Where the server says when to come again, no line is asked before that.

Time is an argument, in seconds of a clock that only goes forward.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from xenoglot.policy.limits.sliding_window import Window, WindowEntry, WindowUsage

MINUTE = 60.0


class Ticket(NamedTuple):
    """A line under way: since when, and what it took of the tokens that may be used in a minute."""

    started_at: float
    tokens: int
    entry: WindowEntry | None


class RateControl:
    """Says when the next line may be asked."""

    def __init__(
        self, concurrency: int, *, requests_per_minute: int | None = None, tokens_per_minute: int | None = None
    ) -> None:
        self.limit = float(concurrency)
        """How many lines may be under way now."""
        self.in_flight = 0
        self._most = float(concurrency)
        self._requests = _log(requests_per_minute)
        self._tokens = _log(tokens_per_minute)
        self._halved = -inf
        self._paused_until = -inf

    def wait(self, now: float, tokens: int) -> float:
        """Return in how many seconds a line of `tokens` may be asked, 0 for now; `inf`: not before another ends."""
        if self.in_flight >= int(self.limit):
            return inf
        at = max(now, self._paused_until)
        if self._requests is not None:
            at = max(at, self._requests.free_at(now, 1))
        if self._tokens is not None:
            at = max(at, self._tokens.free_at(now, self._bounded(tokens)))
        return at - now

    def begin(self, now: float, tokens: int) -> Ticket:
        """Note that a line is asked."""
        self.in_flight += 1
        if self._requests is not None:
            self._requests.add(now, 1)
        if self._tokens is None:
            return Ticket(now, 0, None)
        tokens = self._bounded(tokens)
        return Ticket(now, tokens, self._tokens.add(now, tokens))

    def end(self, now: float, ticket: Ticket, used: int | None = None) -> None:
        """Note that it is over, and how many tokens it has `used`, where that is known."""
        self.in_flight -= 1
        if self._tokens is None or ticket.entry is None or used is None:
            return
        if used < ticket.tokens:
            self._tokens.take_back(ticket.entry, ticket.tokens - used)
        else:
            self._tokens.add(now, used - ticket.tokens)

    def on_success(self) -> None:
        """Note that a line was answered."""
        self.limit = min(self._most, self.limit + 1 / self.limit)

    def on_overload(self, now: float, ticket: Ticket, retry_after: float = 0.0) -> None:
        """Note that a line was turned away because there are too many, for `retry_after` seconds if that was said."""
        self._paused_until = max(self._paused_until, now + retry_after)
        if ticket.started_at > self._halved:
            self._halved = now
            self.limit = max(1.0, self.limit / 2)

    def _bounded(self, tokens: int) -> int:
        """Return no more than fits into a minute: a line that needs more has to have the whole of one."""
        return tokens if self._tokens is None else min(tokens, self._tokens.window.amount)


def _log(amount: int | None) -> WindowUsage | None:
    return None if amount is None else WindowUsage(Window(amount, MINUTE))

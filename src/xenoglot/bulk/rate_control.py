"""Rate control of a batch: concurrency and rate limits, reduced while the server is overloaded.

Theory of operation. The concurrency limit grows by one with each round of answers, up to the configured value, and is
halved when the server rejects a line for overload (additive increase, multiplicative decrease, as TCP's congestion
window: RFC 5681 section 3.1). Of lines in flight together the first rejection halves it, the others are no new
information. After a `retry-after`, no line is sent before that time.

Time is an argument, in seconds of a monotonic clock.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from xenoglot.policy.limits.usage_ledger import Window, WindowEntry, WindowUsage

MINUTE = 60.0


class Ticket(NamedTuple):
    """A line in flight: its start, and the tokens it takes of the limit per minute."""

    started_at: float
    tokens: int
    entry: WindowEntry | None


class RateControl:
    """Decides when the next line may be sent."""

    def __init__(
        self, concurrency: int, *, requests_per_minute: int | None = None, tokens_per_minute: int | None = None
    ) -> None:
        self.limit = float(concurrency)
        """Current limit of lines in flight."""
        self.in_flight = 0
        self._most = float(concurrency)
        self._requests = _log(requests_per_minute)
        self._tokens = _log(tokens_per_minute)
        self._halved = -inf
        self._paused_until = -inf

    def wait(self, now: float, tokens: int) -> float:
        """Return the seconds until a line of `tokens` may be sent, 0 for now; `inf`: after another line ends."""
        if self.in_flight >= int(self.limit):
            return inf
        at = max(now, self._paused_until)
        if self._requests is not None:
            at = max(at, self._requests.free_at(now, 1))
        if self._tokens is not None:
            at = max(at, self._tokens.free_at(now, self._bounded(tokens)))
        return at - now

    def begin(self, now: float, tokens: int) -> Ticket:
        """Record that a line is sent."""
        self.in_flight += 1
        if self._requests is not None:
            self._requests.add(now, 1)
        if self._tokens is None:
            return Ticket(now, 0, None)
        tokens = self._bounded(tokens)
        return Ticket(now, tokens, self._tokens.add(now, tokens))

    def end(self, now: float, ticket: Ticket, used: int | None = None) -> None:
        """Record that a line ended, and the tokens it `used`, if known."""
        self.in_flight -= 1
        if self._tokens is None or ticket.entry is None or used is None:
            return
        if used < ticket.tokens:
            self._tokens.take_back(ticket.entry, ticket.tokens - used)
        else:
            self._tokens.add(now, used - ticket.tokens)

    def on_success(self) -> None:
        """Record that a line was answered."""
        self.limit = min(self._most, self.limit + 1 / self.limit)

    def on_overload(self, now: float, ticket: Ticket, retry_after: float = 0.0) -> None:
        """Record that a line was rejected for overload; no line for `retry_after` seconds, if set."""
        self._paused_until = max(self._paused_until, now + retry_after)
        if ticket.started_at > self._halved:
            self._halved = now
            self.limit = max(1.0, self.limit / 2)

    def _bounded(self, tokens: int) -> int:
        """Return the tokens, at most those of a minute: a larger line needs a whole minute's limit."""
        return tokens if self._tokens is None else min(tokens, self._tokens.window.amount)


def _log(amount: int | None) -> WindowUsage | None:
    return None if amount is None else WindowUsage(Window(amount, MINUTE))

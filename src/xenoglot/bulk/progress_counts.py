"""Counters of a batch run, and their summary as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from xenoglot.bulk.line_request import LineReport

_MINUTE, _HOUR = 60, 3600
_THOUSAND, _MILLION = 1_000, 1_000_000
_CENT = 0.01


class ProgressCounts(Struct, kw_only=True):
    """Lines of an input (`total`), answered lines (`done`, of them `failed` with an error), and their usage.

    `started_at` is the start of this run, in seconds of its clock, and `before` the lines answered by then. `cost` is
    in US dollars; `unpriced` counts answers without a known price.
    """

    total: int
    started_at: float
    before: int = 0
    done: int = 0
    failed: int = 0
    lossy: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def count(self, asked: LineReport, cost: float | None) -> None:
        """Count a line that was answered now."""
        self.done += 1
        self.failed += not asked.outcome.ok
        self.lossy += bool(asked.outcome.losses)
        if asked.usage is not None:
            self.input_tokens += asked.usage.input_tokens or 0
            self.output_tokens += asked.usage.output_tokens or 0
        if cost is not None:
            self.cost += cost
        elif asked.outcome.ok:
            self.unpriced += 1

    def rate(self, now: float) -> float:
        """Return how many lines were answered in a second of this run."""
        elapsed = now - self.started_at
        return (self.done - self.before) / elapsed if elapsed > 0 else 0.0

    def seconds_left(self, now: float) -> float | None:
        """Return an estimate of the remaining seconds; `None` if unknown."""
        rate = self.rate(now)
        return (self.total - self.done) / rate if rate else None

    def text(self, now: float) -> str:
        """Return the progress: `12.3 lines/s, 45k tokens, $0.03, 2 failed, 4 min left`."""
        left = self.seconds_left(now)
        said = [f"{self.rate(now):.1f} lines/s", *self._parts()]
        if self.failed:
            said.append(f"{self.failed} failed")
        if left is not None and self.done < self.total:
            said.append(f"{_span(left)} left")
        return ", ".join(said)

    def summary(self, now: float) -> str:
        """Return the result of the run as text."""
        answered = f"{self.done} of {self.total} {'line' if self.total == 1 else 'lines'} answered"
        said = [answered, *([f"{self.failed} with an error"] if self.failed else []), *self._parts()]
        if self.lossy:
            said.append(f"{self.lossy} with losses")
        return f"{', '.join(said)}, in {_span(now - self.started_at)}"

    def _parts(self) -> list[str]:
        tokens = self.input_tokens + self.output_tokens
        said = [f"{_short(tokens)} tokens"] if tokens else []
        if self.cost:
            amount = f"${self.cost:.2f}" if self.cost >= _CENT else f"${self.cost:.5f}"
            said.append(f"at least {amount}" if self.unpriced else amount)
        return said


def _short(number: int) -> str:
    if number < _THOUSAND:
        return str(number)
    return f"{number / _THOUSAND:.1f}k" if number < _MILLION else f"{number / _MILLION:.1f}M"


def _span(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < _HOUR else f"{seconds / _HOUR:.1f} h"

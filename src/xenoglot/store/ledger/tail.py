"""Requests as they end: what to read from the ledger each time, and which of it is new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from xenoglot.store.ledger import queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xenoglot.store.ledger.queries import RequestFilter
    from xenoglot.store.ledger.rows import RequestRow
    from xenoglot.store.queries import Steps

POLL_SECONDS: Final = 0.5
"""How often the ledger is read."""
LATE_SECONDS: Final = 3.0
"""A request is written into the ledger a moment after its end, by some gateways later than by others."""


class RequestTail:
    """Requests that end after one with this time of its end and this id, or after a time.

    Some are written after others that ended later, so the last seconds are read again each time.
    """

    def __init__(self, which: RequestFilter, begin: tuple[float, str]) -> None:
        self.full = False
        """Whether there was more to read the last time: then it is read again at once."""
        self._which = replace(which, since=0.0)
        self._begin = self._place = begin
        self._seen: dict[str, float] = {}

    def steps(self) -> Steps[list[RequestRow]]:
        """Return the query whose rows `new` takes."""
        return queries.ended(self._which, self._place)

    def new(self, rows: Sequence[RequestRow], now: float) -> list[RequestRow]:
        """Return the rows that are new; the query began at the time `now`."""
        found = [row for row in rows if row.id not in self._seen]
        self._seen |= {row.id: row.ended for row in found}
        self.full = len(rows) == queries.MOST_REQUESTS
        if self.full:
            self._place = (rows[-1].ended, rows[-1].id)
        else:
            self._place = max(self._begin, (now - LATE_SECONDS, ""))
            self._seen = {name: at for name, at in self._seen.items() if at >= self._place[0]}
        return found

"""Sums of requests for the table `usage_hour`, from rows as they are stored: tuples in the order of the columns."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from xenoglot.store.ledger.rows import COLUMNS, FIRST_FAILED_STATUS, HOUR
from xenoglot.store.ledger.tables import COUNTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from xenoglot.store.queries import Value

    RowValues: TypeAlias = tuple[Value, ...]
    SumKey: TypeAlias = tuple[int, str, str, str, str, str, str]
    """An hour, and the names in `KEYS`."""

KEYS: Final = ("hour", "tenant", "key", "model", "upstream", "dialect", "currency")
SUMS: Final = ("requests", "failures", *COUNTS, "estimated", "cost", "unpriced", "losses")

_AT: Final = COLUMNS.index("at")
_INPUT: Final = COLUMNS.index("input")
_OUTPUT: Final = COLUMNS.index("output")
_COST: Final = COLUMNS.index("cost")
_LOSSES: Final = COLUMNS.index("losses")
_COUNTED: Final = slice(COLUMNS.index(COUNTS[0]), _COST + 1)
"""Where a row has its counts, whether they are estimated, and its cost, in the order of `SUMS`."""
_alike: Final = itemgetter(*map(COLUMNS.index, (*KEYS[1:], "failure", "status")))


def summed(rows: Iterable[RowValues]) -> dict[SumKey, list[int]]:
    """Return the sums of `rows` by the key of `usage_hour`."""
    alike: dict[Any, list[RowValues]] = {}
    for row in rows:
        at: Any = row[_AT]
        alike.setdefault((at // HOUR, _alike(row)), []).append(row)
    sums: dict[SumKey, list[int]] = {}
    for (hour, (*names, failure, status)), group in alike.items():
        failed = failure is not None or (status or 0) >= FIRST_FAILED_STATUS
        tenant, owner, model, upstream, dialect, currency = (name or "" for name in names)
        key = (int(hour) * HOUR, tenant, owner, model, upstream, dialect, currency)
        total = _total(group, len(group) if failed else 0)
        sums[key] = [sum(pair) for pair in zip(sums[key], total, strict=True)] if key in sums else total
    return sums


def _total(rows: Sequence[RowValues], failures: int) -> list[int]:
    """Return the sums of rows, a column at a time: that loop is in C."""
    columns: list[Any] = list(zip(*rows, strict=True))
    *counts, cost = (sum(filter(None, column)) for column in columns[_COUNTED])
    return [len(rows), failures, *counts, cost, _unpriced(columns), sum(columns[_LOSSES])]


def _unpriced(columns: Sequence[Sequence[Value]]) -> int:
    """Return how many rows used tokens whose price is unknown."""
    if None not in columns[_COST]:
        return 0
    used = zip(columns[_COST], columns[_INPUT], columns[_OUTPUT], strict=True)
    return sum(cost is None and (given is not None or made is not None) for cost, given, made in used)

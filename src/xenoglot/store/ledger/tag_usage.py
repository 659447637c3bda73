"""Sums of usage by a tag of the requests: `tag:team`.

The sums of hours know no tags, so the requests themselves are summed, as long as they are stored. The column `tags` has
the form `,job=nightly,team=search,`, with values percent-encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from xenoglot.store.ledger.rows import FIRST_FAILED_STATUS
from xenoglot.store.ledger.tables import COUNTS
from xenoglot.store.queries import Statement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xenoglot.model.json import JSON
    from xenoglot.store.queries import Steps, Value

TAG: Final = "tag:"
_HOURS: Final = {"hour": 3600, "day": 86400}
_FAILED: Final = f"CASE WHEN failure IS NOT NULL OR COALESCE(status, 0) >= {FIRST_FAILED_STATUS} THEN 1 ELSE 0 END"
_UNPRICED: Final = "CASE WHEN cost IS NULL AND (input IS NOT NULL OR output IS NOT NULL) THEN 1 ELSE 0 END"
_SUMS: Final = (
    "1",
    _FAILED,
    *(f"COALESCE({name}, 0)" for name in COUNTS),
    "estimated",
    "COALESCE(cost, 0)",
    _UNPRICED,
    "losses",
)


def tag_usage(
    by: Sequence[str], since: float, until: float, names: Mapping[str, str | None], sums: Sequence[str]
) -> Steps[list[dict[str, JSON]]]:
    """Return the `sums` of usage by each group and currency, in order; some of `by` are `tag:NAME`.

    It is the usage from `since` until before `until`, of what has these `names`, by column.

    A request without the tag counts for the empty value.
    """
    groups = [_group(name) for name in by] + ["COALESCE(currency, '')"]
    conditions = ["at >= $1", "at < $2"]
    bound: list[Value] = [since, until]
    for name, wanted in names.items():
        if wanted is not None:
            bound.append(wanted)
            conditions.append(f"COALESCE({name}, '') = ${len(bound)}")
    columns = ", ".join(f"{group} AS g{number}" for number, group in enumerate(groups))
    totals = ", ".join(f"CAST(SUM({expression}) AS BIGINT)" for expression in _SUMS)
    places = ", ".join(f"g{number}" for number in range(len(groups)))
    rows = yield Statement(
        f"SELECT {columns}, {totals} FROM request WHERE {' AND '.join(conditions)} GROUP BY {places}",  # noqa: S608  constants
        bound,
    )
    found: dict[tuple[JSON, ...], list[int]] = {}
    for row in rows:
        named = [_tag(str(cell), name) if name.startswith(TAG) else cell for name, cell in zip(by, row, strict=False)]
        total = found.setdefault((*named, row[len(by)]), [0] * len(_SUMS))
        for place, count in enumerate(row[len(groups) :]):
            total[place] += int(count)
    ordered = sorted(found.items(), key=lambda one: [str(cell) for cell in one[0]])
    return [dict(zip((*by, "currency", *sums), (*key, *total), strict=True)) for key, total in ordered]


def _group(name: str) -> str:
    if name in _HOURS:
        return f"CAST(FLOOR(at / {_HOURS[name]}) * {_HOURS[name]} AS BIGINT)"
    return "COALESCE(tags, '')" if name.startswith(TAG) else f"COALESCE({name}, '')"


def _tag(tags: str, name: str) -> str:
    """Return the value of the tag `tag:NAME` in a column; empty without one."""
    _, found, rest = tags.partition(f",{name.removeprefix(TAG)}=")
    return unquote(rest.partition(",")[0]) if found else ""

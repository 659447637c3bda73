"""Usage by tags, in every kind of store: the same sums as those of hours, by the value of a tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from msgspec.structs import replace

from tests.store.ledger.test_queries import BARE, FULL, UNPRICED
from xenoglot.store.ledger import queries
from xenoglot.store.ledger.queries import UsageFilter
from xenoglot.store.ledger.usage_sums import SUMS

if TYPE_CHECKING:
    from xenoglot.store.sql import SQLStore
    from xenoglot.store.store import Store

ROWS = [
    replace(FULL, id="1", tags=",job=nightly,team=search,"),
    replace(FULL, id="2", tags=",team=search,"),
    replace(FULL, id="3", tags=",team=ads%2C%20more,", tenant="ben", currency="EUR"),
    replace(UNPRICED, id="4", tags=",xteam=no,"),
    replace(BARE, id="5", tags=None),
]


@pytest.fixture
def ledger(store: Store) -> SQLStore:
    """Give a store of each kind, as a database."""
    return cast("SQLStore", store)


async def test_usage_is_summed_by_the_value_of_a_tag(ledger: SQLStore) -> None:
    await ledger.write(queries.add(ROWS))
    found = await ledger.read(queries.usage(("tag:team",), UsageFilter()))
    shown = [(row["tag:team"], row["currency"], row["requests"], row["failures"], row["cost"]) for row in found]
    assert shown == [("", "", 2, 1, 0), ("ads, more", "EUR", 1, 0, 1234), ("search", "USD", 2, 0, 2468)]
    by_both = await ledger.read(queries.usage(("day", "tag:job", "tenant"), UsageFilter(tenant="ada", since=7200)))
    assert [(row["day"], row["tag:job"], row["tenant"], row["requests"]) for row in by_both] == [
        (0, "", "ada", 1),
        (0, "", "ada", 1),
        (0, "nightly", "ada", 1),
    ]
    assert await ledger.read(queries.usage(("tag:team",), UsageFilter(), limit=1, offset=2)) == found[2:]


async def test_sums_by_a_tag_add_up_to_those_of_the_hours(ledger: SQLStore) -> None:
    await ledger.write(queries.add(ROWS))
    for which in (UsageFilter(), UsageFilter(since=10800.0), UsageFilter(tenant="ada"), UsageFilter(model="large")):
        tagged, hours = [await ledger.read(queries.usage(by, which)) for by in (("tag:team",), ())]
        for name in SUMS:
            assert sum(cast("int", row[name]) for row in tagged) == sum(cast("int", row[name]) for row in hours), name


@pytest.mark.parametrize("name", ["tag:", "tags", "tag"])
async def test_a_tag_without_a_name_is_refused(ledger: SQLStore, name: str) -> None:
    with pytest.raises(ValueError, match=r"tag:NAME"):
        await ledger.read(queries.usage((name,), UsageFilter()))

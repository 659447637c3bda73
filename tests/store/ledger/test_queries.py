"""The ledger in every kind of store: rows, their sums in the same transaction, and what is asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from msgspec.structs import asdict, astuple, replace

from xenoglot.store.ledger import audit, prices, queries
from xenoglot.store.ledger.audit import Change
from xenoglot.store.ledger.prices import StoredPrice
from xenoglot.store.ledger.queries import RequestFilter, UsageFilter
from xenoglot.store.ledger.rows import RequestRow
from xenoglot.store.ledger.tables import COUNTS
from xenoglot.store.ledger.usage_sums import SUMS, summed
from xenoglot.store.queries import Statement
from xenoglot.store.records import StoreError

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject
    from xenoglot.store.queries import Steps
    from xenoglot.store.sql import SQLStore
    from xenoglot.store.store import Store

HOUR = 3600
FULL = RequestRow(
    id="req_1",
    at=7200.5,
    tenant="ada",
    key="laptop",
    session="s",
    route="/v1/messages",
    dialect="messages",
    upstream_dialect="chat",
    model="large",
    upstream="openai",
    target="gpt",
    tries=2,
    stream=1,
    status=200,
    finish="stop",
    ttfb_ms=1.5,
    total_ms=20.25,
    input=100,
    output=20,
    cache_read=30,
    cache_write=4,
    reasoning=5,
    audio_in=6,
    audio_out=7,
    searches=1,
    extra_input=50,
    extra_output=9,
    cost=1234,
    currency="USD",
    price_source="own",
    losses=2,
    loss_kinds="dropped:2",
    trace="4bf92f3577b34da6a3ce929d0e0e4736",
    tags="team=a",
    first_token_ms=3.5,
)
BARE = RequestRow(id="req_2", at=7300.0, status=404, failure="not_found")
UNPRICED = replace(FULL, id="req_3", at=10800.0, cost=None, currency=None, estimated=1, losses=0)


@pytest.fixture
def ledger(store: Store) -> SQLStore:
    """Give a store of each kind, as a database."""
    return cast("SQLStore", store)


async def test_rows_come_back_as_they_were_the_newest_first(ledger: SQLStore) -> None:
    await ledger.write(queries.add([FULL, BARE]))
    await ledger.write(queries.add([UNPRICED]))
    assert await ledger.read(queries.requests(RequestFilter())) == [UNPRICED, BARE, FULL]
    assert await ledger.read(queries.request("req_1")) == FULL
    assert await ledger.read(queries.request("req_9")) is None
    assert await ledger.read(queries.requests(RequestFilter(tenant="ada", model="large", since=8000.0))) == [UNPRICED]
    assert await ledger.read(queries.requests(RequestFilter(failed=True))) == [BARE]
    page = RequestFilter(limit=1, before=(UNPRICED.at, UNPRICED.id))
    assert await ledger.read(queries.requests(page)) == [BARE]


PAGE = 7


@pytest.mark.parametrize("name", ["key", "model", "upstream", "dialect", "tenant", "session", "trace", "all"])
async def test_a_list_has_every_request_that_passes_its_filter(ledger: SQLStore, name: str) -> None:
    """Few requests of many have the names, in some of the hours; pages end within hours, and some times are alike."""
    rows = [
        replace(
            (FULL, BARE)[number % 3 == 0],
            id=f"req_{number:03}",
            at=1800.0 + 250.0 * (number // 2),
            losses=number % 5 // 4,
            **{} if name == "all" or number % 9 > 1 else {name: "rare"},
        )
        for number in range(240)
    ]
    await ledger.write(queries.add(rows))
    named: JSONObject = {} if name == "all" else {name: "rare"}
    for more in MORE:
        which = convert({**named, **more, "limit": PAGE}, RequestFilter)
        found: list[RequestRow] = []
        while page := await ledger.read(queries.requests(which)):
            found += page
            assert len(page) == PAGE or not await ledger.read(
                queries.requests(replace(which, before=(page[-1].at, page[-1].id)))
            )
            which = replace(which, before=(page[-1].at, page[-1].id))
        assert found == [row for row in reversed(rows) if _passes(row, which)]


MORE: tuple[JSONObject, ...] = (
    {},
    {"failed": True},
    {"failed": False},
    {"lossy": True},
    {"status": 404},
    {"since": 5000.0},
    {"since": 4000.5, "until": 20_000.0, "failed": True},
)


def _passes(row: RequestRow, which: RequestFilter) -> bool:
    names = ("tenant", "key", "model", "upstream", "dialect", "session", "trace", "status")
    return (
        which.since <= row.at < (which.until or 1e12)
        and all(getattr(which, name) in (None, getattr(row, name)) for name in names)
        and which.failed in (None, row.failed)
        and (row.losses > 0 or not which.lossy)
    )


async def test_rows_with_different_nulls_are_written_together(ledger: SQLStore) -> None:
    rows = [
        replace(each, id=f"req_{number}", at=number) for number, each in enumerate((FULL, BARE, UNPRICED, BARE, FULL))
    ]
    await ledger.write(queries.add(rows))
    assert await ledger.read(queries.requests(RequestFilter())) == rows[::-1]


@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
async def test_many_rows_are_written_as_they_are(ledger: SQLStore, count: int) -> None:
    kinds = (FULL, BARE, UNPRICED, BARE)
    mixed = [replace(kinds[number % len(kinds)], id=f"req_{number}", at=number) for number in range(count)]
    alike = [replace(FULL, id=f"req_{number}", at=number) for number in range(count, 2 * count)]
    await ledger.write(queries.add(mixed))
    await ledger.write(queries.add(alike))
    assert await ledger.read(queries.requests(RequestFilter(limit=1000))) == [*mixed, *alike][::-1]


async def test_usage_is_summed_by_group_and_currency(ledger: SQLStore) -> None:
    await ledger.write(queries.add([FULL, replace(FULL, id="req_4")]))
    await ledger.write(queries.add([BARE, UNPRICED]))
    ada, nobody, unpriced = sorted(
        await ledger.read(queries.usage(("tenant", "model"), UsageFilter())), key=lambda row: row["input"], reverse=True
    )
    assert (ada["tenant"], ada["model"], ada["requests"], ada["input"], ada["cost"]) == ("ada", "large", 2, 200, 2468)
    assert (ada["currency"], ada["unpriced"], ada["failures"], ada["losses"]) == ("USD", 0, 0, 4)
    assert {nobody["requests"], unpriced["requests"]} == {1}
    by_hour = await ledger.read(queries.usage(("hour",), UsageFilter(tenant="ada", since=10800, until=14400)))
    assert [(row["hour"], row["requests"], row["unpriced"], row["estimated"]) for row in by_hour] == [(10800, 1, 1, 1)]
    (day,) = await ledger.read(queries.usage(("day",), UsageFilter(key="laptop", until=10800)))
    assert (day["day"], day["requests"], day["searches"], day["extra_input"]) == (0, 2, 2, 100)


async def test_a_batch_that_fails_leaves_neither_rows_nor_sums(ledger: SQLStore) -> None:
    await ledger.write(queries.add([FULL]))
    with pytest.raises(StoreError):
        await ledger.write(queries.add([replace(BARE, id="req_5"), FULL]))
    assert await ledger.read(queries.requests(RequestFilter())) == [FULL]
    assert [row["requests"] for row in await ledger.read(queries.usage((), UsageFilter()))] == [1]


async def test_old_rows_are_deleted_and_sums_stay_longer(ledger: SQLStore) -> None:
    await ledger.write(queries.add([FULL, BARE, UNPRICED]))
    assert await ledger.write(queries.prune(10000.0, 0.0, 1)) == 1
    assert await ledger.write(queries.prune(10000.0, 0.0, 9)) == 1
    assert await ledger.read(queries.requests(RequestFilter())) == [UNPRICED]
    assert sum(cast("int", row["requests"]) for row in await ledger.read(queries.usage((), UsageFilter()))) == 3
    assert await ledger.write(queries.prune(7300.0, 20000.0, 9)) == 0  # requests are found by the sums of their hours
    assert sum(cast("int", row["requests"]) for row in await ledger.read(queries.usage((), UsageFilter()))) == 3
    assert await ledger.write(queries.prune(14500.0, 10000.0, 9)) == 1
    assert sum(cast("int", row["requests"]) for row in await ledger.read(queries.usage((), UsageFilter()))) == 1


async def test_an_unknown_group_is_refused(ledger: SQLStore) -> None:
    with pytest.raises(ValueError, match="expected one of tenant"):
        await ledger.read(queries.usage(("tenant; DROP TABLE request",), UsageFilter()))


counts = st.one_of(st.none(), st.integers(0, 2**40))
requests = st.builds(
    RequestRow,
    id=st.uuids().map(str),
    at=st.floats(0, 1e5),
    tenant=st.sampled_from([None, "a", "b"]),
    model=st.sampled_from([None, "m"]),
    status=st.sampled_from([None, 200, 404]),
    failure=st.sampled_from([None, "upstream"]),
    input=counts,
    output=counts,
    searches=counts,
    estimated=st.integers(0, 1),
    cost=counts,
    losses=st.integers(0, 3),
    currency=st.sampled_from([None, "USD"]),
)


def summed_one_by_one(rows: list[RequestRow]) -> dict[tuple[object, ...], list[int]]:
    """Return the sums of rows, one row after the other."""
    sums: dict[tuple[object, ...], list[int]] = {}
    for row in rows:
        names = (row.tenant, row.key, row.model, row.upstream, row.dialect, row.currency)
        total = sums.setdefault((int(row.at // HOUR) * HOUR, *(name or "" for name in names)), [0] * len(SUMS))
        counts = [getattr(row, name) or 0 for name in COUNTS]
        unpriced = row.cost is None and (row.input is not None or row.output is not None)
        values = [1, int(row.failed), *counts, row.estimated, row.cost or 0, int(unpriced), row.losses]
        total[:] = [before + value for before, value in zip(total, values, strict=True)]
    return sums


@given(rows=st.lists(requests, max_size=20))
def test_sums_are_those_of_the_rows_one_by_one(rows: list[RequestRow]) -> None:
    assert summed([astuple(row) for row in rows]) == summed_one_by_one(rows)


@given(rows=st.lists(requests, max_size=20), cut=st.integers(0, 20))
def test_sums_do_not_depend_on_how_rows_are_written(rows: list[RequestRow], cut: int) -> None:
    values = [astuple(row) for row in rows]
    whole = summed(values)
    parts = [summed(values[:cut]), summed(values[cut:])]
    for key, total in whole.items():
        found = [part[key] for part in parts if key in part]
        assert [sum(column) for column in zip(*found, strict=True)] == total
    assert {key for part in parts for key in part} == whole.keys()


async def test_requests_are_read_in_the_order_of_their_ends(store: Store) -> None:
    ledger = cast("SQLStore", store)
    rows = [
        replace(FULL, id="req_a", at=10.0, total_ms=5000.0),
        replace(FULL, id="req_b", at=12.0, total_ms=1000.0, losses=2),
        replace(FULL, id="req_c", at=14.0, total_ms=1000.0, model="small"),
    ]
    await ledger.write(queries.add(rows))

    async def names(which: RequestFilter, after: tuple[float, str]) -> list[str]:
        return [row.id for row in await ledger.read(queries.ended(which, after))]

    assert await names(RequestFilter(), (0.0, "")) == ["req_b", "req_a", "req_c"]
    assert await names(RequestFilter(), (13.0, "req_b")) == ["req_a", "req_c"]
    assert await names(RequestFilter(), (15.0, "req_a")) == ["req_c"]
    assert await names(RequestFilter(model="small", since=11.0), (0.0, "")) == ["req_c"]
    assert await names(RequestFilter(lossy=True, failed=False, until=13.0), (0.0, "")) == ["req_b", "req_a"]


async def test_sums_are_read_in_portions(store: Store) -> None:
    ledger = cast("SQLStore", store)
    await ledger.write(queries.add([replace(FULL, id=f"req_{name}", model=name) for name in "abc"]))
    found = [
        [row["model"] for row in await ledger.read(queries.usage(("model",), UsageFilter(), limit=2, offset=offset))]
        for offset in (0, 2, 4)
    ]
    assert found == [["a", "b"], ["c"], []]
    one = UsageFilter(model="b", upstream="openai", dialect="messages")
    assert [row["requests"] for row in await ledger.read(queries.usage((), one))] == [1]


async def test_what_was_captured_is_listed_without_its_content(store: Store) -> None:
    ledger = cast("SQLStore", store)

    def capture() -> Steps[None]:
        sql = "INSERT INTO capture (request, part, media, body, expires) VALUES ($1, $2, $3, $4, $5)"
        yield Statement(sql, ("req_1", "sent", "application/json", b"12345", 9.0))

    await ledger.write(capture())
    assert await ledger.read(queries.captured("req_1")) == [
        queries.CapturePart(part="sent", media="application/json", bytes=5, expires=9.0)
    ]
    assert await ledger.read(queries.captured("req_2")) == []


async def test_prices_are_replaced_and_deleted_and_each_change_is_in_the_audit_log(store: Store) -> None:
    ledger = cast("SQLStore", store)
    price = StoredPrice(pattern="m", upstream="up", valid_from=5.0, input="1", output="2")
    dearer = replace(price, input="3", cache_read="0.5")

    def change(number: int) -> Change:
        return Change(id=f"audit_{number}", at=float(number), actor="key_1", request="req_1")

    await ledger.write(prices.put(price, change(1)))
    await ledger.write(prices.put(dearer, change(2)))
    assert await ledger.read(prices.prices()) == [dearer]
    assert await ledger.write(prices.delete(price.key, change(3)))
    assert not await ledger.write(prices.delete(price.key, change(4)))
    assert await ledger.read(prices.prices()) == []
    found = await ledger.read(audit.entries(audit.AuditFilter()))
    assert [(one.action, one.before, one.after) for one in found] == [
        ("price.delete", asdict(dearer), None),
        ("price.set", asdict(price), asdict(dearer)),
        ("price.set", None, asdict(price)),
    ]

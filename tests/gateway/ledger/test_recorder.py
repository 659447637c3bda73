"""The recorder: every request once, whatever the store does; the queue is bounded, and what it drops is counted."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, TypeVar

import pytest
from msgspec.structs import astuple

from tests.store.postgresql import running
from xenoglot.codec.loss import Losses
from xenoglot.errors import FailureError
from xenoglot.gateway.auth.keys import Principal
from xenoglot.gateway.config.ledger import LedgerSettings
from xenoglot.gateway.ledger import recorder as recording
from xenoglot.gateway.ledger.recorder import RequestRecorder
from xenoglot.gateway.ledger.request_row import request_row
from xenoglot.gateway.observability.request_log import RequestCost, RequestLog
from xenoglot.gateway.observability.trace_context import TraceContext
from xenoglot.model.content import Extra
from xenoglot.model.response import Usage
from xenoglot.store.ledger import queries
from xenoglot.store.ledger.queries import RequestFilter, UsageFilter
from xenoglot.store.ledger.rows import RequestRow
from xenoglot.store.ledger.usage_sums import summed
from xenoglot.store.location import open_store
from xenoglot.store.records import StoreError
from xenoglot.store.sqlite import Memory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from xenoglot.store.queries import Steps

T = TypeVar("T")
NOW = 1_000_000.0
TRACE = "0af7651916cd43dd8448eb211c80319c"
USED = Usage(input_tokens=10, output_tokens=2)


class FlakyStore(Memory):
    """A store in memory that fails while `broken`; once it commits, and then fails, if it is `forgetful`."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = self.forgetful = False

    async def write(self, steps: Steps[T]) -> T:
        """Write, unless broken."""
        if self.broken:
            raise StoreError("broken")
        made = await super().write(steps)
        if self.forgetful:
            self.forgetful = False
            raise StoreError("the connection broke after the commit")
        return made

    async def read(self, steps: Steps[T]) -> T:
        """Read, unless broken."""
        if self.broken:
            raise StoreError("broken")
        return await super().read(steps)


class Keeper:
    """A store as the recorder has it, without deadlines."""

    def __init__(self) -> None:
        self.store = FlakyStore()
        self.now: Callable[[], float] = lambda: NOW

    async def within(self, asked: Awaitable[T]) -> T:
        """Wait for it."""
        return await asked

    async def rows(self) -> list[RequestRow]:
        """Return all rows."""
        return await self.store.read(queries.requests(RequestFilter(limit=1000)))

    async def total(self) -> int:
        """Return how many requests the sums have."""
        return sum(row["requests"] for row in await self.store.read(queries.usage((), UsageFilter())))


@pytest.fixture
async def keeper() -> AsyncGenerator[Keeper]:
    """Give an empty store."""
    made = Keeper()
    yield made
    await made.store.aclose()


def record(number: int, **more: object) -> RequestLog:
    made = RequestLog(f"req_{number}", "POST", 0.0, float, model="m", usage=USED)
    for name, value in more.items():
        setattr(made, name, value)
    return made


async def emptied(recorder: RequestRecorder) -> None:
    """Wait until nothing waits; the recorder does it by itself."""
    while recorder.waiting:  # noqa: ASYNC110  it has no event, as nothing in the gateway waits for it
        await asyncio.sleep(0)


async def test_what_is_queued_during_a_write_is_written_by_the_next_flush(keeper: Keeper) -> None:
    recorder = RequestRecorder(keeper, LedgerSettings())
    began, go = asyncio.Event(), asyncio.Event()

    async def slow(asked: Awaitable[T]) -> T:
        began.set()
        await go.wait()
        return await asked

    keeper.within = slow  # type: ignore[method-assign]
    recorder.add(record(1), 1.0)
    first = asyncio.create_task(recorder.flush())
    await began.wait()
    recorder.add(record(2), 1.0)
    second = asyncio.create_task(recorder.flush())
    await asyncio.sleep(0)  # it waits for the write that has begun
    go.set()
    await asyncio.gather(first, second)
    assert (recorder.written, recorder.waiting) == (2, 0)
    await recorder.aclose()


async def test_a_row_has_what_the_log_has(keeper: Keeper) -> None:
    recorder = RequestRecorder(keeper, LedgerSettings())
    recorder.dialects = {"large": "chat"}
    recorder.add(
        record(
            1, backend="large", target="m1", tries=2, status=200, answered=0.25, stream=True, finish="stop",
            cost=RequestCost(12, "USD", "own"), trace_context=TraceContext(f"00-{TRACE}-b7ad6b7169203331-01"),
            tags={"team": "search"},
        ),
        1.5,
    )  # fmt: skip
    await recorder.aclose()
    (row,) = await keeper.rows()
    assert (row.id, row.at, row.upstream_dialect, row.ttfb_ms, row.total_ms) == ("req_1", NOW - 1.5, "chat", 250, 1500)
    assert (row.input, row.output, row.cache_read, row.cost, row.currency) == (10, 2, None, 12, "USD")
    assert (row.trace, row.tags) == (TRACE, ",team=search,")
    assert (recorder.written, recorder.dropped, recorder.waiting) == (1, 0, 0)


def test_each_column_has_its_own_value() -> None:
    losses = Losses()
    losses.dropped("$.seed", "seed", "the target has none")
    full = record(
        1, route="/v1/chat/completions", dialect="messages", session="s", model="large", backend="lab", target="m1",
        tries=2, status=200, answered=0.25, first_token=0.375, stream=True, finish="stop",
        failure="upstream", losses=losses,
        client=Principal(tenant="ada", key="laptop"), cost=RequestCost(12, "USD", "own"), tags={"team": "search"},
        trace_context=TraceContext(f"00-{TRACE}-b7ad6b7169203331-01"),
        usage=Usage(
            input_tokens=31, output_tokens=32, cache_read=33, cache_write=34, reasoning=35, input_audio=36,
            output_audio=37, web_searches=38, estimated=True,
            extra=Extra(dialect="messages", fields={
                "iterations": [{"type": "compaction", "input_tokens": 39, "output_tokens": 40}],
            }),
        ),
    )  # fmt: skip
    expected = RequestRow(
        id="req_1", at=NOW - 1.5, tenant="ada", key="laptop", session="s", route="/v1/chat/completions",
        dialect="messages", upstream_dialect="chat", model="large", upstream="lab", target="m1", tries=2, stream=1,
        status=200, finish="stop", failure="upstream", ttfb_ms=250.0, total_ms=1500.0, input=31, output=32,
        cache_read=33, cache_write=34, reasoning=35, audio_in=36, audio_out=37, searches=38, extra_input=39,
        extra_output=40, estimated=1, cost=12, currency="USD", price_source="own", losses=1, loss_kinds="dropped:1",
        trace=TRACE, tags=",team=search,", first_token_ms=375.0,
    )  # fmt: skip
    assert request_row(full, 1.5, NOW, {"lab": "chat"}) == astuple(expected)
    full.stream = False  # a whole answer has no first token: nothing of it comes alone
    assert request_row(full, 1.5, NOW, {"lab": "chat"})[-1] is None
    bare = RequestLog("req_2", "POST", 0.0, float)
    expected = RequestRow(id="req_2", at=NOW - 0.0012346, total_ms=1.235)
    assert request_row(bare, 0.0012346, NOW, {}) == astuple(expected)


async def test_health_checks_and_lists_leave_no_row_but_refusals_do(keeper: Keeper) -> None:
    recorder = RequestRecorder(keeper, LedgerSettings())
    recorder.add(record(1, model=None, status=200), 1.0)
    recorder.add(record(2, model=None, status=401), 1.0)
    recorder.add(record(3, model=None, status=403, route="/admin/v1/{path}"), 1.0)
    await recorder.aclose()
    assert [row.id for row in await keeper.rows()] == ["req_2"]


async def test_rows_are_written_by_themselves(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "DELAY", 0.0)
    recorder = RequestRecorder(keeper, LedgerSettings())
    for number in range(3):
        recorder.add(record(number), 1.0)
        await emptied(recorder)
    assert await keeper.total() == recorder.written == 3
    await recorder.aclose()


async def test_the_keys_of_written_rows_are_noted_as_used(keeper: Keeper) -> None:
    noted: list[tuple[set[str], float]] = []
    recorder = RequestRecorder(keeper, LedgerSettings())
    recorder.used = lambda ids, at: noted.append((set(ids), at))
    for number, key in enumerate(("key_1", "key_2", "key_1", None)):
        recorder.add(record(number, client=Principal(key=key)), 1.0)
    await recorder.aclose()
    assert noted == [({"key_1", "key_2"}, NOW)]


async def test_many_rows_are_written_in_batches(keeper: Keeper) -> None:
    recorder = RequestRecorder(keeper, LedgerSettings())
    for number in range(1203):
        recorder.add(record(number), 1.0)
    await recorder.aclose()
    assert (recorder.written, await keeper.total()) == (1203, 1203)


async def test_an_outage_costs_no_row_while_there_is_room(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "RETRY_SECONDS", 0.0)
    recorder = RequestRecorder(keeper, LedgerSettings(queue=3))
    keeper.store.broken = True
    for number in range(5):
        recorder.add(record(number), 1.0)
    await recorder.flush()
    assert (recorder.failing, recorder.waiting, recorder.dropped) == (True, 3, 2)
    recorder.check()  # `ignore`: requests are answered
    keeper.store.broken = False
    await emptied(recorder)
    assert {row.id for row in await keeper.rows()} == {"req_0", "req_1", "req_2"}
    assert not recorder.failing
    await recorder.aclose()


async def test_requests_are_refused_in_an_outage_if_the_operator_wants_that(keeper: Keeper) -> None:
    recorder = RequestRecorder(keeper, LedgerSettings(on_outage="refuse"))
    recorder.check()
    keeper.store.broken = True
    recorder.add(record(1), 1.0)
    await recorder.flush()
    with pytest.raises(FailureError, match="service unavailable"):
        recorder.check()
    keeper.store.broken = False
    await recorder.flush()
    recorder.check()
    await recorder.aclose()


async def test_a_commit_that_was_not_confirmed_is_not_repeated(keeper: Keeper) -> None:
    recorder = RequestRecorder(keeper, LedgerSettings())
    keeper.store.forgetful = True
    recorder.add(record(1), 1.0)
    await recorder.flush()
    recorder.add(record(2), 1.0)
    await recorder.aclose()
    assert await keeper.total() == 2
    assert {row.id for row in await keeper.rows()} == {"req_1", "req_2"}


@pytest.fixture(scope="module")
def postgresql() -> Generator[str]:
    """Give the URL of a server."""
    with running() as server:
        yield server.url()


@pytest.mark.parametrize("retried", [False, True], ids=["at-once", "retried"])
@pytest.mark.parametrize("kind", ["memory", "postgresql"])
async def test_rows_are_made_in_no_thread_with_an_event_loop(
    postgresql: str, monkeypatch: pytest.MonkeyPatch, kind: str, *, retried: bool
) -> None:
    """A batch of rows takes some milliseconds, for which no request would be answered."""
    threads: list[tuple[str, bool]] = []

    def noting(name: str, function: Callable[..., T]) -> Callable[..., T]:
        def noted(*values: object) -> T:
            threads.append((name, threading.current_thread() is threading.main_thread()))
            return function(*values)

        return noted

    monkeypatch.setattr(recording, "request_row", noting("row", request_row))
    monkeypatch.setattr(recording, "summed", noting("sums", summed))
    store = open_store(postgresql, {}) if kind == "postgresql" else Memory()
    assert store is not None
    keeper = Keeper()
    keeper.store = store  # type: ignore[assignment]
    recorder = RequestRecorder(keeper, LedgerSettings())
    recorder.failing = retried
    for number in range(3):
        recorder.add(record(number, request_id=f"req_{kind}_{retried}_{number}"), 1.0)
    await recorder.aclose()
    await store.aclose()
    assert (recorder.written, recorder.dropped) == (3, 0)
    assert threads == [("row", False)] * 3 + [("sums", False)]


async def test_one_row_that_cannot_be_written_costs_no_other(keeper: Keeper) -> None:
    recorder = RequestRecorder(keeper, LedgerSettings())
    for number, tokens in enumerate((1, 2**70, 3)):  # no column holds so many
        recorder.add(record(number, usage=Usage(input_tokens=tokens, output_tokens=1)), 1.0)
    await recorder.flush()
    await recorder.aclose()
    assert {row.id for row in await keeper.rows()} == {"req_0", "req_2"}
    assert (recorder.written, recorder.dropped) == (2, 1)


async def test_a_store_that_fails_among_rows_costs_only_the_row_that_cannot_be_written(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = RequestRecorder(keeper, LedgerSettings())
    for number, tokens in enumerate((1, 2**70, 3, 4)):
        recorder.add(record(number, usage=Usage(input_tokens=tokens, output_tokens=1)), 1.0)
    await recorder.flush()  # the batch fails
    write, writes = keeper.store.write, 0

    async def breaking(steps: Steps[T]) -> T:
        nonlocal writes
        writes += 1
        keeper.store.broken = writes == 4  # the batch again, one row, the bad row, and then it breaks
        return await write(steps)

    monkeypatch.setattr(keeper.store, "write", breaking)
    await recorder.flush()
    assert (recorder.waiting, recorder.dropped, keeper.store.broken) == (2, 1, True)
    await recorder.flush()
    await recorder.aclose()
    assert {row.id for row in await keeper.rows()} == {"req_0", "req_2", "req_3"}
    assert (recorder.written, recorder.dropped, await keeper.total()) == (3, 1, 3)


async def test_what_cannot_be_written_at_the_end_is_counted(keeper: Keeper) -> None:
    recorder = RequestRecorder(keeper, LedgerSettings())
    recorder.add(record(1), 1.0)
    keeper.store.broken = True
    await recorder.aclose()
    assert (recorder.dropped, recorder.waiting) == (1, 0)


async def test_old_rows_are_deleted(keeper: Keeper) -> None:
    recorder = RequestRecorder(keeper, LedgerSettings(max_age_days=1.0))
    recorder.add(record(1), 1.0)
    await recorder.flush()
    keeper.now = lambda: NOW + 2 * 86_400
    recorder.add(record(2), 1.0)
    await recorder.flush()
    assert [row.id for row in await keeper.rows()] == ["req_2"]
    assert await keeper.total() == 2
    await recorder.aclose()

"""What every store does with batches, whatever it is made of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tests.store.test_conformance import ANSWER, ENDLESS
from xenoglot.codec.features.batch import Batch, BatchInputError, StoredFile
from xenoglot.model.response import Usage
from xenoglot.store import schema
from xenoglot.store.batches import BatchResult, BatchRow
from xenoglot.store.records import Retention, Window
from xenoglot.store.sqlite import SQLite

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from xenoglot.store.store import Store

BATCH = Batch(
    id="batch_1",
    owner="alice",
    kind="chat",
    created=100.0,
    deadline=200.0,
    phase="in_progress",
    endpoint="/v1/chat/completions",
    asked={"metadata": {"nul": "\u0000"}},
    headers=[("anthropic-beta", "x")],
    total=3,
)
KEY = ("alice", "batch_1")
LINES = [BatchRow(number, f"id \u0000 {number}", b"{%d}" % number) for number in (1, 2, 4)]
OUTPUT = StoredFile(
    id="file-o", owner="alice", created=9.0, name="o", purpose="batch_output", batch="batch_1", part="output"
)


async def stored_batch(store: Store, batch: Batch = BATCH) -> None:
    """Keep a batch with three requests, that the process `p` runs until 130."""
    await store.batches.create(batch, ready=False)
    await store.batches.add(batch.owner, batch.id, LINES)
    assert await store.batches.open(batch)
    await store.batches.claim("p", 100.0, 130.0, 9)


async def settle(store: Store, number: int, process: str = "p", result: bytes = b"result") -> bool:
    return await store.batches.settle(process, BATCH, LINES[number], BatchResult("ok", result))


async def counts(store: Store) -> tuple[int, int, int]:
    batch = await store.batches.get(*KEY)
    assert batch is not None
    return batch.total, batch.succeeded, batch.errored


async def test_one_is_there_when_all_of_it_is(store: Store) -> None:
    await store.batches.create(BATCH, ready=False)
    await store.batches.add(*KEY, LINES)
    assert await store.batches.get(*KEY) is None
    assert await store.batches.claim("p", 100.0, 130.0, 9) == []
    assert await store.batches.open(BATCH)
    assert await store.batches.get(*KEY) == BATCH
    assert await store.batches.unanswered(*KEY, 1, 1) == [(2, LINES[1].name)]
    assert await store.batches.request(*KEY, 2) == LINES[1]


async def test_another_owner_has_nothing(store: Store) -> None:
    await stored_batch(store)
    await settle(store, 0)
    seen = (
        await store.batches.get("bob", "batch_1"),
        await store.batches.list_page("bob", "chat", Window(limit=9)),
        await store.batches.cancel("bob", "batch_1", 1.0),
        await store.batches.delete("bob", "batch_1"),
        await store.batches.request("bob", "batch_1", 2),
        await store.batches.results("bob", "batch_1", ("ok",), 0, 9),
        await store.batches.add("bob", "batch_1", LINES),
    )
    assert seen == (None, [], None, False, None, [], False)


async def test_of_those_who_want_one_at_once_one_gets_it(store: Store) -> None:
    await store.batches.create(BATCH)
    claimed = await asyncio.gather(*(store.batches.claim(str(name), 100.0, 130.0, 9) for name in range(8)))
    assert sorted(map(len, claimed)) == [0] * 7 + [1]


async def test_one_owner_has_no_more_than_its_share(store: Store) -> None:
    for number in range(4):
        await store.batches.create(replace(BATCH, id=f"batch_{number}", created=float(number)))
    await store.batches.create(replace(BATCH, owner="bob", created=9.0))
    looks = [
        [(batch.owner, batch.id) for batch in await store.batches.claim(process, now, now + 30.0, 3, 2)]
        for process, now in (("p", 100.0), ("p", 101.0), ("q", 102.0))
    ]
    assert looks == [
        [("alice", "batch_0"), ("alice", "batch_1")],
        [("bob", "batch_1")],
        [("alice", "batch_2"), ("alice", "batch_3")],
    ]


async def test_one_that_nobody_vouches_for_is_taken_over(store: Store) -> None:
    await stored_batch(store)
    assert await store.batches.renew("p", [KEY, ("alice", "batch_9")], 150.0) == {KEY: None}
    assert await store.batches.claim("q", 149.0, 180.0, 9) == []
    assert [batch.id for batch in await store.batches.claim("q", 151.0, 180.0, 9)] == ["batch_1"]
    assert await store.batches.renew("p", [KEY], 160.0) == {}
    assert not await store.batches.save("p", BATCH)
    await store.batches.release("q", BATCH)
    assert len(await store.batches.claim("r", 152.0, 180.0, 9)) == 1


async def test_a_request_gets_one_result(store: Store) -> None:
    await stored_batch(store)
    assert [await settle(store, 0, result=said) for said in (b"first", b"second")] == [True, True]
    assert await store.batches.results(*KEY, ("ok",), 0, 9) == [(1, b"first")]
    assert await store.batches.request(*KEY, 1) is None
    assert await counts(store) == (3, 1, 0)


async def test_whoever_lost_a_batch_adds_nothing_to_it(store: Store) -> None:
    await stored_batch(store)
    await store.batches.claim("q", 131.0, 160.0, 9)
    assert not await settle(store, 0)
    assert not await store.batches.record_abandoned("p", BATCH, [(1, b"left")])
    assert not await store.batches.finish("p", BATCH, [], 140.0)
    assert await counts(store) == (3, 0, 0)
    assert await settle(store, 0, "q")


async def test_at_the_end_its_files_are_there(store: Store) -> None:
    await stored_batch(store)
    await settle(store, 0)
    await store.batches.settle("p", BATCH, LINES[1], BatchResult("error", b"wrong"))
    await store.batches.record_abandoned("p", BATCH, [(4, b"left"), (1, b"never")])
    assert await store.batches.part_ids(*KEY) == {"ok": 6, "error": 5, "left": 4}
    assert await store.batches.results(*KEY, ("error", "left"), 0, 9) == [(2, b"wrong"), (4, b"left")]
    over = replace(BATCH, phase="completed", mistakes=[BatchInputError(code="c", message="m")])
    assert await store.batches.finish("p", over, [OUTPUT], 140.0)
    assert await store.files.get("alice", "file-o", 150.0) == OUTPUT
    assert await store.batches.get(*KEY) == replace(over, succeeded=1, errored=1)
    assert await store.batches.claim("q", 1e9, 2e9, 9) == []
    assert await store.batches.delete(*KEY)
    assert await store.files.get("alice", "file-o", 150.0) is None
    assert await store.batches.results(*KEY, ("ok",), 0, 9) == []


async def test_whoever_runs_one_learns_that_it_is_cancelled(store: Store) -> None:
    await stored_batch(store)
    for now in (110.0, 120.0):
        cancelled = await store.batches.cancel(*KEY, now)
        assert cancelled is not None
        assert cancelled.cancelled == 110.0
    assert await store.batches.renew("p", [KEY], 150.0) == {KEY: 110.0}


async def test_they_are_listed_in_pages(store: Store) -> None:
    for number in range(4):
        await store.batches.create(replace(BATCH, id=f"batch_{number}", created=float(number // 2)))
    await store.batches.create(replace(BATCH, id="batch_x", kind="messages"))
    found = [
        [batch.id for batch in await store.batches.list_page("alice", "chat", window)]
        for window in (
            Window(limit=2),
            Window(limit=9, after="batch_2"),
            Window(limit=9, after="batch_1", order="asc"),
            Window(limit=9, after="batch_9"),
        )
    ]
    assert found == [["batch_3", "batch_2"], ["batch_1", "batch_0"], ["batch_2", "batch_3"], []]


async def test_what_is_under_way_is_not_forgotten(store: Store) -> None:
    await stored_batch(store)
    tight = Retention(max_age=1.0, max_bytes=1)
    assert await store.sweep(1e6, tight, 9) == 0
    assert await store.batches.finish("p", BATCH, [OUTPUT], 140.0)
    assert await store.sweep(1e6, ENDLESS, 9) == 0
    assert await store.sweep(1e6, tight, 9) == 2
    assert (await store.batches.get(*KEY), await store.files.get("alice", "file-o", 0.0)) == (None, None)


async def test_a_store_of_yesterday_gets_the_tables_of_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.db"
    assert not SQLite(path).has_history()
    with monkeypatch.context() as before:
        before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        before.setattr(schema, "VERSION", 1)
        first = SQLite(path)
        await first.put(ANSWER)
    second = SQLite(path)
    assert second.has_history()
    await stored_batch(second)
    assert (await second.batches.get(*KEY), await second.get(ANSWER.owner, ANSWER.id)) == (BATCH, ANSWER)
    assert await first.get(ANSWER.owner, ANSWER.id) == ANSWER, "a gateway of yesterday goes on beside it"
    await first.aclose()
    await second.aclose()


async def test_what_was_used_is_summed_as_far_as_it_was_said(store: Store) -> None:
    await stored_batch(store)
    used = (Usage(input_tokens=5, output_tokens=2), Usage(), Usage(input_tokens=1, cache_read=1, output_tokens=3))
    for request, usage in zip(LINES, used, strict=True):
        await store.batches.settle("p", BATCH, request, BatchResult("ok", b"", usage))
    found = await store.batches.get(*KEY)
    assert found is not None
    assert found.usage == Usage(input_tokens=6, cache_read=1, output_tokens=5)


async def test_of_a_file_that_is_deleted_the_answers_go(store: Store) -> None:
    await stored_batch(store)
    await settle(store, 0, result=b"x" * 10_000)
    await store.batches.settle("p", BATCH, LINES[1], BatchResult("error", b"wrong"))
    await store.batches.finish("p", BATCH, [OUTPUT], 140.0)
    tight = Retention(max_age=1e6, max_bytes=9_000)
    assert await store.files.delete("alice", "file-o")
    assert await store.batches.results(*KEY, ("ok", "error"), 0, 9) == [(2, b"wrong")]
    assert await store.sweep(150.0, tight, 9) == 0


async def test_of_large_results_few_are_read_at_once(store: Store) -> None:
    await stored_batch(store)
    for number in range(3):
        await settle(store, number, result=b"x" * 700_000)
    pages = [await store.batches.results(*KEY, ("ok",), after, 9) for after in (0, 2, 4)]
    assert [[number for number, _ in page] for page in pages] == [[1, 2], [4], []]


async def test_what_was_left_takes_no_room(store: Store) -> None:
    large = BatchRow(1, "a", b"x" * 10_000)
    await store.batches.create(BATCH)
    await store.batches.add(*KEY, [large])
    await store.batches.claim("p", 100.0, 130.0, 9)
    assert await store.protected_bytes("alice") > 10_000
    await store.batches.record_abandoned("p", BATCH, [(1, b"left")])
    assert 0 < await store.protected_bytes("alice") < 9_000
    await store.batches.finish("p", BATCH, [], 140.0)
    assert await store.protected_bytes("alice") == 0


async def test_what_is_to_come_is_counted_until_it_is_read(store: Store) -> None:
    await store.batches.create(BATCH, expected=10_000)
    assert (await store.protected_bytes("alice") > 10_000, await store.protected_bytes("bob")) == (True, 0)
    await store.batches.clear(*KEY)
    assert 0 < await store.protected_bytes("alice") < 9_000

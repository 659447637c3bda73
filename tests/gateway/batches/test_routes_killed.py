"""Gateways that are killed, stopped or exchanged in the middle of a batch: each request has one result all the same."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from openai import OpenAI

from tests.architecture.tree import ROOT
from tests.gateway.batches.batch_requests import (
    FINISHED,
    PartlyAnsweringBackend,
    create_batch,
    input_line,
    jsonl,
    output_lines,
    wait_for_status,
)
from tests.gateway.running_gateway import TIMEOUT, config_for
from tests.gateway.scripted_backends import HELLO
from tests.gateway.stored.test_intake import client_of
from tests.gateway.stored.test_intake_faults import Ailing
from xenoglot.backends.scripted import Scripted
from xenoglot.codec.features.batch import Batch, StoredFile
from xenoglot.codec.json.json_io import encode_json
from xenoglot.gateway.app import Gateway, keeper_of
from xenoglot.gateway.batches import worker
from xenoglot.gateway.config.settings import BatchSettings
from xenoglot.store.batches import BatchRow
from xenoglot.store.records import StoreError
from xenoglot.store.sqlite import Memory, SQLite

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.store.store import Store

NAMES = [f"request-{number}" for number in range(150)]
BATCH = Batch(
    id="batch_1",
    owner="",
    kind="chat",
    created=0.0,
    deadline=1e12,
    phase="in_progress",
    endpoint="/v1/chat/completions",
    total=3,
)
LATER = 60.0
"""Seconds after which nobody vouches any more for what a killed gateway was at."""


@contextmanager
def serving(path: Path, count: int, ahead: float) -> Generator[tuple[subprocess.Popen[str], OpenAI, Iterator[str]]]:
    """Give a gateway with its client and its lines."""
    command = [sys.executable, "-m", "tests.gateway.batches.gateway_program", str(path), str(count), str(ahead)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        try:
            with OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="nobody's", max_retries=0) as client:
                yield process, client, process.stdout
        finally:
            process.kill()


def received_until_halt(lines: Iterator[str]) -> list[str]:
    """Return what a gateway is asked until it halts, or ends."""
    found = []
    for one in lines:
        if one.strip() == "halted":
            break
        found.append(one.split()[-1])
    return found


async def answered(path: Path, name: str) -> set[str]:
    """Return which requests of a batch have a result."""
    store = SQLite(path)
    left = {request for _, request in await store.batches.unanswered("", name, 0, len(NAMES))}
    await store.aclose()
    return set(NAMES) - left


async def test_each_request_has_one_result_whoever_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    batch = ""
    before: set[str] = set()
    for run, sign in enumerate((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL)):
        with serving(path, 30, LATER * run) as (process, client, lines):
            batch = batch or create_batch(client, jsonl(*map(input_line, NAMES))).id
            found = received_until_halt(lines)
            process.send_signal(sign)
            assert process.wait() == (-sign if sign == signal.SIGKILL else 0)
        assert before.isdisjoint(found), "what has a result is not asked again"
        before = await answered(path, batch)
        assert len(before) >= 20 * (run + 1)
    with serving(path, 1_000, LATER * 4) as (_, client, _):
        done = wait_for_status(client, batch, *FINISHED)
        counts = done.request_counts
        assert counts is not None
        assert (done.status, counts.total, counts.completed, counts.failed) == ("completed", 150, 150, 0)
        assert list(output_lines(client, done.output_file_id)) == NAMES


def test_what_one_gateway_runs_another_cancels(gateway_server: Callable[..., RunningGateway], tmp_path: Path) -> None:
    backend = PartlyAnsweringBackend(0)
    config = config_for("scripted")
    one = gateway_server({"scripted": backend}, config, store=SQLite(tmp_path / "state.db"))
    other = gateway_server({"scripted": backend}, config, store=SQLite(tmp_path / "state.db"))
    with client_of(one) as client, client_of(other) as second:
        batch = create_batch(client, jsonl(input_line("a"), input_line("b")))
        wait_for_status(second, batch.id, "in_progress")
        assert second.batches.cancel(batch.id).status == "cancelling"
        create_batch(client, b"")  # which has the first look
        assert wait_for_status(second, batch.id, *FINISHED).status == "cancelled"
        assert (
            second.files.content(wait_for_status(client, batch.id, *FINISHED).error_file_id or "").text.count("\n") == 2
        )


async def store_batch(store: Store, batch: Batch) -> None:
    """Keep a batch of three requests."""
    body = encode_json({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    await store.batches.create(batch, ready=False)
    await store.batches.add("", batch.id, [BatchRow(number, f"id {number}", body) for number in (1, 2, 3)])
    await store.batches.open(batch)


async def test_another_gateway_goes_on_where_one_was_exchanged() -> None:
    config, store, backend = (
        config_for("scripted", batches=BatchSettings(concurrency=1)),
        Memory(),
        PartlyAnsweringBackend(1),
    )
    keeper = keeper_of(config, store)
    await store_batch(store, BATCH)
    old = Gateway(config, {"scripted": backend}, keeper=keeper)
    await old.runner().look()
    async with asyncio.timeout(TIMEOUT):
        while len(backend.received) < 2:  # noqa: ASYNC110  the backend is any test's, and knows no event
            await asyncio.sleep(0)
    old.begin_nothing()
    backend.resume()
    await old.over()
    half = await store.batches.get("", "batch_1")
    assert half is not None
    assert (half.phase, half.succeeded, len(backend.received)) == ("in_progress", 2, 2)
    new = Gateway(config, {"scripted": Scripted(HELLO)}, keeper=keeper)
    await new.runner().look()
    await new.over()
    done = await store.batches.get("", "batch_1")
    assert done is not None
    assert (done.phase, done.succeeded, list(done.files)) == ("completed", 3, ["output"])
    await old.let_go_of_batches()
    await new.aclose()


async def test_a_gateway_that_stops_does_not_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    config, store = config_for("scripted"), Memory()
    reading = asyncio.Event()

    async def read_for_ever(*_: object) -> Batch:
        reading.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(worker, "read_input", read_for_ever)
    await store.batches.create(replace(BATCH, phase="validating", total=0, asked={"input_file_id": "file-1"}))
    gateway = Gateway(config, {"scripted": Scripted(HELLO)}, keeper=keeper_of(config, store))
    async with asyncio.timeout(TIMEOUT):
        await gateway.runner().look()
        await reading.wait()
        gateway.begin_nothing()
        await gateway.over()
    claimed = await store.batches.claim("next", 0.0, 30.0, 9)
    assert [batch.phase for batch in claimed] == ["validating"]
    await gateway.aclose()


async def test_an_end_that_was_begun_is_written(tmp_path: Path) -> None:
    config, store = config_for("scripted"), SQLite(tmp_path / "state.db")
    await store_batch(store, replace(BATCH, phase="finalizing", ending="cancelled"))
    gateway = Gateway(config, {"scripted": PartlyAnsweringBackend(0)}, keeper=keeper_of(config, store))
    await gateway.runner().look()
    await gateway.over()
    done = await store.batches.get("", "batch_1")
    assert done is not None
    assert (done.phase, done.succeeded, list(done.files)) == ("cancelled", 0, ["errors"])
    await gateway.aclose()


@pytest.mark.parametrize("size", [None, 9], ids=["gone", "half-gone"])
async def test_a_file_that_went_is_told(size: int | None) -> None:
    config, store = config_for("scripted"), Memory()
    keeper = keeper_of(config, store)
    if size is not None:
        file = StoredFile(id="file-1", owner="", created=keeper.now(), name="f", purpose="batch", size=size)
        await store.files.begin(file)
        await store.files.add("", "file-1", 0, b"\n\n")
        await store.files.finish(file)
    await store.batches.create(replace(BATCH, phase="validating", total=0, asked={"input_file_id": "file-1"}))
    gateway = Gateway(config, {"scripted": Scripted(HELLO)}, keeper=keeper)
    await gateway.runner().look()
    await gateway.over()
    done = await store.batches.get("", "batch_1")
    assert done is not None
    assert (done.phase, [mistake.code for mistake in done.mistakes]) == ("failed", ["file_not_found"])
    await gateway.aclose()


async def test_a_store_that_fails_only_holds_a_batch_up() -> None:
    config, store = config_for("scripted"), Ailing()
    keeper = keeper_of(config, store)
    await store_batch(store, BATCH)
    gateway = Gateway(config, {"scripted": Scripted(HELLO)}, keeper=keeper)
    store.ill = True
    with pytest.raises(StoreError):
        await gateway.runner().look()
    store.ill = False
    await gateway.runner().look()
    await gateway.over()
    done = await store.batches.get("", "batch_1")
    assert done is not None
    assert (done.phase, done.succeeded) == ("completed", 3)
    await gateway.aclose()

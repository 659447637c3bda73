"""Sums over many mixed requests: whole, streamed, broken, left by the client, failed over, cached and in a batch.

`XENOGLOT_MIXED_REQUESTS=10000` in the environment makes a long run of it.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import httpx2
from openai import OpenAI

from tests.gateway.batches.batch_requests import CHAT, FINISHED, create_batch, input_line, jsonl, wait_for_status
from tests.gateway.ledger.test_accounting import EVENTS, PRICES, ScriptedServer, _frame, _number
from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.store.ledger import queries
from xenoglot.store.ledger.queries import RequestFilter, UsageFilter
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import SILENT, Upstream
from xenoglot.testing.script import Body, ResponseHead, ScriptRule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.ledger.rows import RequestRow
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step

REQUESTS = int(os.environ.get("XENOGLOT_MIXED_REQUESTS", "400"))
LINES = REQUESTS // 4
"""Requests of the batch; the others come one by one."""


class Outcome(NamedTuple):
    """What became of a request that came by itself."""

    left: bool = False
    hit: bool = False


class HangingServer(ScriptedServer):
    """One that stops in the middle of an answer to clients that leave."""

    def answer(self, request: Received) -> Sequence[Step]:
        """Answer as a `ScriptedServer`, but for such clients."""
        asked = request.json
        if isinstance(asked, dict) and asked.get("stream") and leaves(_number(asked)) and self.serves(_number(asked)):
            return ResponseHead(headers=EVENTS), Body(_frame({"delta": {"content": "Hi"}})), *SILENT
        return super().answer(request)

    def serves(self, number: int) -> bool:
        """Whether it is this server that answers a request, and not the other one."""
        return self.spare or number % 5 > 0


def leaves(number: int) -> bool:
    """Whether the client of a request leaves in the middle of the answer."""
    return number % 11 == 5


def is_cached(number: int) -> bool:
    """Whether a request is one of two alike to the cached model."""
    return number % 11 == 9


def body_of(number: int) -> JSONObject:
    """Return the body of a request."""
    turns = [{"role": "user", "content": "Hi"}]
    if is_cached(number):
        return {"model": "mc", "messages": turns, "seed": number - number % 22}
    options = {"stream_options": {"include_usage": True}} if number % 3 == 2 else {}
    return {"model": "m", "messages": turns, "seed": number, "stream": leaves(number) or number % 3 > 0, **options}


def send(client: httpx2.Client, number: int) -> Outcome:
    """Send a request."""
    with client.stream("POST", CHAT, json=body_of(number)) as answer:
        if leaves(number):
            next(answer.iter_bytes())
            return Outcome(left=True)
        try:
            answer.read()
        except httpx2.HTTPError:
            return Outcome()
        assert answer.status_code == 200, answer.text
        return Outcome(hit=answer.headers.get("x-xenoglot-cache") == "hit")


def send_batch(url: str) -> None:
    """Send requests as a batch, and wait for its end."""
    lines = [
        input_line(f"line-{n}", body_of(n) | {"model": "m", "stream": False}) for n in range(REQUESTS - LINES, REQUESTS)
    ]
    with OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        done = wait_for_status(client, create_batch(client, jsonl(*lines)).id, *FINISHED)
        assert done.request_counts is not None
        assert (done.status, done.request_counts.completed) == ("completed", LINES)


async def read(path: Path) -> tuple[list[RequestRow], list[dict[str, JSON]]]:
    """Return all rows of the ledger, and the sums of its hours."""
    store = SQLite(path)
    rows: list[RequestRow] = []
    while page := await store.read(
        queries.requests(RequestFilter(limit=1000, before=(rows[-1].at, rows[-1].id) if rows else None))
    ):
        rows += page
    sums = await store.read(queries.usage(("upstream",), UsageFilter()))
    await store.aclose()
    return rows, sums


def test_sums_are_what_the_upstreams_reported(tmp_path: Path) -> None:
    first, second = HangingServer(spare=False), HangingServer(spare=True)
    path = tmp_path / "state.db"
    # a fifth of the requests fall over, which is all that retries may be by default: chance would let one exceed it
    retry: JSONObject = {"retry": {"attempts": 1, "budget": 1.0}, "breaker": {"failures": 1_000_000}}
    with Upstream(ScriptRule(steps=first.answer)) as server, Upstream(ScriptRule(steps=second.answer)) as spare:
        upstreams = {
            "up": {"dialect": "chat", "base_url": server.url, **retry},
            "spare": {"dialect": "chat", "base_url": spare.url, **retry},
        }
        targets = [{"upstream": "up"}, {"upstream": "spare", "tier": 2}]
        running = DialectGateway(
            server,
            store={"url": f"sqlite://{path}"},
            upstreams=upstreams,
            models=[{"name": "*", "targets": targets}],
            ledger={},
            prices=PRICES,
            cache={"models": ["mc"]},
        )
        with running, ThreadPoolExecutor(9) as pool:
            batch = pool.submit(send_batch, running.url)
            with httpx2.Client(base_url=running.url, timeout=TIMEOUT) as client:
                outcomes = list(pool.map(lambda number: send(client, number), range(REQUESTS - LINES)))
            batch.result()
    rows, sums = asyncio.run(read(path))
    hits = [row for row in rows if row.price_source == "cache"]
    reported = [row for row in rows if not row.estimated and row not in hits]
    for name, scripted in (("up", first), ("spare", second)):
        own = [row for row in reported if row.upstream == name]
        total = [sum(getattr(row, column) or 0 for row in own) for column in ("input", "output", "cache_read", "cost")]
        assert total == [scripted.input, scripted.output, scripted.cached, scripted.costs]
        assert scripted.broken
    assert len(hits) == sum(outcome.hit for outcome in outcomes) > 0
    assert {(row.input, row.output, row.cost) for row in hits} == {(0, 0, 0)}
    left = sum(outcome.left for outcome in outcomes)
    assert len([row for row in rows if row.estimated]) == first.broken + second.broken + left
    assert len(rows) == sum(int(row["requests"]) for row in sums) == REQUESTS
    for column in ("input", "output", "cache_read", "cost"):
        assert sum(int(row[column]) for row in sums) == sum(getattr(row, column) or 0 for row in rows)

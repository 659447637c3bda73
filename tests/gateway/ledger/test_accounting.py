"""Accounting of a whole gateway: the ledger has what the upstreams reported, to the token and the micro-unit."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, cast

import httpx2
import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.store.ledger import queries
from xenoglot.store.ledger.queries import RequestFilter, UsageFilter
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import Upstream
from xenoglot.testing.script import Body, Close, End, Respond, ResponseHead, ScriptRule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.ledger.rows import RequestRow
    from xenoglot.testing.raw_http import Received
    from xenoglot.testing.script import Step

PRICES: list[JSON] = [
    {"model": "m*", "upstream": "up", "input": 0.15, "output": "0.6", "cache_read": 0.075},
    {"model": "m*", "upstream": "spare", "input": 3, "output": 15, "currency": "EUR"},
]
REQUESTS = 120
EVENTS = (("content-type", "text/event-stream"),)
JSON_TYPE = (("content-type", "application/json"),)


class ScriptedServer:
    """A server of `chat` that adds up what it reports; `cost` is in micro-units times 1000."""

    def __init__(self, *, spare: bool) -> None:
        self.spare = spare
        self.input = self.output = self.cached = self.broken = 0
        self.costs = 0

    def answer(self, request: Received) -> Sequence[Step]:
        """Answer by the number that the client sends as `seed`: refuse, break off, stream, or answer whole."""
        asked = cast("JSONObject", request.json)
        number = _number(asked)
        if number % 5 == 0 and not self.spare:
            return (Respond(status=500, headers=JSON_TYPE, body=b'{"error":{"message":"no"}}'),)
        if number % 7 == 1 and asked.get("stream"):
            self.broken += 1
            return ResponseHead(headers=EVENTS), Body(_frame({"delta": {"content": "Hi"}})), Close()
        usage = self._report(number)
        if not asked.get("stream"):
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}
            body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            return (Respond(headers=JSON_TYPE, body=json.dumps({**body, "usage": usage}).encode()),)
        frames = [_frame({"delta": {"content": "Hi"}}), _frame({"delta": {}, "finish_reason": "stop"})]
        frames.append(_frame(None, usage=usage))
        return ResponseHead(headers=EVENTS), Body(b"".join([*frames, b"data: [DONE]\n\n"]), split=number), End()

    def _report(self, number: int) -> JSONObject:
        given, made, cached = 100 + 3 * number, number % 11, number
        self.input += given
        self.output += made
        self.cached += cached
        exact = given * 3000 + made * 15000 if self.spare else (given - cached) * 150 + cached * 75 + made * 600
        self.costs += (exact + 500) // 1000
        details = {"cached_tokens": cached}
        tokens = {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
        return {**tokens, "prompt_tokens_details": details}


def _frame(choice: JSONObject | None, **more: JSON) -> bytes:
    choices = [] if choice is None else [{"index": 0, "finish_reason": None} | choice]
    said = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
    return b"data: " + json.dumps(said).encode() + b"\n\n"


def _request(number: int) -> tuple[str, JSONObject]:
    """Return the path and body of a request: each number with another mix of client, streaming and option."""
    turns = [{"role": "user", "content": "Hi"}]
    body: JSONObject = {"model": "m", "messages": turns, "stream": number % 3 > 0}
    if number % 4 == 3:
        return "/v1/messages", {**body, "max_tokens": 9}
    options = {"stream_options": {"include_usage": True}} if number % 3 == 2 else {}
    return "/v1/chat/completions", {**body, "seed": number, **options}


def _send(url: str, number: int) -> tuple[int, str | None]:
    path, body = _request(number)
    if path == "/v1/messages":  # it has no seed: the number is in the prompt
        body["messages"] = [{"role": "user", "content": f"#{number}"}]
    try:
        answer = httpx2.post(url + path, json=body, timeout=TIMEOUT)
    except httpx2.HTTPError:
        return 0, None
    return answer.status_code, answer.headers.get("x-xenoglot-cost")


def _number(asked: JSONObject) -> int:
    """Return the number of a request: its seed, or in its prompt where the client's dialect has none."""
    return int(asked["seed"] if "seed" in asked else asked["messages"][-1]["content"].removeprefix("#"))


async def _read(path: Path) -> tuple[list[RequestRow], list[dict[str, JSON]]]:
    store = SQLite(path)
    rows = await store.read(queries.requests(RequestFilter(limit=1000)))
    sums = await store.read(queries.usage(("upstream",), UsageFilter()))
    await store.aclose()
    return rows, sums


def test_the_ledger_has_what_the_upstreams_reported(tmp_path: Path) -> None:
    first, second = ScriptedServer(spare=False), ScriptedServer(spare=True)
    path = tmp_path / "state.db"
    with (
        Upstream(ScriptRule(steps=first.answer)) as server,
        Upstream(ScriptRule(steps=second.answer)) as spare,
    ):
        retry: JSONObject = {"retry": {"attempts": 1}}
        upstreams = {
            "up": {"dialect": "chat", "base_url": server.url, **retry},
            "spare": {"dialect": "chat", "base_url": spare.url, **retry},
        }
        targets = [{"upstream": "up"}, {"upstream": "spare", "tier": 2}]
        with (
            DialectGateway(
                server,
                store={"url": f"sqlite://{path}"},
                upstreams=upstreams,
                models=[{"name": "*", "targets": targets}],
                ledger={},
                prices=PRICES,
            ) as running,
            ThreadPoolExecutor(8) as pool,
        ):
            told = list(pool.map(lambda number: _send(running.url, number), range(REQUESTS)))
            refused = httpx2.post(f"{running.url}/v1/chat/completions", json={"model": 7}, timeout=TIMEOUT)
            assert httpx2.get(f"{running.url}/health", timeout=TIMEOUT).status_code == 200
    assert refused.status_code == 400
    rows, sums = asyncio.run(_read(path))
    reported = [row for row in rows if row.input is not None and not row.estimated]
    for name, scripted in (("up", first), ("spare", second)):
        own = [row for row in reported if row.upstream == name]
        assert sum(row.input or 0 for row in own) == scripted.input
        assert sum(row.output or 0 for row in own) == scripted.output
        assert sum(row.cache_read or 0 for row in own) == scripted.cached
        assert sum(row.cost or 0 for row in own) == scripted.costs
    assert first.broken
    assert len([row for row in rows if row.estimated]) == first.broken + second.broken
    assert len(rows) == sum(cast("int", row["requests"]) for row in sums) == REQUESTS + 1
    assert sum(cast("int", row["input"]) for row in sums) == sum(row.input or 0 for row in rows)
    whole = [header for number, (status, header) in enumerate(told) if status == 200 and number % 3 == 0]
    assert whole
    assert all(header is not None and header.endswith((" USD", " EUR")) for header in whole)


@pytest.mark.parametrize("on_outage", ["ignore", "refuse"])
def test_an_outage_of_the_store_fails_no_request_unless_that_is_wanted(tmp_path: Path, on_outage: str) -> None:
    scripted = ScriptedServer(spare=True)
    with Upstream(ScriptRule(steps=scripted.answer)) as server:
        folder = tmp_path / "a file, no folder"
        folder.write_text("")
        store = {"url": f"sqlite://{folder}/state.db"}
        with DialectGateway(server, store=store, ledger={"on_outage": on_outage}) as running:
            statuses = {_send(running.url, 3)[0]}
            for _ in range(1000):
                status, _cost = _send(running.url, 3)
                statuses.add(status)
                if status != 200 or on_outage == "ignore":
                    break
    assert statuses == ({200} if on_outage == "ignore" else {200, 529})

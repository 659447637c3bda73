"""`GET /v1/usage`: clients see what they have used, and nothing of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from xenoglot.gateway.ledger.client_context import note_client
from xenoglot.gateway.observability.request_log import RequestLog
from xenoglot.model.request import Request
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from xenoglot.model.json import JSONObject

KEYS = {"ADA": "ada-key", "BEN": "ben-key", "ONE": "first-key", "TWO": "second-key"}
BODY: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def asked(url: str, key: str, query: str = "") -> httpx2.Response:
    return httpx2.get(f"{url}/v1/usage{query}", headers={"authorization": f"Bearer {key}"}, timeout=TIMEOUT)


def test_each_client_sees_its_own_usage() -> None:
    tenants: JSONObject = {"ada": {"key_env": "ADA"}, "ben": {"key_env": "BEN"}}
    with (
        Upstream(*answers("chat", text="Hi").rules()) as server,
        DialectGateway(server, environ=KEYS, tenants=tenants, keys={"env": ["ONE", "TWO"]}, ledger={}) as running,
    ):
        for number, key in enumerate(KEYS.values()):
            for _ in range(number):
                headers = {"authorization": f"Bearer {key}"}
                sent = httpx2.post(f"{running.url}/v1/chat/completions", json=BODY, headers=headers, timeout=TIMEOUT)
                assert sent.status_code == 200
        seen = [asked(running.url, key, "?by=model,day").json() for key in KEYS.values()]
        wrong = [asked(running.url, "ada-key", query) for query in ("?by=tenant", "?since=soon")]
    assert [sum(row["requests"] for row in one["data"]) for one in seen] == [0, 1, 2, 3]
    assert seen[1]["data"][0]["model"] == "m"
    assert seen[1]["data"][0]["unpriced"] == 1
    assert (seen[1]["object"], seen[1]["by"]) == ("usage", ["model", "day"])
    assert [one.status_code for one in wrong] == [400, 400]
    assert "model, dialect, key, hour, day" in wrong[0].text


def test_without_a_ledger_nobody_knows() -> None:
    with Upstream(*answers("chat", text="Hi").rules()) as server, DialectGateway(server) as running:
        answer = httpx2.get(f"{running.url}/v1/usage", timeout=TIMEOUT)
    assert answer.status_code == 404
    assert "ledger is off" in answer.text


def test_the_session_of_a_client_is_noted_as_a_digest() -> None:
    record = RequestLog("req_1", "POST", 0.0, float)
    note_client(record, Request(model="m", cache_key="s"), [])
    assert record.session is not None
    assert record.session != "s"

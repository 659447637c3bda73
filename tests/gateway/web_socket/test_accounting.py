"""Limits, budgets, the ledger and captures hold for each request of a WebSocket as for a posted one."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, cast

from websockets.sync.client import connect

from tests.gateway.admin.administered import KEYS, SECRETS, Administered
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import HELLO
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from tests.gateway.web_socket.socket_client import ENDS, created
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.file_permissions import Secrets
from xenoglot.gateway.config.limits import LimitSettings
from xenoglot.gateway.config.settings import KeySettings
from xenoglot.model.response import Usage
from xenoglot.store.ledger import bodies
from xenoglot.store.ledger.bodies import decompressed
from xenoglot.store.sqlite import SQLite
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from websockets.sync.client import ClientConnection

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.queries import Database

USAGE = Usage(input_tokens=1000, output_tokens=20)
OWN = {"id", "at", "key", "ttfb_ms", "first_token_ms", "total_ms"}
"""What the ledger has of one request alone."""


def opened(url: str, key: str) -> ClientConnection:
    """Return a connection with a key."""
    headers = {"authorization": f"Bearer {key}"}
    return connect(url.replace("http", "ws", 1) + "/v1/responses", additional_headers=headers)


def turn(socket: ClientConnection, text: str = "Hi", **more: JSON) -> list[JSONObject]:
    """Return the events of one answer."""
    socket.send(json.dumps(created(text, **more)))
    events = [json.loads(socket.recv())]
    while events[-1]["type"] not in ENDS:
        events.append(json.loads(socket.recv()))
    return events


def test_a_key_over_its_limit_is_refused_and_the_connection_stays(
    gateway_server: Callable[..., RunningGateway],
) -> None:
    keys = KeySettings(env=("CLIENTS",), limits=LimitSettings(requests=("2/1h",)))
    config = config_for("a", keys=keys, secrets=Secrets({"CLIENTS": "one two"}))
    running = gateway_server({"a": Scripted(HELLO)}, config)
    with opened(running.url, "one") as first, opened(running.url, "two") as second:
        ends = [turn(first)[-1], turn(first)[-1], turn(first)[-1], turn(second)[-1]]
    assert [end["type"] for end in ends] == ["response.completed", "response.completed", "error", "response.completed"]
    refused = ends[2]
    assert (refused["status"], refused["headers"]["retry-after"]) == (429, "60")
    assert "the rate limit of this API key is reached" in refused["error"]["message"]


def test_a_budget_holds_for_each_request_and_the_ledger_has_it(tmp_path: Path) -> None:
    """The last answer that there was money for ends; the next request of the connection is refused."""
    url = f"sqlite://{tmp_path}/state.db"
    with (
        Upstream(*answers("chat", text="Hello.", usage=USAGE).rules()) as upstream,
        DialectGateway(
            upstream,
            environ={"ADA_KEY": "key-of-ada"},
            tenants={"ada": {"key_env": "ADA_KEY"}},
            store={"url": url},
            ledger={},
            capture={"share": 1.0},
            prices=[{"model": "m*", "input": "100", "output": "500"}],
            budgets=[{"scope": "tenant:ada", "amount": "0.30", "period": "total"}],
        ) as gateway,
        opened(gateway.url, "key-of-ada") as socket,
    ):
        first, second, third = (turn(socket, text, max_output_tokens=200) for text in ("one", "two", "three"))
    assert [events[-1]["type"] for events in (first, second)] == ["response.completed"] * 2
    assert third[-1]["status"] == 429, third
    names = [events[0]["headers"]["x-request-id"] for events in (first, second, third)]
    found = asyncio.run(stored(tmp_path, names))
    assert [json.loads(parts["client_request"])["input"] for parts in found[:2]] == ["one", "two"]
    assert "response.completed" in found[0]["client_response"]
    assert "Hello." in found[0]["upstream_response"]


def test_the_administration_shows_a_request_and_disables_a_key_of_an_open_connection() -> None:
    """What a posted request shows, and the next request of the connection is refused."""
    with (
        Upstream(*answers("chat", text="Hello.", usage=USAGE).rules()) as upstream,
        Administered(
            upstream, environ=SECRETS, keys={**KEYS, "store": True}, ledger={}, capture={"share": 1.0}
        ) as running,
    ):
        key = running.admin("POST", "/keys", {"name": "laptop"}).json()
        with opened(running.url, key["secret"]) as socket:
            request_id = turn(socket)[0]["headers"]["x-request-id"]
            posted = running.generate(path="/v1/responses", input="Hi", messages=None, stream=True, store=False)
            shown = running.admin("GET", f"/requests/{request_id}").json()
            details = json.loads(running.admin("GET", f"/requests/{request_id}/capture/details").json()["text"])
            running.admin("PATCH", f"/keys/{key['id']}", {"disabled": True})
            (refused,) = turn(socket)
            other = running.admin("GET", f"/requests/{posted.headers['x-request-id']}").json()
    ledger, posted_ledger = shown["request"], other["request"]
    assert {name: ledger[name] for name in ledger.keys() - OWN} == {
        name: posted_ledger[name] for name in posted_ledger.keys() - OWN
    }
    assert ledger["input"] == USAGE.input_tokens
    assert [one["part"] for one in shown["capture"]] == [one["part"] for one in other["capture"]]
    assert details.keys() >= {"losses", "tries"}
    assert (refused["status"], refused["error"]["code"]) == (401, "invalid_api_key")


async def stored(path: Path, names: list[str]) -> list[dict[str, str]]:
    """Return what was captured of requests, by part."""
    store = SQLite(str(path / "state.db"))
    try:
        found = [await cast("Database", store).read(bodies.captured_bodies(one)) for one in names]
    finally:
        await store.aclose()
    return [{row.part: decompressed(row.body).decode() for row in rows} for rows in found]

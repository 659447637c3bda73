"""Keys of a store that two gateways share: a change holds on both while they run, and an outage stops no known key."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar, cast

import httpx2
import pytest

from tests.gateway.running_gateway import TIMEOUT
from tests.gateway.upstream.test_reasoning_requests import DialectGateway
from tests.store.postgresql import running
from xenoglot.gateway.auth import managed_keys, stored_keys
from xenoglot.gateway.auth.managed_keys import KeyRequest, KeyUpdate
from xenoglot.store.location import open_store
from xenoglot.testing import Upstream, answers

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from tests.store.postgresql import Server
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.queries import Database, Steps

T = TypeVar("T")

CHAT: JSONObject = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
MESSAGES: JSONObject = {**CHAT, "max_tokens": 10}


@pytest.fixture(scope="module")
def server() -> Generator[Server]:
    """Give a PostgreSQL server."""
    with running() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of a store that several processes can open."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/state.db"
    return cast("Server", request.getfixturevalue("server")).url()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_keys, "POLL_SECONDS", 0.02)


def gateway(upstream: Upstream, place: str, **more: JSON) -> DialectGateway:
    keys = {"store": True, **more.pop("keys", {})}
    return DialectGateway(upstream, environ={"STORE": place}, store={"url_env": "STORE"}, keys=keys, **more)


def write(place: str, steps: Steps[T]) -> T:
    """Change the store as another process does."""

    async def run() -> T:
        store = open_store(place, {})
        assert store is not None
        try:
            return await cast("Database", store).write(steps)
        finally:
            await store.aclose()

    return asyncio.run(run())


def create(place: str, **settings: object) -> str:
    secret, steps = managed_keys.create(KeyRequest(**settings), managed_keys.new_change(time.time(), "test"))  # type: ignore[arg-type]
    write(place, steps)
    return secret


def update(place: str, name: str, **settings: object) -> None:
    change = managed_keys.new_change(time.time(), "test")
    assert write(place, managed_keys.update(name, KeyUpdate(**settings), change))  # type: ignore[arg-type]


class Caller:
    """A client that keeps its connection, so that the gateway remembers its head."""

    def __init__(self, gateway: DialectGateway, key: str) -> None:
        headers = {"authorization": f"Bearer {key}"}
        self._client = httpx2.Client(base_url=gateway.url, headers=headers, timeout=TIMEOUT)

    def ask(self, path: str = "/v1/chat/completions", body: JSONObject = CHAT) -> httpx2.Response:
        """Send one request."""
        return self._client.post(path, json=body)

    def until(self, status: int) -> httpx2.Response:
        """Send requests until one is answered with this status."""
        end = time.monotonic() + TIMEOUT
        while (answer := self.ask()).status_code != status:
            assert time.monotonic() < end, answer.text
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """Give a server that answers."""
    with Upstream(*answers("chat", text="Hi").rules()) as scripted:
        yield scripted


def test_a_change_by_another_process_holds_on_every_gateway(place: str, upstream: Upstream) -> None:
    with gateway(upstream, place) as one, gateway(upstream, place) as other:
        assert httpx2.post(f"{one.url}/v1/chat/completions", json=CHAT, timeout=TIMEOUT).status_code == 401
        old = create(place, tenant="ada", name="laptop")
        callers = [Caller(each, old) for each in (one, other)]
        for caller in callers:
            assert [caller.ask().status_code for _ in range(3)] == [200, 200, 200]
        update(place, "laptop", disabled=True)
        for caller in callers:
            assert "disabled" in caller.until(401).text
        update(place, "laptop", disabled=False, models=("other",))
        for caller in callers:
            caller.until(404)
        update(place, "laptop", models=())
        new, steps = managed_keys.rotate("laptop", managed_keys.new_change(time.time(), "test"), time.time())
        write(place, steps)
        renewed = Caller(one, new)
        assert renewed.ask().status_code == 200
        for caller in callers:
            caller.until(401)
        for caller in (*callers, renewed):
            caller.close()


def test_in_an_outage_known_keys_work_and_others_get_an_error_of_their_dialect(
    server: Server, upstream: Upstream
) -> None:
    place = server.url()
    known, other = create(place), create(place)
    with gateway(upstream, place) as running_gateway:
        caller, late = Caller(running_gateway, known), Caller(running_gateway, other)
        assert caller.ask().status_code == 200
        server.stop()
        try:
            assert caller.ask().status_code == 200
            chat, messages = late.ask(), late.ask("/v1/messages", MESSAGES)
        finally:
            server.start()
        assert (chat.status_code, chat.json()["error"]["type"]) == (503, "server_error")
        assert messages.json()["type"] == "error"
        assert messages.status_code in (503, 529)
        assert "cannot be checked now" in chat.text
        assert late.until(200).status_code == 200
        assert caller.ask().status_code == 200
        caller.close()
        late.close()


def test_keys_of_the_file_and_of_the_store_work_side_by_side(tmp_path: Path, upstream: Upstream) -> None:
    place = f"sqlite://{tmp_path}/state.db"
    environ = {"STORE": place, "FILE": "of-the-file"}
    tenants: JSONObject = {"ada": {"key_env": "FILE", "models": ["m"]}}
    settings: JSONObject = {"store": {"url_env": "STORE"}, "keys": {"store": True}, "tenants": tenants}
    with DialectGateway(upstream, environ=environ, **settings) as running_gateway:
        file = Caller(running_gateway, "of-the-file")
        assert file.ask().status_code == 200
        assert not (tmp_path / "state.db").exists()  # nothing was looked up, so no store was made
        wrong = Caller(running_gateway, managed_keys.new_secret())
        assert wrong.ask().status_code == 401
        own = Caller(running_gateway, create(place, tenant="ada", models=("*",)))
        assert own.ask().status_code == 200
        assert own.ask(body={**CHAT, "model": "x"}).status_code == 404  # its tenant may not
        for caller in (file, wrong, own):
            caller.close()

"""What becomes of requests when the store fails, is off, or belongs to the upstream."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.gateway.running_gateway import TIMEOUT, config_for
from tests.gateway.scripted_backends import FIRST_EVENTS, HELLO, Backend, BlockingBackend
from tests.gateway.stored.test_background import ENDING, LIFE, until
from tests.gateway.stored.test_intake import client_of, text_of
from xenoglot import dialect_registry as dialects
from xenoglot.backends.backend import ByteAnswer, monitored
from xenoglot.backends.scripted import Scripted
from xenoglot.backends.stream_guard import PassthroughMonitor
from xenoglot.gateway.config.settings import ServerSettings, StoreSettings, UpstreamSettings
from xenoglot.model.hosted import HostedTool
from xenoglot.store.records import StoreError
from xenoglot.store.sqlite import Memory, SQLite

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from tests.gateway.running_gateway import RunningGateway
    from xenoglot.backends.backend import Answer, Call
    from xenoglot.model.json import JSON, JSONObject
    from xenoglot.store.queries import Steps

ASK: JSONObject = {"model": "m", "input": "canary-of-the-prompt"}
NOT_KEPT = "not kept"


class Failing(Memory):
    """A store that cannot be used."""

    async def read(self, steps: Steps[JSON]) -> JSON:
        """Fail."""
        steps.close()
        raise StoreError("the store failed: TEST")

    async def write(self, steps: Steps[JSON]) -> JSON:
        """Fail."""
        steps.close()
        raise StoreError("the store failed: TEST")

    async def ready(self) -> None:
        """Fail."""
        raise StoreError("the store failed: TEST")


class Slow(Memory):
    """A store that never answers."""

    async def ready(self) -> None:
        """Wait for ever."""
        await asyncio.Event().wait()

    async def write(self, steps: Steps[JSON]) -> JSON:
        """Wait for ever."""
        steps.close()
        await asyncio.Event().wait()


class Bytes(Backend):
    """Answers in the client's own dialect, byte for byte, and keeps what it was asked."""

    def __init__(self, *chunks: bytes) -> None:
        super().__init__()
        self.asked: list[bytes | None] = []
        self._chunks = chunks

    async def answer(self, call: Call) -> Answer:
        """Give the chunks."""
        self.asked.append(call.body)
        dialect = dialects.get(call.dialect)
        watch = PassthroughMonitor(dialect, lambda failure: failure)
        chunks = self._said()
        return ByteAnswer(pieces=monitored(chunks, watch), aclose=chunks.aclose, media_type="text/event-stream")

    async def _said(self) -> AsyncGenerator[bytes, None]:
        for chunk in self._chunks:
            yield chunk


def stream(*events: JSONObject) -> bytes:
    """Return a stream in the dialect's words."""
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


WHOLE: JSONObject = {"id": "resp_theirs", "object": "response", "status": "completed", "model": "m", "output": []}
THEIRS = stream(
    {"type": "response.created", "sequence_number": 7, "response": {**WHOLE, "status": "in_progress"}},
    {"type": "response.new_kind", "sequence_number": 8, "kept": {"as": "it is"}},
    {"type": "response.completed", "sequence_number": 9, "response": {**WHOLE, "odd": [1.50]}},
)


class Ailing(Memory):
    """A store that cannot be written to while it is `ill`; `refused` says that somebody tried."""

    def __init__(self) -> None:
        super().__init__()
        self.ill = False
        self.refused = threading.Event()

    async def write(self, steps: Steps[JSON]) -> JSON:
        """Do as all stores do, or fail."""
        if self.ill:
            steps.close()
            self.refused.set()
            raise StoreError("the store failed: TEST")
        return await super().write(steps)


@pytest.mark.parametrize("kind", [Failing, Slow])
@pytest.mark.parametrize("streamed", [False, True])
def test_k18_k19_an_answer_outlives_a_store_that_fails(
    gateway_server: Callable[..., RunningGateway],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: type[Memory],
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    monkeypatch.setattr("xenoglot.gateway.store_service.PATIENCE", 0.05)
    running = gateway_server({"scripted": Scripted(HELLO)}, store=kind())
    answer = running.request("POST", "/v1/responses", {**ASK, "stream": streamed})
    assert (answer.status, answer.headers["x-xenoglot-state"], answer.truncated) == (200, NOT_KEPT, False)
    assert b"Hello" in answer.body
    assert "the answer is not kept" in caplog.text
    assert "canary" not in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("POST", "/v1/responses", {**ASK, "previous_response_id": "resp_1"}, id="previous"),
        pytest.param("POST", "/v1/responses", {**ASK, "conversation": "conv_1"}, id="conversation"),
        pytest.param("POST", "/v1/responses", {**ASK, "background": True}, id="background"),
        pytest.param("POST", "/v1/responses", {**ASK, "background": True, "stream": True}, id="background-stream"),
        pytest.param("GET", "/v1/responses/resp_1", None, id="retrieve"),
        pytest.param("POST", "/v1/conversations", {}, id="create-conversation"),
    ],
)
def test_what_needs_the_store_is_told_that_it_fails(
    gateway_server: Callable[..., RunningGateway], method: str, path: str, body: JSON
) -> None:
    scripted = Scripted(HELLO)
    running = gateway_server({"scripted": scripted}, store=Failing())
    answer = running.request(method, path, body)
    message = "service unavailable: the gateway's store cannot be used now, and the request needs it"
    assert (answer.status, answer.headers["retry-after"], answer.json["error"]["message"]) == (503, "5", message)
    assert scripted.requests == []


@pytest.mark.parametrize("streamed", [False, True])
def test_k18_a_job_waits_for_the_store(
    gateway_server: Callable[..., RunningGateway],
    monkeypatch: pytest.MonkeyPatch,
    streamed: bool,  # noqa: FBT001  a case
) -> None:
    monkeypatch.setattr("xenoglot.gateway.stored.background.AGAIN_SECONDS", (0.01,) * 1000)
    hanging, store = BlockingBackend(FIRST_EVENTS, ENDING), Ailing()
    running = gateway_server({"scripted": hanging}, store=store)
    with client_of(running) as client:
        conversation = client.conversations.create().id
        queued: JSON = client.responses.create(
            model="m", input="Hi", background=True, stream=streamed, conversation=conversation
        )
        name = next(queued).response.id if streamed else queued.id
        assert hanging.called.wait(TIMEOUT)
        until(client, name, "in_progress")
        store.ill = True
        hanging.resume()
        assert store.refused.wait(TIMEOUT)
        store.ill = False
        assert until(client, name, "completed", "failed").output_text == "Hello"
        texts = [text_of(item) for item in client.conversations.items.list(conversation, order="asc")]
        assert texts == ["Hi", "Hello"]
        told = [event.type for event in client.responses.retrieve(name, stream=True)] if streamed else LIFE
    assert told == LIFE


def test_k18_a_job_that_cannot_be_kept_holds_its_conversation_no_longer(
    gateway_server: Callable[..., RunningGateway], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xenoglot.gateway.stored.background.AGAIN_SECONDS", ())
    monkeypatch.setattr("xenoglot.gateway.store_service.LEASE", 0.1)
    hanging, store = BlockingBackend(FIRST_EVENTS, ENDING), Ailing()
    running = gateway_server({"scripted": hanging}, store=store)
    with client_of(running) as client:
        conversation = client.conversations.create().id
        queued = client.responses.create(model="m", input="Hi", background=True, conversation=conversation)
        assert hanging.called.wait(TIMEOUT)
        until(client, queued.id, "in_progress")
        store.ill = True
        hanging.resume()
        assert store.refused.wait(TIMEOUT)
        store.ill = False
        end = time.monotonic() + TIMEOUT
        again: JSONObject = {**ASK, "conversation": conversation, "background": True}
        while (answer := running.request("POST", "/v1/responses", again)).status != 200:
            assert time.monotonic() < end, answer.json


def test_k19_what_asks_for_no_state_asks_no_store(gateway_server: Callable[..., RunningGateway]) -> None:
    running = gateway_server({"scripted": Scripted(HELLO)}, store=Failing())
    answer = running.request("POST", "/v1/responses", {**ASK, "store": False})
    assert (answer.status, "x-xenoglot-state" in answer.headers) == (200, False)


def test_k18_a_disk_that_is_full(gateway_server: Callable[..., RunningGateway], tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    running = gateway_server({"scripted": Scripted(HELLO)}, store=SQLite(path))
    first = running.request("POST", "/v1/responses", ASK)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("DROP TABLE item")
    blocker.execute("DROP TABLE answer")
    blocker.close()
    second = running.request("POST", "/v1/responses", ASK)
    assert ["x-xenoglot-state" in answer.headers for answer in (first, second)] == [False, True]


def test_off_keeps_nothing(gateway_server: Callable[..., RunningGateway]) -> None:
    scripted = Scripted(HELLO)
    running = gateway_server({"scripted": scripted}, config_for("scripted", store=StoreSettings(url="off")))
    answer = running.request("POST", "/v1/responses", ASK)
    told = running.request("GET", f"/v1/responses/{answer.json['id']}")
    assert (answer.status, told.status) == (200, 404)
    assert told.json["error"]["message"] == "the gateway keeps nothing: its store is off"


@pytest.mark.parametrize(
    ("more", "status", "param"),
    [
        pytest.param({"previous_response_id": "resp_1"}, 400, "previous_response_id", id="previous"),
        pytest.param({"conversation": "conv_1"}, 404, None, id="conversation"),
        pytest.param({"input": [{"type": "item_reference", "id": "msg_1"}]}, 404, "input", id="reference"),
        pytest.param({"background": True}, 400, "background", id="background"),
    ],
)
def test_what_means_something_kept_is_refused_where_nothing_is(
    gateway_server: Callable[..., RunningGateway], more: JSONObject, status: int, param: str | None
) -> None:
    scripted = Scripted(HELLO)
    running = gateway_server({"scripted": scripted}, config_for("scripted", store=StoreSettings(url="off")))
    answer = running.request("POST", "/v1/responses", {**ASK, **more})
    assert (answer.status, answer.json["error"]["param"], scripted.requests) == (status, param, [])


def test_a_history_may_be_no_larger_than_a_request(gateway_server: Callable[..., RunningGateway]) -> None:
    scripted = Scripted(HELLO)
    running = gateway_server({"scripted": scripted}, config_for("scripted", server=ServerSettings(body_limit=1000)))
    first = running.request("POST", "/v1/responses", {**ASK, "input": "x" * 700}).json["id"]
    further: JSONObject = {**ASK, "input": "y" * 700, "previous_response_id": first}
    answers = [running.request("POST", "/v1/responses", {**further, "background": later}) for later in (False, True)]
    message = "the request, with the items that it continues, is larger than 1000 bytes"
    assert [(answer.status, answer.json["error"]["message"]) for answer in answers] == [(413, message)] * 2
    assert len(scripted.requests) == 1


class TestUpstreamsOfTheSameDialect:
    """Upstreams that could keep answers themselves."""

    @pytest.fixture
    def upstream(self) -> Bytes:
        """One that says its own."""
        return Bytes(*(THEIRS[place : place + 50] for place in range(0, len(THEIRS), 50)))

    @staticmethod
    def config_of(**settings: str) -> UpstreamSettings:
        return UpstreamSettings(dialect="responses", base_url="http://upstream.invalid/v1", **settings)  # type: ignore[arg-type]

    def serve(self, gateway_server: Callable[..., RunningGateway], upstream: Bytes, **settings: str) -> RunningGateway:
        config = replace(config_for("scripted"), upstreams={"scripted": self.config_of(**settings)})
        return gateway_server({"scripted": upstream}, config)

    def test_they_are_not_asked_to(self, gateway_server: Callable[..., RunningGateway], upstream: Bytes) -> None:
        running = self.serve(gateway_server, upstream)
        body = {**ASK, "stream": True, "odd": {"a": [1.5]}}
        events = events_of(running.request("POST", "/v1/responses", body).body)
        name = events[0]["response"]["id"]
        ours = {"id": name, "background": False, "previous_response_id": None, "store": True}
        assert events == [
            {"type": "response.created", "sequence_number": 0, "response": {**WHOLE, "status": "in_progress", **ours}},
            {"type": "response.new_kind", "sequence_number": 1, "kept": {"as": "it is"}},
            {"type": "response.completed", "sequence_number": 2, "response": {**WHOLE, "odd": [1.50], **ours}},
        ]
        assert running.request("GET", f"/v1/responses/{name}").json == events[-1]["response"]
        running.request("POST", "/v1/responses", {**body, "previous_response_id": name, "input": "And?"})
        first, second = (json.loads(asked or b"") for asked in upstream.asked)
        assert first == {**body, "store": False}
        turns = [{"type": "message", "role": "user", "content": text} for text in (ASK["input"], "And?")]
        assert second == {**body, "store": False, "input": turns}

    @pytest.mark.parametrize("tail", [b"data: [DONE]\n\n", b"data: {cut", b"data: {cut\n\n"])
    def test_what_follows_the_end_breaks_nothing(
        self, gateway_server: Callable[..., RunningGateway], tail: bytes
    ) -> None:
        running = self.serve(gateway_server, Bytes(THEIRS, tail))
        answer = running.request("POST", "/v1/responses", {**ASK, "stream": True})
        ended = next(event for event in events_of(answer.body) if event["type"] == "response.completed")
        told = running.request("GET", f"/v1/responses/{ended['response']['id']}")
        assert (answer.truncated, told.json) == (False, ended["response"])

    @pytest.mark.parametrize(
        ("settings", "more"),
        [
            pytest.param({"state": "native"}, {"previous_response_id": "resp_theirs"}, id="native"),
            pytest.param({"state": "native"}, {"background": True, "conversation": "conv_1"}, id="native-conversation"),
            pytest.param({}, {"store": False}, id="nothing-to-keep"),
        ],
    )
    def test_bytes_pass_untouched(
        self, gateway_server: Callable[..., RunningGateway], upstream: Bytes, settings: dict[str, str], more: JSONObject
    ) -> None:
        running = self.serve(gateway_server, upstream, **settings)
        body = json.dumps({**ASK, "stream": True, **more}, indent=3).encode()
        answer = running.request("POST", "/v1/responses", body)
        assert (upstream.asked, answer.body) == ([body], THEIRS)


def events_of(body: bytes) -> Sequence[JSONObject]:
    """Return the data of each event."""
    data = [frame.partition(b"data: ")[2] for frame in body.split(b"\n\n") if b"data: " in frame]
    return [json.loads(event) for event in data if event.endswith(b"}")]


@pytest.mark.parametrize("more", [{}, {"stream": True}, {"background": True}, {"background": True, "stream": True}])
def test_what_opens_a_tools_server_is_not_kept(
    gateway_server: Callable[..., RunningGateway], tmp_path: Path, more: JSONObject
) -> None:
    scripted = Scripted(HELLO)
    running = gateway_server({"scripted": scripted}, store=SQLite(tmp_path / "state.db"))
    lock: JSONObject = {"authorization": "canary-key", "headers": {"x-key": "canary-key"}}
    tool: JSONObject = {"type": "mcp", "server_label": "s", "server_url": "https://tools.invalid"}
    answer = running.request("POST", "/v1/responses", {**ASK, **more, "tools": [{**tool, **lock}]})
    running.stop()
    assert (answer.status, b"canary" in answer.body) == (200, False)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert (b"https://tools.invalid" in kept, b"canary-key" in kept) == (True, False)
    (asked,) = scripted.requests[-1].tools
    assert isinstance(asked, HostedTool)
    assert asked.server is not None
    assert (asked.server.token, asked.server.headers) == ("canary-key", {"x-key": "canary-key"})
    assert "canary-key" not in repr(scripted.requests)


def test_what_is_too_old_is_forgotten_beside_new_answers(gateway_server: Callable[..., RunningGateway]) -> None:
    running = gateway_server(
        {"scripted": Scripted(HELLO)}, config_for("scripted", store=StoreSettings(max_age_days=1.0))
    )
    keeper = running.gateway.keeper
    assert keeper is not None
    now = [1_000_000.0]
    keeper.now = lambda: now[0]
    old = running.request("POST", "/v1/responses", ASK).json["id"]
    now[0] += 2 * 86_400
    new = running.request("POST", "/v1/responses", ASK).json["id"]
    for _ in range(int(TIMEOUT * 100)):
        if running.request("GET", f"/v1/responses/{old}").status == 404:
            break
    found = [running.request("GET", f"/v1/responses/{name}").status for name in (old, new)]
    assert found == [404, 200]

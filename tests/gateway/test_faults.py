"""What clients do wrong, and what the gateway does when it has to stop: over real sockets."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

from tests.gateway.running_gateway import (
    SERVERS,
    TIMEOUT,
    AccessLines,
    RunningGateway,
    config_for,
    read_all,
    read_until,
)
from tests.gateway.scripted_backends import (
    CHAT,
    FIRST_EVENTS,
    HELLO,
    MESSAGES,
    PATHS,
    BlockingBackend,
    BlockingBytesBackend,
)
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.config.settings import ServerSettings
from xenoglot.gateway.http import asgi_exchange, write_side
from xenoglot.model.events import BlockEnded, Failed, Finished
from xenoglot.model.failure import Failure
from xenoglot.model.response import Finish

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xenoglot.model.events import Event
    from xenoglot.model.json import JSON

pytestmark = pytest.mark.parametrize("gateway_server", SERVERS, indirect=True)

LIMIT = 1000
ERROR_EVENTS = {"/v1/chat/completions": b'data: {"error":{', "/v1/messages": b'event: error\ndata: {"type":"error"'}
FINAL_CHUNK = b"0\r\n\r\n"


def post(path: str, body: JSON | bytes, *headers: str) -> bytes:
    """Return the bytes of a request."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + data


@pytest.fixture
def small(gateway_server: Callable[..., RunningGateway]) -> RunningGateway:
    """Give a gateway that takes bodies of a thousand bytes."""
    server = ServerSettings(body_limit=LIMIT, drain_seconds=0.0)
    return gateway_server({"scripted": Scripted(HELLO)}, config_for("scripted", server=server))


@pytest.mark.parametrize(
    ("begun", "stream"),
    [
        pytest.param((), False, id="pitfall-118-C03-whole-before-headers"),
        pytest.param((), True, id="C01-stream-before-headers"),
        pytest.param(FIRST_EVENTS, False, id="C03-whole-while-it-comes"),
        pytest.param(FIRST_EVENTS, True, id="pitfall-118-C02-mid-stream"),
    ],
)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("how", ["close", "reset", "C05-half-close"])
def test_a_client_that_leaves_stops_the_upstream(  # noqa: PLR0913, PLR0917  the cases, and two fixtures
    gateway_server: Callable[..., RunningGateway],
    access_lines: AccessLines,
    begun: Sequence[Event],
    stream: bool,  # noqa: FBT001  a case
    path: str,
    how: str,
) -> None:
    backend = BlockingBackend(begun)
    running = gateway_server({"scripted": backend})
    with running.connect() as connection:
        connection.sendall(post(path, {**PATHS[path], "stream": stream}))
        assert backend.called.wait(TIMEOUT)
        if begun and stream:
            read_until(connection, b"Hel")
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        if how == "C05-half-close":
            connection.shutdown(socket.SHUT_WR)
        else:
            connection.close()
        assert backend.cancelled.wait(TIMEOUT)
    line = access_lines.next()
    assert (line["status"], line["failure"]) == (200 if begun and stream else 499, "cancelled")


@pytest.mark.parametrize("path", PATHS)
def test_u13_a_stream_that_fails_is_broken_off(gateway_server: Callable[..., RunningGateway], path: str) -> None:
    failed = Failed(failure=Failure(kind="upstream", message="connection lost: the upstream closed it"))
    running = gateway_server({"scripted": Scripted((*FIRST_EVENTS, failed))})
    answer = running.exchange(post(path, {**PATHS[path], "stream": True}))
    assert ERROR_EVENTS[path] in answer
    assert not answer.endswith(FINAL_CHUNK)
    assert (b"[DONE]" in answer, b"message_stop" in answer) == (False, False)


@pytest.mark.parametrize("path", PATHS)
def test_c27_a_connection_is_kept_after_an_error(small: RunningGateway, path: str) -> None:
    with small.connect() as connection:
        connection.sendall(post(path, b"{"))
        assert read_until(connection, b"}").startswith(b"HTTP/1.1 400 ")
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert read_all(connection).endswith(b'{"status":"ok"}')


@pytest.mark.parametrize("path", PATHS)
def test_c09_a_declared_body_over_the_limit(small: RunningGateway, path: str, access_lines: AccessLines) -> None:
    answer = small.exchange(post(path, b"x" * (LIMIT + 1)))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"the request's body is larger than 1000 bytes" in answer
    assert access_lines.next()["failure"] == "too_large"


def test_c09_a_declared_body_over_the_limit_is_not_waited_for(small: RunningGateway) -> None:
    head = post("/v1/messages", b"")
    with small.connect() as connection:
        connection.sendall(head.replace(b"Content-Length: 0", b"Content-Length: 99999999"))
        assert read_until(connection, b"larger than 1000 bytes").startswith(b"HTTP/1.1 413 ")


def test_c09_a_large_body_is_read_on_so_that_its_sender_sees_why(
    small: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (asgi_exchange, write_side):
        monkeypatch.setattr(module, "LINGER_SECONDS", TIMEOUT)
    assert small.request("POST", "/v1/messages", b"x" * 20_000_000).status == 413


def test_c09_a_chunked_body_over_the_limit(small: RunningGateway) -> None:
    head = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"200\r\n" + b"x" * 512 + b"\r\n"
    with small.connect() as connection:
        connection.sendall(head + chunk * 2)
        assert read_until(connection, b"larger than 1000 bytes").startswith(b"HTTP/1.1 413 ")


def test_a_body_at_the_limit(small: RunningGateway) -> None:
    assert small.request("POST", "/v1/messages", json.dumps(MESSAGES).encode().ljust(LIMIT)).status == 200


def test_c10_a_client_that_waits_for_leave_gets_it(small: RunningGateway) -> None:
    request = post("/v1/messages", MESSAGES, "Expect: 100-continue", "Connection: close")
    head, body = request.split(b"\r\n\r\n")
    with small.connect() as connection:
        connection.sendall(head + b"\r\n\r\n")
        assert read_until(connection, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def test_c10_a_client_that_waits_for_leave_is_refused_early(small: RunningGateway) -> None:
    head = post("/v1/messages", b"x" * (LIMIT + 1), "Expect: 100-continue").partition(b"\r\n\r\n")[0]
    assert small.exchange(head + b"\r\n\r\n").startswith(b"HTTP/1.1 413 ")


def test_a_client_that_leaves_while_it_sends(small: RunningGateway, access_lines: AccessLines) -> None:
    with small.connect() as connection:
        connection.sendall(post("/v1/messages", b"x" * LIMIT)[:-10])
    line = access_lines.next()
    assert (line["status"], line["failure"]) == (499, "cancelled")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", id="CL.TE"),
        pytest.param(b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", id="TE.CL"),
        pytest.param(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", id="TE.TE"),
        pytest.param(b"Transfer-Encoding: xchunked\r\n", id="TE-unknown"),
        pytest.param(b"Content-Length: 5\r\nContent-Length: 6\r\n", id="lengths"),
        pytest.param(b"Content-Length: +5\r\n", id="signed"),
        pytest.param(b"Content-Length: 5\r\n folded: x\r\n", id="obs-fold"),
        pytest.param(b"X-A: a\0b\r\nContent-Length: 0\r\n", id="nul"),
        pytest.param(b"X-A: a\rb\r\nContent-Length: 0\r\n", id="bare-cr"),
        pytest.param(b"Content-Length : 0\r\n", id="blank-before-the-colon"),
    ],
)
def test_c26_smuggling_is_refused_and_what_follows_is_not_served(small: RunningGateway, head: bytes) -> None:
    smuggled = b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = small.exchange(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n" + smuggled)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("path", PATHS)
def test_k12_a_stream_ends_in_an_error_event_when_the_drain_is_over(
    gateway_server: Callable[..., RunningGateway], access_lines: AccessLines, path: str
) -> None:
    backend = BlockingBackend(FIRST_EVENTS)
    running = gateway_server({"scripted": backend})
    with running.connect() as connection:
        connection.sendall(post(path, {**PATHS[path], "stream": True}))
        begun = read_until(connection, b"Hel")
        running.signal()
        rest = read_all(connection)
    running.join()
    assert ERROR_EVENTS[path] in rest
    assert b"service unavailable: the gateway is being stopped" in rest
    assert not (begun + rest).endswith(FINAL_CHUNK)
    assert backend.cancelled.is_set()
    line = access_lines.next()
    assert (line["status"], line["failure"]) == (200, "overloaded")


CHUNK = b'data: {"id":"1","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
LINE = b'{"model":"m","message":{"role":"assistant","content":"Hel"},"done":false}\n'


@pytest.mark.parametrize(
    ("path", "begun", "ending"),
    [
        pytest.param("/v1/chat/completions", CHUNK, b'data: {"error"', id="events"),
        pytest.param("/v1/chat/completions", CHUNK + CHUNK[:-5], b'\n\ndata: {"error"', id="half-an-event"),
        pytest.param("/api/chat", LINE, b'{"error"', id="lines"),
        pytest.param("/api/chat", LINE + LINE[:-5], b'\n{"error"', id="half-a-line"),
    ],
)
def test_k12_the_last_word_stands_alone(
    gateway_server: Callable[..., RunningGateway], path: str, begun: bytes, ending: bytes
) -> None:
    """Ollama's own client takes an empty line for a broken one: there is none behind what was whole."""
    backend = BlockingBytesBackend(begun)
    running = gateway_server({"scripted": backend})
    with running.connect() as connection:
        connection.sendall(post(path, {**CHAT, "stream": True}))
        read_until(connection, begun + b"\r\n")
        running.signal()
        rest = read_all(connection)
    running.join()
    assert rest.partition(b"\r\n")[2].startswith(ending)


def test_k12_what_has_not_begun_to_be_answered_gets_a_status(gateway_server: Callable[..., RunningGateway]) -> None:
    backend = BlockingBackend()
    running = gateway_server({"scripted": backend})
    with running.connect() as connection:
        connection.sendall(post("/v1/messages", MESSAGES))
        assert backend.called.wait(TIMEOUT)
        running.signal()
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 529 ")
    assert b"retry-after: 5\r\n" in answer


def test_k12_a_stream_ends_by_itself_while_there_is_time(gateway_server: Callable[..., RunningGateway]) -> None:
    ending = (BlockEnded(), Finished(finish=Finish(reason="stop")))
    backend = BlockingBackend(FIRST_EVENTS, ending)
    server = ServerSettings(drain_seconds=TIMEOUT)
    running = gateway_server({"scripted": backend}, config_for("scripted", server=server))
    with running.connect() as connection:
        connection.sendall(post("/v1/messages", {**MESSAGES, "stream": True}))
        read_until(connection, b"Hel")
        running.signal()
        running.wait_until_refused()
        backend.resume()
        rest = read_all(connection)
    running.join()
    ended, _, told = rest.removesuffix(b"\r\n" + FINAL_CHUNK).rpartition(b": x-xenoglot-losses: ")
    assert ended.endswith(b'data: {"type":"message_stop"}\n\n')
    assert told.count(b"\n") == 2


def test_k13_a_second_signal_ends_the_drain(gateway_server: Callable[..., RunningGateway]) -> None:
    backend = BlockingBackend(FIRST_EVENTS)
    server = ServerSettings(drain_seconds=3600.0)
    running = gateway_server({"scripted": backend}, config_for("scripted", server=server))
    with running.connect() as connection:
        connection.sendall(post("/v1/chat/completions", {**CHAT, "stream": True}))
        read_until(connection, b"Hel")
        running.signal()
        running.wait_until_refused()
        running.signal()
        assert ERROR_EVENTS["/v1/chat/completions"] in read_all(connection)
    running.join()

"""Our own server, byte by byte: what clients do to it, and what it does then. Time passes when a test pushes it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from typing import TYPE_CHECKING

import pytest

from tests.backends.raw_server import LINGER_NOT, advance, becomes, leakless, on_each_loop, turns
from tests.gateway.scripted_backends import CHAT, FIRST_EVENTS, HELLO, PATHS, BlockingBackend
from tests.gateway.server_on_loop import HEALTH, HEALTHY, post_bytes, serve_on_loop
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.http.connection import ClientConnection
from xenoglot.gateway.http.connection_exchange import render_fields
from xenoglot.gateway.http.server import SWEEP_SECONDS
from xenoglot.gateway.http.write_side import HIGH_WATER, LINGER_SECONDS

if TYPE_CHECKING:
    from xenoglot.backends.backend import Backend

CHAT_PATH = "/v1/chat/completions"


def status(answer: bytes) -> int:
    """Return the status of a response."""
    return int(answer.split(b" ", 2)[1])


def body(answer: bytes) -> bytes:
    """Return what stands behind the first head."""
    return answer.partition(b"\r\n\r\n")[2]


def responses(answers: bytes) -> list[int]:
    """Return the statuses of all responses in what came."""
    return [int(number) for number in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)]


@pytest.mark.parametrize("path", PATHS)
@leakless
async def test_a_request_in_single_bytes(path: str) -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await stage.connect()
        for byte in post_bytes(path, PATHS[path], "Connection: close"):
            client.send(bytes((byte,)))
            await asyncio.sleep(0)
        answer = await client.read_to_end()
        assert (status(answer), b"Hello" in answer) == (200, True)


@on_each_loop
async def test_c27_pipelined_requests_are_answered_in_their_order() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        asked = [HEALTH, post_bytes(CHAT_PATH, CHAT), b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"]
        last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        answers = await stage.exchange(b"".join(asked) + last + HEALTH)
        assert responses(answers) == [200, 200, 404, 200]


@leakless
async def test_c27_requests_behind_the_one_that_is_served_wait_and_are_bounded() -> None:
    backend = BlockingBackend()
    async with serve_on_loop(backend) as stage:
        client = await stage.connect()
        client.send(post_bytes(CHAT_PATH, CHAT) + HEALTH * 100_000)
        await becomes(1, lambda: int(backend.called.is_set()))
        (connection,) = stage.server.connections
        assert isinstance(connection, ClientConnection)
        await becomes(0, lambda: int(connection.transport.is_reading()))
        assert len(connection._buffer) <= HIGH_WATER + 256 * 1024


@leakless
async def test_c27_many_pipelined_requests_are_all_answered() -> None:
    count = 5_000
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await stage.connect()
        client.send(HEALTH * count)
        for _ in range(count):
            await client.read_until(HEALTHY)


@leakless
async def test_c27_a_malformed_body_ends_the_connection_and_what_follows_is_not_served() -> None:
    head = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    async with serve_on_loop(Scripted(HELLO)) as stage:
        answer = await stage.exchange(head + b"zz\r\n" + HEALTH)
        told = json.loads(body(answer))["error"]
        assert (responses(answer), told["type"]) == ([400], "invalid_request_error")
        assert told["message"] == "the size of a chunk of the body is malformed"


@leakless
async def test_c26_a_chunked_request_is_the_same_as_a_sized_one() -> None:
    backend = Scripted(HELLO)
    data = json.dumps(CHAT).encode()
    head = f"POST {CHAT_PATH} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    chunks = b"".join(
        b"%x;x=1\r\n%b\r\n" % (len(data[at : at + 7]), data[at : at + 7]) for at in range(0, len(data), 7)
    )
    async with serve_on_loop(backend) as stage:
        client = await stage.connect()
        client.send(post_bytes(CHAT_PATH, CHAT))
        await client.read_until(b"Hello")
        client = await stage.connect()
        client.send(head + chunks + b"0\r\nX-Trailer: 1\r\n\r\n" + HEALTH)
        await client.read_until(HEALTHY)
    assert backend.requests[0] == backend.requests[1]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        pytest.param("/v1/messages", '{"type":"error","error":{"type":"invalid_request_error",', id="R60-messages"),
        pytest.param(CHAT_PATH, '{"error":{"message":"the request needs one valid', id="R60-chat"),
        pytest.param("/health", "the request needs one valid `content-length`\n", id="R60-plain"),
    ],
)
@leakless
async def test_a_refusal_is_told_in_the_dialect_of_the_path(path: str, problem: str) -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        answer = await stage.exchange(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n".encode() + HEALTH
        )
        assert responses(answer) == [400]
        assert body(answer).decode().startswith(problem)
        assert b"connection: close\r\n" in answer


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), [505], id="http-2-preface"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300), [], id="tls"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n" + bytes(70_000), [], id="tls-with-LF"),
        pytest.param(b"GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n", [400], id="S02-absolute-form"),
        pytest.param(b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", [400], id="S02-authority-form"),
        pytest.param(b"GET /health HTTP/1.1\nHost: localhost\n\n", [400], id="R60-bare-LF"),
        pytest.param(b"GET /" + b"a" * 70_000, [431], id="long-target"),
        pytest.param(b"\0" * 70_000, [431], id="garbage"),
    ],
)
@on_each_loop
async def test_what_is_no_request(data: bytes, wanted: list[int]) -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        assert responses(await stage.exchange(data)) == wanted


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param("", id="none"),
        pytest.param("Host: localhost\r\nHost: localhost\r\n", id="two"),
        pytest.param("Host:\r\n", id="empty"),
        pytest.param("Host: localhost?\r\n", id="question-mark"),
        pytest.param("Host: localhost#\r\n", id="number-sign"),
        pytest.param("Host: localhost/admin\r\n", id="path"),
        pytest.param("Host: user@localhost\r\n", id="user"),
    ],
)
@leakless
async def test_s02_unlawful_hosts(hosts: str) -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        answer = await stage.exchange(f"GET /health HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n".encode())
        assert responses(answer) == [400]


@pytest.mark.parametrize(("stream", "ending"), [(False, b"}"), (True, b"data: [DONE]\n\n")], ids=["whole", "stream"])
@leakless
async def test_a_client_of_http_1_0_gets_no_chunks(stream: bool, ending: bytes) -> None:  # noqa: FBT001  a case
    async with serve_on_loop(Scripted(HELLO)) as stage:
        request = post_bytes(CHAT_PATH, {**CHAT, "stream": stream}).replace(b"HTTP/1.1", b"HTTP/1.0")
        answer = await stage.exchange(request)
        assert (b"transfer-encoding" in answer, b"connection: close\r\n" in answer) == (False, True)
        assert ending in answer[-200:]


@pytest.mark.parametrize("last", [b"", b"half-close"])
@leakless
async def test_u13_a_stream_that_only_its_end_would_end_is_reset_when_it_fails(last: bytes) -> None:
    async with serve_on_loop(BlockingBackend(FIRST_EVENTS)) as stage:
        client = await stage.connect()
        client.send(post_bytes(CHAT_PATH, {**CHAT, "stream": True}).replace(b"HTTP/1.1", b"HTTP/1.0"))
        await client.read_until(b"Hel")
        if last:
            client.writer.write_eof()
        else:
            stage.server.application.stop_now()
            assert b'"error"' in await client.read_until(b"stopped")
            await advance(LINGER_SECONDS + SWEEP_SECONDS)
        assert (await client.read_to_end()).endswith(b"<reset>")


@leakless
async def test_a_head_alone_is_answered_without_a_body() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await stage.connect()
        client.send(HEALTH.replace(b"GET", b"HEAD") + HEALTH)
        answers = await client.read_until(HEALTHY)
        assert answers.count(HEALTHY) == 1
        assert responses(answers) == [200, 200]


def test_c22_nothing_in_a_value_ends_its_header() -> None:
    assert render_fields([("x-a", "1\r\nx-b: 2"), ("x-c", "naïve\0")]) == "x-a: 1??x-b: 2\r\nx-c: na?ve?\r\n"
    assert render_fields([("x-a", "\n"), ("x-b", "fine")]) == "x-a: ?\r\nx-b: fine\r\n"
    assert len(render_fields([("x-a", "a" * 9_000)])) < 4_100


# Who goes.


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(BlockingBackend(), id="C01-before-the-head"),
        pytest.param(BlockingBackend(FIRST_EVENTS), id="C02-mid-stream"),
    ],
)
@pytest.mark.parametrize("how", ["close", "C05-half-close", "reset"])
@on_each_loop
async def test_r62_who_leaves_is_noticed_at_once(backend: BlockingBackend, how: str) -> None:
    backend.cancelled.clear()
    async with serve_on_loop(backend) as stage:
        client = await stage.connect()
        client.send(post_bytes(CHAT_PATH, {**CHAT, "stream": True}))
        await becomes(1, lambda: len(stage.server.tasks))
        await turns(100)
        if how == "reset":
            client.writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        if how == "C05-half-close":
            client.writer.write_eof()
        else:
            client.writer.close()
        await becomes(set(), lambda: stage.server.tasks)
        assert backend.cancelled.is_set()


@pytest.mark.parametrize("how", ["close", "reset"])
@leakless
async def test_r62_who_leaves_is_noticed_behind_requests_that_are_not_read_yet(how: str) -> None:
    backend = BlockingBackend()
    async with serve_on_loop(backend) as stage:
        client = await stage.connect()
        client.send(post_bytes(CHAT_PATH, CHAT) + HEALTH * 4_000)
        await becomes(1, lambda: int(backend.called.is_set()))
        (connection,) = stage.server.connections
        await becomes(1, lambda: int(connection.muffled))
        if how == "reset":
            wire = client.writer.transport.get_extra_info("socket")
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        client.writer.transport.abort()
        await turns()
        await advance(SWEEP_SECONDS)
        await becomes(set(), lambda: stage.server.tasks)
        assert backend.cancelled.is_set()


@on_each_loop
async def test_c05_what_needs_no_waiting_is_answered_to_a_half_closed_client() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await stage.connect()
        client.send(HEALTH)
        client.writer.write_eof()
        assert HEALTHY in await client.read_to_end()


@leakless
async def test_c10_leave_is_given_once_the_body_is_wanted() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await stage.connect()
        request = post_bytes(CHAT_PATH, CHAT, "Expect: 100-continue", "Connection: close")
        head, _, data = request.partition(b"\r\n\r\n")
        client.send(head + b"\r\n\r\n")
        assert await client.read_until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(data)
        assert status(await client.read_to_end()) == 200
        assert responses(await stage.exchange(request)) == [200]  # who does not wait needs no leave


@leakless
async def test_r60_a_body_that_nobody_asks_for_is_not_taken() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await stage.connect()
        client.send(post_bytes("/nowhere", b"x" * 10_000_000))
        answer = await client.read_to_end()
        assert (responses(answer), b"connection: close\r\n" in answer) == ([404], True)


def backend_of(name: str) -> Backend:
    """Return a backend."""
    return Scripted(HELLO) if name == "answering" else BlockingBackend(FIRST_EVENTS)


@pytest.mark.parametrize("name", ["answering", "hanging"])
@on_each_loop
async def test_r61_nothing_is_left_of_many_that_leave(name: str) -> None:
    async with serve_on_loop(backend_of(name)) as stage:
        for count in range(40):
            client = await stage.connect()
            client.send(post_bytes(CHAT_PATH, {**CHAT, "stream": True})[: 50 + 10 * count])
            await turns(count % 7)
            client.writer.transport.abort()
        await becomes(set(), lambda: stage.server.connections)
        await becomes(set(), lambda: stage.server.tasks)

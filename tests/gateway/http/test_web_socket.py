"""WebSocket connections of our own server, byte by byte. Time passes when a test pushes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from websockets.frames import Frame, Opcode

from tests.backends.raw_server import advance, becomes, leakless, on_each_loop, turns
from tests.gateway.running_gateway import config_for
from tests.gateway.scripted_backends import FIRST_EVENTS, HELLO, BlockingBackend, EndlessBackend
from tests.gateway.server_on_loop import HEALTH, HEALTHY, serve_on_loop
from tests.gateway.web_socket.socket_client import ACCEPT, SocketClosed, connect, created, handshake
from xenoglot.backends.scripted import Scripted
from xenoglot.gateway.http.web_socket import (
    PING_SECONDS,
    SILENT_SECONDS,
    SLICE_BYTES,
    TURN_FRAMES,
    WebSocketConnection,
    wire_bytes,
)
from xenoglot.gateway.http.write_side import HIGH_WATER
from xenoglot.model.events import BlockEnded, Finished, UsageReported
from xenoglot.model.response import Finish, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.server_on_loop import ServerOnLoop
    from tests.gateway.web_socket.socket_client import SocketClient
    from xenoglot.model.json import JSONObject


REST = (
    BlockEnded(),
    UsageReported(usage=Usage(input_tokens=5, output_tokens=2)),
    Finished(finish=Finish(reason="stop")),
)
"""What follows the first events."""


def kinds(events: list[JSONObject]) -> list[str]:
    """Return the types of events."""
    return [event["type"] for event in events]


def sockets(stage: ServerOnLoop) -> list[WebSocketConnection]:
    """Return the connections of the server that are WebSockets."""
    return [one for one in stage.server.connections if isinstance(one, WebSocketConnection)]


@on_each_loop
async def test_a_handshake_is_accepted_and_each_event_is_a_message() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await connect(stage)
        fields = dict(line.split(": ", 1) for line in client.head.decode().split("\r\n")[1:-2])
        assert re.fullmatch(r"req_\w+", fields.pop("x-request-id"))
        assert fields.pop("date").endswith("GMT")
        fields.pop("request-id")
        assert fields == {
            "upgrade": "websocket",
            "connection": "Upgrade",
            "sec-websocket-accept": ACCEPT,
            "x-content-type-options": "nosniff",
        }
        events = await client.ask(created())
        assert kinds(events) == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
        assert [event["sequence_number"] for event in events] == list(range(9))


@pytest.mark.parametrize(
    ("data", "status", "header"),
    [
        pytest.param(
            handshake().replace(b"Version: 13", b"Version: 8"), 426, b"sec-websocket-version: 13", id="version"
        ),
        pytest.param(
            handshake().replace(b"keep-alive, Upgrade", b"close"), 426, b"upgrade: websocket", id="no-upgrade"
        ),
        pytest.param(b"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\n\r\n", 426, b"upgrade: websocket", id="plain"),
        pytest.param(handshake().replace(b"dGhlIHN", b"!!!!!!!"), 400, b"", id="key"),
        pytest.param(handshake("Origin: https://evil.example"), 403, b"", id="S05-origin"),
        pytest.param(handshake(host="evil.example"), 403, b"", id="S06-host"),
        pytest.param(handshake(path="/v1/chat/completions"), 426, b"", id="another-path"),
    ],
)
@leakless
async def test_handshakes_that_are_refused(data: bytes, status: int, header: bytes) -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        raw = await stage.connect()
        raw.send(data)
        head = await raw.read_until(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status), head
        assert header in head


@leakless
async def test_a_message_may_be_cut_anywhere() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await connect(stage)
        for byte in client.encoded(created(), 3, 0, 20):
            client.raw.send(bytes([byte]))
            await turns(2)
        assert kinds(await client.answer())[-1] == "response.completed"


@settings(max_examples=30)
@given(cuts=st.lists(st.integers(0, 90), max_size=6), sizes=st.lists(st.integers(0, 60), max_size=4))
def test_any_cutting_gives_the_same_answer(cuts: list[int], sizes: list[int]) -> None:
    async def scene() -> None:
        async with serve_on_loop(Scripted(HELLO)) as stage:
            client = await connect(stage)
            data = client.encoded(created(), *sizes)
            begin = 0
            for cut in [*sorted(cuts), len(data)]:
                client.raw.send(data[begin:cut])
                begin = max(begin, cut)
                await turns(1)
            assert len(await client.answer()) == 9

    leakless(scene)()


@leakless
async def test_messages_behind_the_handshake_in_one_read() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await connect(stage)
        raw = await stage.connect()
        raw.send(handshake() + client.encoded(created()))
        assert b"response.completed" in await raw.read_until(b"response.completed")


def unmasked(_client: SocketClient) -> bytes:
    return Frame(Opcode.TEXT, b"{}").serialize(mask=False)


def masked(opcode: Opcode, data: bytes, **bits: bool) -> Callable[[SocketClient], bytes]:
    frame = Frame(opcode, data, **bits)
    frame.check = lambda: None  # type: ignore[method-assign]  # what no client of the library would send
    return lambda _: frame.serialize(mask=True)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        pytest.param(unmasked, 1002, id="unmasked"),
        pytest.param(masked(Opcode.TEXT, b"\xff{}"), 1007, id="no-utf-8"),
        pytest.param(masked(Opcode.BINARY, b"{}"), 1003, id="binary"),
        pytest.param(masked(Opcode.CONT, b"{}"), 1002, id="continuation-of-nothing"),
        pytest.param(masked(Opcode.TEXT, b"{}", rsv1=True), 1002, id="compressed-without-leave"),
        pytest.param(masked(Opcode.PING, b"p" * 126), 1002, id="long-ping"),
        pytest.param(masked(Opcode.PING, b"p", fin=False), 1002, id="ping-in-pieces"),
        pytest.param(masked(Opcode.TEXT, b"x" * 2_001), 1009, id="too-large"),
        pytest.param(lambda c: c.encoded("x" * 2_000, 1_500), 1009, id="too-large-in-pieces"),
        pytest.param(masked(Opcode.CLOSE, b"\x03\xe8"), 1000, id="close"),
    ],
)
@leakless
async def test_what_is_no_message_closes_the_connection(wrong: Callable[[SocketClient], bytes], code: int) -> None:
    config = config_for("scripted")
    config = replace(config, server=replace(config.server, body_limit=2_000))
    async with serve_on_loop(Scripted(HELLO), config) as stage:
        client = await connect(stage)
        client.raw.send(wrong(client))
        assert (await client.closed()).code == code
        assert (await stage.exchange(HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))).endswith(HEALTHY)


@leakless
async def test_no_extension_is_negotiated() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await connect(stage, "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
        assert b"extensions" not in client.head.lower()


@leakless
async def test_a_ping_is_answered_and_a_silent_client_is_pinged_and_then_dropped() -> None:
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await connect(stage)
        client.frames.send_ping(b"there?")
        client.raw.send(b"".join(client.frames.data_to_send()))
        pong = await client.frame()
        assert pong is not None
        assert (pong.opcode, bytes(pong.data)) == (Opcode.PONG, b"there?")
        await advance(PING_SECONDS + 1)
        ping = await client.frame()
        assert ping is not None
        assert ping.opcode is Opcode.PING
        await advance(PING_SECONDS + 1)
        for _ in range(int(SILENT_SECONDS / PING_SECONDS) + 1):
            await advance(PING_SECONDS + 1)
        assert sockets(stage) == []


@leakless
async def test_half_a_message_has_as_long_as_a_body() -> None:
    async with serve_on_loop(Scripted(HELLO), body_seconds=100.0) as stage:
        client = await connect(stage)
        whole = client.encoded(created(), 10)
        client.raw.send(whole[:16])
        for _ in range(5):
            await advance(PING_SECONDS + 1)
        assert await client.closed() == SocketClosed(1008, "the message comes too slowly")


@leakless
async def test_half_a_frame_has_as_long_as_a_body() -> None:
    """One that comes byte by byte is a sign of life, but no message."""
    async with serve_on_loop(Scripted(HELLO), body_seconds=100.0) as stage:
        client = await connect(stage)
        whole = client.encoded(created())
        for at in range(5):
            client.raw.send(whole[at : at + 1])
            await advance(PING_SECONDS + 1)
        assert await client.closed() == SocketClosed(1008, "the message comes too slowly")


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_the_bytes_of_a_frame(size: int) -> None:
    assert wire_bytes(size) == len(Frame(Opcode.TEXT, b"x" * size).serialize(mask=True))


@leakless
async def test_a_message_after_another_has_its_own_time() -> None:
    async with serve_on_loop(Scripted(HELLO), body_seconds=100.0) as stage:
        client = await connect(stage)
        for _ in range(3):
            whole = client.encoded(created())
            client.raw.send(whole[:9])
            await advance(2 * PING_SECONDS)
            client.raw.send(whole[9:])
            assert kinds(await client.answer())[-1] == "response.completed"


@pytest.mark.parametrize(
    "tiny",
    [
        pytest.param(masked(Opcode.CONT, b"", fin=False), id="pieces-of-nothing"),
        pytest.param(masked(Opcode.PING, b""), id="pings"),
        pytest.param(masked(Opcode.PONG, b""), id="pongs"),
        pytest.param(masked(Opcode.TEXT, b"{}"), id="messages"),
    ],
)
@leakless
async def test_tiny_frames_of_one_read_leave_turns_to_others(tiny: Callable[[SocketClient], bytes]) -> None:
    """10,000 of them took 50 ms of the loop at once."""
    count = 10_000
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await connect(stage)
        (socket,) = sockets(stage)
        taken: list[int] = [0]
        take = socket._take

        def counting(frame: Frame) -> None:
            taken[-1] += 1
            take(frame)

        socket._take = counting  # type: ignore[method-assign]  # what is counted
        begin = masked(Opcode.TEXT, b"{}", fin=False)(client) if tiny(client)[:2] == b"\x00\x80" else b""
        socket.data_received(begin + tiny(client) * count)
        for _ in range(count):
            taken.append(0)
            await client_reads(client)
        assert sum(taken) >= count
        assert max(taken) <= TURN_FRAMES + SLICE_BYTES // len(tiny(client)) + 1


async def client_reads(client: SocketClient) -> None:
    """Take a turn of the loop, and what has come of the server's."""
    await turns(1)
    client.raw.reader._buffer.clear()  # type: ignore[attr-defined]  # what nobody looks at


@leakless
async def test_errors_that_nobody_reads_are_not_written_for_ever() -> None:
    """Each message of 2 bytes is answered with an error of 300: a client that takes none gets no more of them."""
    async with serve_on_loop(Scripted(HELLO)) as stage:
        client = await connect(stage)
        client.raw.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport that reads
        (socket,) = sockets(stage)
        flood = masked(Opcode.TEXT, b"{}")(client) * 1_000
        for _ in range(100):
            client.raw.send(flood)
        await becomes((True, True), lambda: (socket.paused, socket.muffled))
        assert socket.transport.get_write_buffer_size() < 4 * HIGH_WATER


@leakless
async def test_a_client_that_closes_without_reading_stops_its_requests() -> None:
    backend = EndlessBackend()
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        client.send(created())
        await client.event()
        client.raw.writer.transport.pause_reading()  # type: ignore[attr-defined]  # the same
        (socket,) = sockets(stage)
        await becomes(1, lambda: int(socket.paused))
        client.raw.send(masked(Opcode.CLOSE, b"\x03\xe8")(client))
        await becomes(1, lambda: int(socket.gone))
        await turns(20)
        sent = backend.sent
        await turns(50)
        assert backend.sent == sent


@leakless
async def test_a_client_that_closes_its_sending_side_has_disconnected() -> None:
    backend = BlockingBackend(FIRST_EVENTS)
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        client.send(created())
        await client.event()
        client.raw.writer.write_eof()
        await becomes(1, lambda: int(backend.cancelled.is_set()))
        await becomes([], lambda: sockets(stage))


@leakless
async def test_a_client_that_leaves_stops_the_upstream() -> None:
    backend = BlockingBackend(FIRST_EVENTS)
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        client.send(created())
        await client.event()
        await client.raw.close()
        await becomes(1, lambda: int(backend.cancelled.is_set()))
        await becomes([], lambda: sockets(stage))


@leakless
async def test_a_slow_client_slows_the_upstream_down() -> None:
    async with serve_on_loop(EndlessBackend()) as stage:
        client = await connect(stage)
        client.send(created())
        await client.event()
        client.raw.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport that reads
        (socket,) = sockets(stage)
        await becomes(1, lambda: int(socket.paused))
        held = socket.transport.get_write_buffer_size()
        await turns(200)
        assert socket.transport.get_write_buffer_size() == held < 10 * HIGH_WATER
        await advance(61)
        await advance(61)
        await becomes([], lambda: sockets(stage))


@leakless
async def test_pings_of_a_client_that_does_not_read_are_not_answered_for_ever() -> None:
    async with serve_on_loop(EndlessBackend()) as stage:
        client = await connect(stage)
        client.send(created())
        await client.event()
        client.raw.writer.transport.pause_reading()  # type: ignore[attr-defined]  # the same
        (socket,) = sockets(stage)
        await becomes(1, lambda: int(socket.paused))
        client.raw.send(masked(Opcode.PING, b"p" * 125)(client) * 2_000)
        await becomes(1, lambda: int(socket.muffled))


@leakless
async def test_a_server_that_stops_closes_idle_connections_at_once_and_others_after_their_answer() -> None:
    backend = BlockingBackend(FIRST_EVENTS, REST)
    async with serve_on_loop(backend) as stage:
        idle, busy = await connect(stage), await connect(stage)
        busy.send(created())
        await busy.event()
        busy.send(created("waits"))
        await turns()
        stage.server.stop_accepting()
        assert await idle.closed() == SocketClosed(1001, "the gateway is stopping")
        backend.resume()
        assert kinds(await busy.answer())[-1] == "response.completed"
        refused = await busy.event()
        assert (refused["type"], refused["status"]) == ("error", 503)
        assert await busy.closed() == SocketClosed(1001, "the gateway is stopping")


@leakless
async def test_an_answer_that_takes_too_long_for_a_stopping_server_ends_in_an_error() -> None:
    backend = BlockingBackend(FIRST_EVENTS)
    async with serve_on_loop(backend) as stage:
        client = await connect(stage)
        client.send(created())
        await client.event()
        stage.server.stop_accepting()
        stage.server.stop_now()
        assert kinds(await client.answer())[-1] == "response.failed"
        assert await client.closed() == SocketClosed(1001, "the gateway is stopping")


@leakless
async def test_an_idle_connection_goes_where_places_run_out() -> None:
    async with serve_on_loop(Scripted(HELLO), most=1) as stage:
        client = await connect(stage)
        await client.ask(created())
        answer = await stage.exchange(HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert answer.endswith(HEALTHY)
        assert (await client.closed()).code == 1006
